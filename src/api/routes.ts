import type { IncomingMessage } from "node:http";
import type { ApiKey } from "../records/api-key.ts";
import { notFound, Problem } from "./problem.ts";

export type Method = "GET" | "PATCH" | "DELETE";

/** A request that has passed the gate: authenticated, routed and allowed. */
export interface Call {
  readonly requestId: string;
  readonly request: IncomingMessage;
  readonly key: ApiKey;
  /** What stands for the names in braces in the route's path, still percent-encoded. */
  readonly parameters: ReadonlyMap<string, string>;
}

/**
 * One operation. `serve` keeps the contract's order: what the path names (400, 404), then the body
 * (415, 413, 400), then the state (400, 409); what it returns is the envelope's `result`. It returns a
 * promise only if it must wait: an answer from the caches is written without one.
 */
export interface Route {
  readonly method: Method;
  /** As OpenAPI writes it: `/v1/things/{thingId}`. */
  readonly path: string;
  readonly serve: (call: Call) => unknown;
}

export interface RouteMatch {
  readonly route: Route;
  readonly parameters: ReadonlyMap<string, string>;
}

interface Resource {
  readonly segments: readonly string[];
  readonly methods: ReadonlyMap<string, Route>;
  readonly allow: string;
}

/**
 * Which route a request is for.
 *
 * Matching is ours and not express's, because its router decodes parameters (and answers 400) before
 * anybody is authenticated, overlooks trailing slashes, answers OPTIONS by itself and has no 405.
 */
export class Router {
  readonly #resources: readonly Resource[];

  constructor(routes: readonly Route[]) {
    const byPath = Map.groupBy(routes, (route) => route.path);
    this.#resources = [...byPath].map(([path, alternatives]) => {
      const methods = new Map<string, Route>();
      for (const route of alternatives) {
        methods.set(route.method, route);
        // HEAD is GET whose body Node leaves out.
        if (route.method === "GET") methods.set("HEAD", route);
      }
      return { segments: path.split("/"), methods, allow: [...methods.keys()].sort().join(", ") };
    });
  }

  /** @throws Problem 404, 405 */
  match(method: string, path: string): RouteMatch {
    const sent = path.split("/");
    for (const resource of this.#resources) {
      const parameters = matchSegments(resource.segments, sent);
      if (parameters) {
        const route = resource.methods.get(method);
        if (route) return { route, parameters };
        throw new Problem(405, `This path allows only ${resource.allow}.`, {
          headers: ["Allow", resource.allow],
        });
      }
    }
    throw notFound("There is nothing at this path.");
  }
}

function matchSegments(
  template: readonly string[],
  sent: readonly string[],
): Map<string, string> | undefined {
  if (template.length !== sent.length) return undefined;
  const parameters = new Map<string, string>();
  for (const [at, segment] of template.entries()) {
    const value = sent[at] ?? "";
    if (segment.startsWith("{")) {
      if (value === "") return undefined;
      parameters.set(segment.slice(1, -1), value);
    } else if (segment !== value) return undefined;
  }
  return parameters;
}
