import type { Dispatcher } from "undici";
import { abortable } from "./abortable.ts";
import { type Action, actionOf, dateOf, label, queryString } from "./call.ts";
import type { Connection } from "./connection.ts";
import { Deadline } from "./deadline.ts";
import { KubeApiError, KubeConfigError, KubeUnreachableError, messageOf } from "./errors.ts";
import { MissingRoles } from "./missing-roles.ts";
import { decode, isProtobuf, PROTOBUF, status } from "./protobuf/envelope.ts";
import type { Message } from "./protobuf/message.ts";
import { Semaphore } from "./semaphore.ts";

/** Default deadline of a call, and of the response headers of a stream. */
const CALL_TIMEOUT_MS = 5000;

/** A proxy responds so when it gets no response from the API server, or an incomplete one. */
const GATEWAY_ERRORS = [502, 503, 504];

/** Within this time after an outage, the API server may have just started. */
const AFTER_OUTAGE_MS = 10_000;

/**
 * Maximum number of streams that are being opened at a time. A controller with hundreds of namespaces opens thousands,
 * each with a TLS handshake; if all were opened at once, none would complete within its deadline.
 */
export const MAX_OPENING_STREAMS = 64;

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
  /** Requests protobuf, and reads these fields of the response. Without it, the response is JSON. */
  readonly message?: Message<unknown> | undefined;
}

/** The body of a stream as it arrives. */
export interface Stream extends AsyncIterable<Buffer> {
  /** Otherwise it is JSON. */
  readonly isProtobuf?: boolean;
}

/** A call whose response headers have arrived, or that failed before. */
export interface EndedCall extends Action {
  readonly method: string;
  readonly host: string;
  /** Status code of the response; 0 if there was none. */
  readonly code: number;
  /** Time until the response headers arrived or the call failed. */
  readonly seconds: number;
  /** The response's `Date` header, in milliseconds since 1970; undefined if there was none. */
  readonly date: number | undefined;
}

/**
 * Calls to the API server, with bodies in JSON, and responses in JSON or protobuf.
 *
 * Every call has a deadline, which also covers obtaining credentials and waiting for a free connection. An error
 * response is a {@link KubeApiError}; no response, half of one, or no credentials is a {@link KubeUnreachableError}.
 * `isOutcomeUnknown` tells whether a failed write may have succeeded. A call whose signal is aborted rejects with the
 * reason of the signal. A request that is still queued at its deadline is never sent. This class retries nothing: the
 * caller knows what is safe to repeat.
 */
export class KubeClient {
  readonly #connection: Connection;
  readonly #onCall: (call: EndedCall) => void;
  readonly #origin: string;
  readonly #host: string;
  readonly #basePath: string;
  readonly #openings = new Semaphore(MAX_OPENING_STREAMS);
  readonly #missingRoles = new MissingRoles();
  /** Monotonic time of the last missing or incomplete response. */
  #lostAtMs = Number.NEGATIVE_INFINITY;

  /** @param onCall is called once per call, unless its signal is aborted before the response; must not throw */
  constructor(connection: Connection, onCall: (call: EndedCall) => void = () => undefined) {
    const { origin, host, pathname } = connection.server;
    this.#connection = connection;
    this.#onCall = onCall;
    this.#origin = origin;
    this.#host = host;
    this.#basePath = pathname.replace(/\/$/, "");
  }

  get server(): string {
    return `${this.#origin}${this.#basePath}`;
  }

  /**
   * Returns the body of the response, without validation (objects.ts). Its Content-Type determines how it is read,
   * because a server may respond with JSON to a request for protobuf.
   */
  async json<T>(request: KubeRequest): Promise<T> {
    const { body, contentType } = await this.#call(request);
    try {
      // The caller's type argument must match the message of the request.
      if (request.message && isProtobuf(contentType)) return decode(request.message, body) as T;
      return JSON.parse(body.toString());
    } catch (cause) {
      const beginning = body.toString("utf8", 0, 100);
      throw new KubeUnreachableError(`${label(request)}: the response cannot be read: ${beginning}`, {
        cause,
      });
    }
  }

