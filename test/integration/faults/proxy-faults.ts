import type { Handling, ProxiedRequest } from "./faulty-proxy.ts";

/** Handles the first requests of a kind in this way, and forwards all others. */
export function first(count: number, verb: string, resource: string, handling: Handling) {
  let handled = 0;
  return {
    handle: (request: ProxiedRequest): Handling | undefined =>
      request.verb === verb && request.resource === resource && handled++ < count ? handling : undefined,
    isOver: () => handled >= count,
  };
}

/** Handles all watches in this way, or those of one kind. */
export function watches(handling: Handling, resource?: string) {
  return (request: Pick<ProxiedRequest, "verb" | "resource">): Handling | undefined =>
    request.verb === "watch" && (resource ?? request.resource) === request.resource ? handling : undefined;
}

/** The error of the API server in a watch. */
export const GONE = {
  type: "respond",
  status: 200,
  body: `${JSON.stringify({ type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired" } })}\n`,
} satisfies Handling;
