import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { ApiKey } from "../records/api-key.ts";
import type { LimitedBucket } from "./limits.ts";

/** One request and its answer, with what the log line about them is to say. */
export interface Exchange {
  readonly requestId: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Monotonic. */
  readonly startedAt: number;
  /** The address that it comes from; `undefined` if the connection was gone by then. */
  readonly client: string | undefined;
  key: ApiKey | undefined;
  /** What the request was charged to, so that its answer can tell what is left. */
  bucket: LimitedBucket | undefined;
  /** Template of the route's path; absent where none matched. */
  route: string | undefined;
  /** It is answered, or never will be, and logged; what comes of it later changes nothing. */
  closed: boolean;
}

const latest = new WeakMap<Duplex, Exchange>();

/** @param client where it is not who is at the other end of the connection */
export function openExchange(
  request: IncomingMessage,
  response: ServerResponse,
  now: number,
  client = request.socket.remoteAddress,
): Exchange {
  const exchange = {
    requestId: randomUUID(),
    request,
    response,
    startedAt: now,
    client,
    key: undefined,
    bucket: undefined,
    route: undefined,
    closed: false,
  };
  latest.set(request.socket, exchange);
  return exchange;
}

/**
 * Whether an answer written past Node's HTTP layer onto this connection, because its parser gave up, would
 * be taken for what it is. Behind an answer that is still owed it would be taken for that one; behind one
 * that has begun it would be garbage.
 */
export function canAnswerRaw(socket: Duplex): boolean {
  const exchange = latest.get(socket);
  if (exchange === undefined) return true;
  const { request, response } = exchange;
  // A response has its socket when those before it are out.
  return request.complete ? response.writableFinished : response.socket !== null && !response.headersSent;
}

/** Whether a request has come on this connection whose answer is not out yet. */
export function isServing(socket: Duplex): boolean {
  const exchange = latest.get(socket);
  return exchange !== undefined && !exchange.response.writableFinished;
}

/** The exchange whose own body broke off, so that both sides of the log name the same request. */
export function unfinishedExchange(socket: Duplex): Exchange | undefined {
  const exchange = latest.get(socket);
  return exchange && !exchange.request.complete ? exchange : undefined;
}