  /**
   * The body as it arrives, for watches, on a connection of its own. The deadline starts when no more than 63 other
   * streams are being opened and ends with the response's headers; the body ends when `signal` is aborted. A body
   * that breaks off throws the error of undici. The reader must detect silence itself (half-open connections).
   */
  async stream(request: KubeRequest & { readonly signal: AbortSignal }): Promise<Stream> {
    const release = await this.#openings.acquire(request.signal);
    const deadline = new AbortController();
    const timer = setTimeout(
      () => deadline.abort(new Error("no response in time")),
      request.timeoutMs ?? CALL_TIMEOUT_MS,
    );
    try {
      const signal = AbortSignal.any([request.signal, deadline.signal]);
      const response = await this.#send("watches", request, signal);
      const { body, headers } = response;
      body.once("error", () => {
        if (!request.signal.aborted) this.#lostAtMs = performance.now();
      });
      return {
        isProtobuf: isProtobuf(headers["content-type"]),
        [Symbol.asyncIterator]: () => body[Symbol.asyncIterator](),
      };
    } finally {
      clearTimeout(timer);
      release();
    }
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  async #call(request: KubeRequest): Promise<Body> {
    const deadline = new Deadline(request.timeoutMs ?? CALL_TIMEOUT_MS, request.signal);
    try {
      const response = await this.#send("calls", request, deadline.signal);
      const { "content-type": contentType } = response.headers;
      return { body: await this.#bytes(request, response), contentType };
    } finally {
      deadline.end();
    }
  }

  async #send(pool: PoolName, request: KubeRequest, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const startedAt = performance.now();
    let response: Dispatcher.ResponseData;
    try {
      // undici follows the signal only once a connection is free for the request.
      response = await abortable(this.#dispatch(pool, request, signal), signal);
    } catch (cause) {
      request.signal?.throwIfAborted();
      this.#reportCall(request, startedAt, undefined);
      throw this.#unreachable(request, cause);
    }
    this.#reportCall(request, startedAt, response);
    if (response.statusCode >= 200 && response.statusCode < 300) return response;
    if (GATEWAY_ERRORS.includes(response.statusCode)) this.#lostAtMs = performance.now();
    const { "retry-after": retryAfter, "content-type": contentType } = response.headers;
    const body = await this.#bytes(request, response);
    const nowMs = performance.now();
    throw new KubeApiError(
      label(request),
      response.statusCode,
      isProtobuf(contentType) ? statusIn(body) : body.toString(),
      {
        retryAfterHeader: typeof retryAfter === "string" ? retryAfter : undefined,
        isSoonAfterOutage: nowMs - this.#lostAtMs < AFTER_OUTAGE_MS,
        areDeleted: (roles) => this.#missingRoles.areDeleted(roles, nowMs),
      },
    );
  }

  async #dispatch(
    pool: PoolName,
    request: KubeRequest,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const session = await this.#connection.session();
    // Reading the credentials can outlast the deadline, and a call that was reported as failed must not be sent.
    signal.throwIfAborted();
    const response = await session[pool].request({
      origin: this.#origin,
      method: request.method ?? "GET",
      path: `${this.#basePath}${request.path}${queryString(request.query)}`,
      headers: {
        accept: request.message ? ACCEPT_PROTOBUF : "application/json",
        "user-agent": "pipe-scaling",
        ...session.headers,
        ...(request.body === undefined ? {} : { "content-type": request.patchType ?? "application/json" }),
      },
      body: request.body === undefined ? null : JSON.stringify(request.body),
      signal,
    });
    if (response.statusCode === 401) this.#connection.reject(session);
    return response;
  }

  #reportCall(
    request: KubeRequest,
    startedAt: number,
    response: Pick<Dispatcher.ResponseData, "statusCode" | "headers"> | undefined,
  ): void {
    this.#onCall({
      ...actionOf(request),
      method: request.method ?? "GET",
      host: this.#host,
      code: response?.statusCode ?? 0,
      seconds: (performance.now() - startedAt) / 1000,
      date: dateOf(response?.headers["date"]),
    });
  }

  #unreachable(request: KubeRequest, cause: unknown): KubeUnreachableError {
    const why = messageOf(cause);
    if (cause instanceof KubeConfigError) {
      return new KubeUnreachableError(`${label(request)}: not sent: ${why}`, { cause });
    }
    this.#lostAtMs = performance.now();
    const proxy = this.#connection.proxyInUse;
    const route = proxy ? `${this.server} through the proxy ${proxy.host}` : this.server;
    return new KubeUnreachableError(`${label(request)}: no response from ${route}: ${why}`, { cause });
  }

  async #bytes(request: KubeRequest, response: Dispatcher.ResponseData): Promise<Buffer> {
    try {
      return Buffer.from(await response.body.arrayBuffer());
    } catch (cause) {
      request.signal?.throwIfAborted();
      throw this.#unreachable(request, cause);
    }
  }
}

/** The error in a body, as JSON. The status code of the response counts even if the body cannot be read. */
function statusIn(body: Buffer): string {
  try {
    return JSON.stringify(decode(status, body));
  } catch (error) {
    return messageOf(error);
  }
}

/** Some kinds, such as custom resources, have no protobuf. */
const ACCEPT_PROTOBUF = `${PROTOBUF}, application/json`;

interface Body {
  readonly body: Buffer;
  readonly contentType: string | string[] | undefined;
}

type PoolName = "calls" | "watches";
