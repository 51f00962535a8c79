import type { RequestHandler } from "express";
import { isBeingDeleted } from "../../kube/objects.ts";
import type { ApiKey } from "../../records/api-key.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ClusterCache } from "../cluster/cluster-cache.ts";
import type { KeyView } from "../cluster/views.ts";
import { apiError } from "../errors.ts";
import { countHeader } from "./http-syntax.ts";
import { chargeFailedAuthentication, type RateLimits } from "./rate-limit/limits.ts";
import type { RequestContext } from "./request-context.ts";
import { verifyCredentials } from "./verify-credentials.ts";

const CHALLENGE = 'Basic realm="pipe-scaling", charset="UTF-8"';

export interface AuthenticateOptions {
  readonly cache: Pick<ClusterCache, "key" | "requireFreshRecords">;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly limits: RateLimits;
}

/**
 * Authenticates a request with HTTP Basic: 401, 429 after too many failures, or 503 while the cached keys or records
 * are stale.
 */
export function authenticate({ cache, clock, limits }: AuthenticateOptions): RequestHandler {
  const findKey = (secretName: string) => cache.key(secretName);

  function identify(header: string): RequestContext["key"] {
    cache.requireFreshRecords();
    const view = verifyCredentials(header, findKey);
    const apiKey = view && usableKey(view, clock.now());
    return apiKey && { apiKey, view };
  }

  function failed(context: RequestContext): Error {
    context.closeConnection = true;
    const tooMany = chargeFailedAuthentication(context, limits, clock.monotonic());
    return tooMany ?? unauthenticated(context);
  }

  return (request, _response, next) => {
    const { context } = request;
    const header = request.headers.authorization;
    // A request without credentials does not count as a failed login: many clients send credentials only after a 401,
    // and failed logins from the same address would turn that 401 into a 429.
    if (header === undefined) throw unauthenticated(context);
    if (countHeader(request, "authorization") !== 1) throw failed(context);
    context.key = identify(header);
    if (!context.key) throw failed(context);
    context.reauthenticate = () => {
      const key = identify(header);
      // The request does not count as a failed login, because its credentials were valid when they arrived.
      if (!key) throw unauthenticated(context);
      context.key = key;
    };
    next();
  };
}

/** A 401 closes the connection, so that each request without valid credentials costs an attacker a handshake. */
function unauthenticated(context: RequestContext): Error {
  context.closeConnection = true;
  // Every cause has the same text, so the caller cannot learn which one it was.
  return apiError("NotAuthenticated").with({ headers: { "WWW-Authenticate": CHALLENGE } });
}

function usableKey({ metadata, parsed }: KeyView, now: number): ApiKey | undefined {
  // A finalizer can keep a deleted key for any time.
  if (isBeingDeleted(metadata)) return undefined;
  if (!parsed.ok || parsed.value.state !== "enabled") return undefined;
  const { expireAt } = parsed.value;
  return expireAt !== undefined && expireAt.getTime() <= now ? undefined : parsed.value;
}
