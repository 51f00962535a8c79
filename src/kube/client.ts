import type { Dispatcher } from "undici";
import { type Action, actionOf } from "./call.ts";
import type { Connection } from "./connection.ts";
import { KubeApiError, KubeUnreachableError } from "./errors.ts";

/** Longest that a call other than a watch may take (api-contract, part 2). */
const CALL_TIMEOUT_MS = 5000;

type PatchType =
  | "application/apply-patch+yaml"
  | "application/merge-patch+json"
  | "application/strategic-merge-patch+json";

export interface KubeRequest {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  /** Type of a PATCH's body; other bodies are plain JSON. */
  readonly patchType?: PatchType;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number;
}

/** A call, once it is known what came of it. */
export interface EndedCall extends Action {
  readonly method: string;
  readonly host: string;
  /** Of the answer; 0 if there was none. */
  readonly code: number;
  /** Until the answer began. */
  readonly seconds: number;
}

/**
 * Calls to the API server as plain JSON.
 *
 * Every call has a deadline. A refusal is a {@link KubeApiError}; no answer, or half of one, is a
 * {@link KubeUnreachableError}, after which the outcome of a write is unknown. Nothing is retried here:
 * who calls knows what is safe to repeat.
 */
export class KubeClient {
  readonly #connection: Connection;
  readonly #onCall: (call: EndedCall) => void;

  /** @param onCall is told of each call; must not throw */
  constructor(connection: Connection, onCall: (call: EndedCall) => void = () => undefined) {
    this.#connection = connection;
    this.#onCall = onCall;
  }

  get server(): string {
    return this.#connection.server;
  }

  /** The answer's body, typed by trust in the API server's own validation (objects.ts). */
  async json<T>(request: KubeRequest): Promise<T> {
    const deadline = AbortSignal.timeout(request.timeoutMs ?? CALL_TIMEOUT_MS);
    const signal = request.signal ? AbortSignal.any([request.signal, deadline]) : deadline;
    const response = await this.#send(request, signal);
    const body = await this.#text(request, response);
    try {
      return JSON.parse(body);
    } catch (cause) {
      throw new KubeUnreachableError(`${label(request)}: the answer is not JSON: ${body.slice(0, 100)}`, {
        cause,
      });
    }
  }

  /**
   * The body as it arrives, for watches: no deadline on the whole, only `timeoutMs` until the answer begins.
   * Ends when `signal` is aborted; who reads must watch over silence (half-open connections).
   */
  async stream(request: KubeRequest & { readonly signal: AbortSignal }): Promise<AsyncIterable<Buffer>> {
    const beginning = new AbortController();
    const timer = setTimeout(
      () => beginning.abort(new Error("no answer in time")),
      request.timeoutMs ?? CALL_TIMEOUT_MS,
    );
    try {
      const response = await this.#send(request, AbortSignal.any([request.signal, beginning.signal]));
      return response.body;
    } finally {
      clearTimeout(timer);
    }
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  async #send(request: KubeRequest, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const authorization = await this.#connection.authorization();
    const { origin, host, pathname } = new URL(this.#connection.server);
    const base = pathname.replace(/\/$/, "");
    const method = request.method ?? "GET";
    const startedAt = performance.now();
    const ended = (code: number) => {
      const seconds = (performance.now() - startedAt) / 1000;
      this.#onCall({ ...actionOf(request), method, host, code, seconds });
    };
    let response: Dispatcher.ResponseData;
    try {
      response = await this.#connection.pool.request({
        origin,
        method,
        path: `${base}${request.path}${queryString(request.query)}`,
        headers: {
          accept: "application/json",
          "user-agent": "pipe-scaling",
          ...(authorization === undefined ? {} : { authorization }),
          ...(request.body === undefined ? {} : { "content-type": request.patchType ?? "application/json" }),
        },
        body: request.body === undefined ? null : JSON.stringify(request.body),
        signal,
      });
    } catch (cause) {
      request.signal?.throwIfAborted();
      ended(0);
      throw this.#unreachable(request, cause);
    }
    ended(response.statusCode);
    if (response.statusCode >= 200 && response.statusCode < 300) return response;
    const retryAfter = response.headers["retry-after"];
    throw new KubeApiError(
      label(request),
      response.statusCode,
      await this.#text(request, response),
      typeof retryAfter === "string" ? retryAfter : undefined,
    );
  }

  #unreachable(request: KubeRequest, cause: unknown): KubeUnreachableError {
    const { server, proxy } = this.#connection;
    const way = proxy === undefined ? server : `${server} by the proxy ${proxy}`;
    const why = cause instanceof Error ? cause.message || cause.name : String(cause);
    return new KubeUnreachableError(`${label(request)}: no answer from ${way}: ${why}`, { cause });
  }

  async #text(request: KubeRequest, response: Dispatcher.ResponseData): Promise<string> {
    try {
      return await response.body.text();
    } catch (cause) {
      request.signal?.throwIfAborted();
      throw this.#unreachable(request, cause);
    }
  }
}

function label(request: KubeRequest): string {
  return `${request.method ?? "GET"} ${request.path}`;
}

function queryString(query: KubeRequest["query"]): string {
  const entries = Object.entries(query ?? {}).filter(([, value]) => value !== undefined);
  if (entries.length === 0) return "";
  return `?${new URLSearchParams(entries.map(([key, value]): [string, string] => [key, String(value)])).toString()}`;
}
