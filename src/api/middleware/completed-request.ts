import type { Request } from "express";
import type { RequestContext } from "./request-context.ts";

/** Logged and counted if the connection closes before the response starts; never sent. The number is that of nginx. */
export const CLIENT_CLOSED_REQUEST = 499;

/** A request whose response is written, or whose connection closed before that. */
export interface CompletedRequest {
  readonly request: Pick<Request, "method" | "originalUrl" | "headers">;
  readonly context: Pick<RequestContext, "requestId" | "key" | "clientIp" | "isNotYet" | "error">;
  /** Template of its path; `undefined` if no route matched. */
  readonly route: string | undefined;
  readonly status: number;
  readonly durationMs: number;
}
