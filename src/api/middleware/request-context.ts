import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { RequestHandler } from "express";
import type { ApiKey } from "../../records/api-key.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { KeyView } from "../cluster/views.ts";
import type { TrustedProxies } from "./client-ip.ts";
import type { RateLimits } from "./rate-limit/limits.ts";
import { isPathMalformed } from "./request-target.ts";
import { UnsentBodies } from "./unsent-bodies.ts";

declare global {
  namespace Express {
    interface Request {
      /** Set by the first middleware. */
      context: RequestContext;
    }
  }
}

export interface RequestContextOptions {
  readonly clock: Pick<Clock, "monotonic">;
  readonly trustedProxies: TrustedProxies;
  readonly limits: Pick<RateLimits, "uncharged">;
  /** Once true, responses tell clients to open a new connection, which reaches another process. */
  readonly isShuttingDown: () => boolean;
}

/** State of a request that middleware shares with later middleware and with the log. */
export class RequestContext {
  readonly requestId = randomUUID();
  /** Monotonic, in milliseconds. */
  readonly startedAt: number;
  /** `undefined` if it is unknown: the connection is gone, or a trusted proxy sent no address. */
  readonly clientIp: string | undefined;
  /** True if the path is not percent-encoded UTF-8. */
  readonly isPathMalformed: boolean;
  readonly isShuttingDown: () => boolean;
  /** Shared by all requests of the process. */
  readonly unsentBodies: UnsentBodies;
  /** The authenticated key; `undefined` before authentication and after a failed one. */
  key: { readonly apiKey: ApiKey; readonly view: KeyView } | undefined;
  /**
   * Verifies the credentials again, against the key as it is now.
   *
   * @throws ApiError 401; 503 if the cached keys or records are stale
   */
  reauthenticate: () => void = () => {
    throw new Error("the request is not authenticated");
  };
  /** Rate limit fields of the response, names and values in turn. */
  rateLimitFields: readonly string[];
  /** True if the connection ends with this response. */
  closeConnection = false;
  /**
   * Status for the log and the metrics if it is not that of the response object: the response bypassed Node's HTTP
   * layer (server/malformed-requests.ts), or its body could not be sent.
   */
  rawStatus: number | undefined;
  /** True if the response has the status 503 although nothing failed. */
  isNotYet = false;
  /** The error, if the request was not served. */
  error: Error | undefined;

  constructor(request: IncomingMessage, options: RequestContextOptions, unsentBodies: UnsentBodies) {
    this.startedAt = options.clock.monotonic();
    this.clientIp = options.trustedProxies.clientIp(request);
    this.isPathMalformed = isPathMalformed(request);
    this.isShuttingDown = options.isShuttingDown;
    this.unsentBodies = unsentBodies;
    this.rateLimitFields = options.limits.uncharged;
  }
}

/** Adds the context to every request. */
export function requestContext(options: RequestContextOptions): RequestHandler {
  const unsentBodies = new UnsentBodies();
  return (request, _response, next) => {
    request.context = new RequestContext(request, options, unsentBodies);
    next();
  };
}

/** Returns the context of a Node request; `undefined` before the first middleware. */
export function contextOf(request: IncomingMessage): RequestContext | undefined {
  return "context" in request && request.context instanceof RequestContext ? request.context : undefined;
}

/**
 * Returns the key that authenticated the request.
 *
 * @throws Error before authentication, which is a bug
 */
export function authenticatedKey({ context }: { readonly context: RequestContext }): ApiKey {
  if (context.key) return context.key.apiKey;
  throw new Error("the request is not authenticated");
}

/** The author of a write, for audit lines and for the annotation of a rescale. */
export interface Requester {
  readonly requestId: string;
  /** Resource ID of the API key. */
  readonly apiKey: string;
  /**
   * Called right before each attempt to write, before the state of the object decides anything. If an equal write of
   * another caller was made instead, called after that.
   *
   * @throws Error if the write is no longer allowed
   */
  readonly permit: () => void;
}

export function requesterOf(request: { readonly context: RequestContext }, permit: () => void): Requester {
  return { requestId: request.context.requestId, apiKey: authenticatedKey(request).id, permit };
}
