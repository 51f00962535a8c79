import type { Request } from "express";
import type { RequestContext } from "./request-context.ts";

/** Logged and counted if the client disconnects before the response starts; never sent. nginx logs the same number. */
export const CLIENT_CLOSED_REQUEST = 499;

/** A request whose response is written, or whose client disconnected. */
export interface CompletedRequest {
  readonly request: Pick<Request, "method" | "originalUrl" | "headers">;
  readonly context: Pick<RequestContext, "requestId" | "key" | "clientIp" | "isNotYet" | "error">;
  /** Template of its path; `undefined` if no route matched. */
  readonly route: string | undefined;
  readonly status: number;
  readonly durationMs: number;
}
