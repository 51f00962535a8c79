import type { KubeRequest } from "./client.ts";

/** A request in terms of RBAC. */
export interface Action {
  /** `get`, `list`, `watch`, `patch`, … */
  readonly verb: string;
  /** Plural of the kind, with its subresource if there is one; empty for paths such as `/version`. */
  readonly resource: string;
}

/** Captures the plural, the name and the subresource. */
const RESOURCE_PATH =
  /^\/(?:api|apis\/[^/]+)\/[^/]+(?:\/namespaces\/[^/]+)?\/([^/]+)(?:\/([^/]+)(?:\/([^/]+))?)?$/;

const WRITE_VERBS = new Map([
  ["POST", "create"],
  ["PUT", "update"],
  ["PATCH", "patch"],
  ["DELETE", "delete"],
]);

export function actionOf({ method = "GET", path, query }: KubeRequest): Action {
  const [, plural = "", name, subresource] = RESOURCE_PATH.exec(path) ?? [];
  const resource = subresource === undefined ? plural : `${plural}/${subresource}`;
  const readVerb = query?.["watch"] === true ? "watch" : "list";
  return {
    verb: WRITE_VERBS.get(method) ?? (name === undefined && plural !== "" ? readVerb : "get"),
    resource,
  };
}

/** The time in a `Date` header, in milliseconds since 1970; `undefined` if it is absent or invalid. */
export function dateOf(header: string | string[] | undefined): number | undefined {
  const date = typeof header === "string" ? Date.parse(header) : Number.NaN;
  return Number.isNaN(date) ? undefined : date;
}

/** Names a request in errors. */
export function label(request: KubeRequest): string {
  return `${request.method ?? "GET"} ${request.path}`;
}

export function queryString(query: KubeRequest["query"]): string {
  const parameters = Object.entries(query ?? {}).flatMap(([key, value]) =>
    value === undefined ? [] : `${key}=${encodeURIComponent(value)}`,
  );
  return parameters.length === 0 ? "" : `?${parameters.join("&")}`;
}
