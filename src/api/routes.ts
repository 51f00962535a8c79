import type { IncomingMessage } from "node:http";
import type * as z from "zod";
import type { ApiKey } from "../records/api-key.ts";
import { methodNotAllowed, nothingThere } from "./problem.ts";

export type Method = "GET" | "PATCH" | "DELETE";

/** A request that has passed the gate: authenticated, routed and allowed. */
export interface Call {
  readonly requestId: string;
  readonly request: IncomingMessage;
  readonly key: ApiKey;
  /** What stands for the names in braces in the route's path, still percent-encoded. */
  readonly parameters: ReadonlyMap<string, string>;
}

/** Those of the published contract (api-contract, part 1). */
export type Tag =
  | "Organization"
  | "User management"
  | "Billing"
  | "Service"
  | "Backup"
  | "OpenAPI"
  | "Prometheus"
  | "Pipes";

/** What callers are told of an operation: all that the OpenAPI document has about it comes from here. */
export interface Operation {
  readonly id: string;
  readonly tag: Tag;
  readonly summary: string;
  /** In CommonMark, as all texts about an operation. */
  readonly description: string;
  readonly isBeta?: true;
  /** What a request must bring. */
  readonly body?: z.ZodType;
  /** What a 200 brings; without one its envelope has only `requestId` and `status`. */
  readonly result?: z.ZodType;
  /** When it answers what not every operation can answer, or answers for other reasons. */
  readonly refusals: Readonly<Partial<Record<400 | 404 | 409, string>>>;
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
  readonly operation: Operation;
  readonly serve: (call: Call) => unknown;
}

/** Other names for literal segments of the routes' paths, each with the segment that it stands for. */
export type PathAliases = ReadonlyMap<string, string>;

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
 * Those of the usual frameworks decode parameters (and answer 400) before anybody is authenticated, overlook
 * trailing slashes, answer OPTIONS by themselves and have no 405 (docs/adr/0005).
 */
export class Router {
  readonly #resources: readonly Resource[];
  readonly #aliases: PathAliases;

  /** @throws Error with a sentence for the user if an alias cannot be one */
  constructor(routes: readonly Route[], aliases: PathAliases = new Map()) {
    requireAliasesOf(routes, aliases);
    this.#aliases = aliases;
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
      const parameters = this.#matchSegments(resource.segments, sent);
      if (parameters) {
        const route = resource.methods.get(method);
        if (route) return { route, parameters };
        throw methodNotAllowed(resource.allow);
      }
    }
    throw nothingThere();
  }

  #matchSegments(template: readonly string[], sent: readonly string[]): Map<string, string> | undefined {
    if (template.length !== sent.length) return undefined;
    const parameters = new Map<string, string>();
    for (const [at, segment] of template.entries()) {
      const value = sent[at] ?? "";
      if (isParameter(segment)) {
        if (value === "") return undefined;
        parameters.set(segment.slice(1, -1), value);
      } else if (segment !== value && segment !== this.#aliases.get(value)) return undefined;
    }
    return parameters;
  }
}

function isParameter(segment: string): boolean {
  return segment.startsWith("{");
}

function requireAliasesOf(routes: readonly Route[], aliases: PathAliases): void {
  const literals = new Set(routes.flatMap(({ path }) => literalsOf(path)));
  for (const [alias, segment] of aliases) {
    const said = `The path alias ${JSON.stringify(alias)} cannot stand for ${JSON.stringify(segment)}`;
    if (!literals.has(segment)) {
      const known = [...literals].join(", ");
      throw new Error(`${said}, which is no segment of any operation's path; those are ${known}.`);
    }
    if (literals.has(alias)) throw new Error(`${said}: it is a segment of an operation's path itself.`);
  }
}

/** Without the version, which comes before all routing. */
function literalsOf(path: string): string[] {
  return path.split("/").filter((segment) => segment !== "" && segment !== "v1" && !isParameter(segment));
}
