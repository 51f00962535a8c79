import { randomUUID } from "node:crypto";
import { STATUS_CODES } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../telemetry/log.ts";
import type { RecordSpan } from "../telemetry/span.ts";
import { canAnswerRaw, type Exchange, unfinishedExchange } from "./exchange.ts";
import { type LimitedBucket, type Limits, pushLimitFields } from "./limits.ts";
import type { ApiMetrics } from "./metrics.ts";
import type { Page } from "./page.ts";
import type { Problem } from "./problem.ts";
import { requestSpan } from "./request-span.ts";
import { answerHeaders } from "./security-headers.ts";

export interface AnswersOptions {
  readonly log: Logger;
  readonly clock: Clock;
  /** Once true, clients are told to go elsewhere for their next request. */
  readonly draining: () => boolean;
  readonly limits?: Limits | undefined;
  readonly metrics?: Pick<ApiMetrics, "answered" | "answeredNoRequest">;
  /** Absent if tracing is off. */
  readonly recordSpan?: RecordSpan | undefined;
}

/**
 * The one place that writes answers: envelopes, the headers that every answer has, and the log line.
 *
 * Each answer is one `writeHead` with a flat array, which Node takes as it is (kubernetes-facts.md).
 */
export class Answers {
  readonly #options: AnswersOptions;
  readonly #fixed = answerHeaders("application/json");

  constructor({ log, ...options }: AnswersOptions) {
    // To look for secrets in it costs more than the rest of a line; of these lines every field is chosen here.
    this.#options = { ...options, log: log.child({}, { redact: [] }) };
  }

  /** 200 with this result; without one (`undefined`), the envelope has only `requestId` and `status`. */
  success(exchange: Exchange, result: unknown): void {
    const { requestId } = exchange;
    this.#answer(exchange, 200, JSON.stringify({ requestId, status: 200, result }));
  }

  page(exchange: Exchange, page: Page): void {
    const { headers, body } = page.representation(exchange.request.headers["accept-encoding"]);
    this.#answer(exchange, 200, body, undefined, headers);
  }

  failure(exchange: Exchange, problem: Problem): void {
    this.#answer(exchange, problem.status, errorBody(problem), problem);
  }

  /** For what Node's HTTP layer could not read as a request, or not to its end. */
  raw(socket: Duplex, problem: Problem): void {
    const exchange = unfinishedExchange(socket);
    const requestId = exchange?.requestId ?? randomUUID();
    if (!socket.writable || !canAnswerRaw(socket)) {
      socket.destroy();
      return;
    }
    const body = errorBody(problem);
    const headers = this.#headers(requestId, body, problem.headers, exchange?.bucket);
    headers.push("Date", new Date(this.#options.clock.now()).toUTCString(), "Connection", "close");
    const lines = [`HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status] ?? ""}`];
    for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
    socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`, () => socket.destroy());
    if (exchange) {
      this.#close(exchange, problem.status, problem);
      return;
    }
    this.#options.metrics?.answeredNoRequest(problem.status);
    const client = socket instanceof Socket ? socket.remoteAddress : undefined;
    this.#options.log.info({ requestId, client, status: problem.status }, "request");
  }

  #answer(
    exchange: Exchange,
    status: number,
    body: string | Buffer,
    problem?: Problem,
    fixed = this.#fixed,
  ): void {
    if (exchange.closed) return;
    const { response, requestId, bucket } = exchange;
    const headers = this.#headers(requestId, body, problem?.headers ?? [], bucket, fixed);
    if (this.#options.draining() && !headers.includes("Connection")) headers.push("Connection", "close");
    response.writeHead(status, headers);
    // Head and body go out as one string, and what is all ASCII is the same bytes in Latin-1, but faster. A
    // refusal's head may have a realm that is not.
    const isAscii = status === 200 && Buffer.byteLength(body) === body.length;
    response.end(body, isAscii ? "latin1" : "utf8");
    this.#close(exchange, status, problem);
  }

  #headers(
    requestId: string,
    body: string | Buffer,
    more: readonly string[],
    bucket: LimitedBucket | undefined,
    fixed = this.#fixed,
  ): string[] {
    const length = String(Buffer.byteLength(body));
    const headers = ["X-Request-Id", requestId, "Content-Length", length, ...fixed, ...more];
    const { clock, limits } = this.#options;
    if (bucket) pushLimitFields(headers, bucket, clock.monotonic());
    else if (limits) headers.push(...limits.uncharged);
    return headers;
  }

  #close(exchange: Exchange, status: number, problem: Problem | undefined): void {
    exchange.closed = true;
    const { requestId, client, request, key, route, startedAt } = exchange;
    const { log, clock, metrics, recordSpan } = this.#options;
    const durationMs = clock.monotonic() - startedAt;
    metrics?.answered(exchange, status, durationMs / 1000);
    const span = recordSpan && requestSpan(exchange, status, clock.now(), durationMs);
    if (span) recordSpan(span);
    const line = {
      requestId,
      client,
      apiKey: key?.id,
      organization: key?.organizationId,
      method: request.method,
      route,
      status,
      durationMs: Math.round(durationMs * 1000) / 1000,
    };
    if (status === 500) log.error({ ...line, err: problem?.cause }, "request");
    else if (status > 500) log.warn({ ...line, because: problem && reasonOf(problem) }, "request");
    else log.info(line, "request");
  }
}

function errorBody(problem: Problem): string {
  return JSON.stringify({ error: problem.message, status: problem.status });
}

/** For the log, where the caller's text would not help. */
function reasonOf({ cause, message }: Problem): string {
  return cause instanceof Error ? cause.message : message;
}
