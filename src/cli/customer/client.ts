import * as z from "zod";
import { describeIssues } from "../../records/parse.ts";
import { CliError } from "../failure.ts";
import { printable } from "../view/text.ts";
import type { Access } from "./access.ts";
import { ErrorResponse, errorOf, jsonOf, notThisApi } from "./errors.ts";
import type { ApiRequest, RawResponse, Transport } from "./transport.ts";

export interface ApiClientOptions {
  readonly access: Access;
  readonly transport: Pick<Transport, "send">;
  /** Prints why a command waits. */
  readonly tell: (sentence: string) => void;
  /** Rejects once the signal is aborted. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
}

/** The request ID and the result of a response with status 200. */
export interface ApiResponse<T> {
  readonly requestId: string;
  readonly result: T;
}

const MAX_ATTEMPTS = 5;
/** A gateway can name hours, long after the API works again. */
export const MAX_WAIT_MS = 60_000;

/** Smaller clock differences are ignored: the Date header has only whole seconds, and a response takes time. */
const CLOCK_TOLERANCE_MS = 5000;

interface EarlierAttempts {
  /** Error of the last attempt that may have made the change. */
  unconfirmed: ErrorResponse | undefined;
}

const envelope = z.object({ requestId: z.string(), status: z.literal(200) });

/**
 * Sends requests to the API. A failed request throws a CliError whose message says what to do. After a 429, 502, 503 or
 * 504, `request` retries reads and writes after the delay that the response names, or else after 5 s, but not the end
 * of a boost whose outcome is unknown. A request without a response is not retried. If an attempt to remove a member
 * may have succeeded, a retry that finds no such member is a success.
 */
export class ApiClient {
  readonly access: Access;
  readonly #options: ApiClientOptions;
  #aheadMs = 0;

  constructor(options: ApiClientOptions) {
    this.access = options.access;
    this.#options = options;
  }

  /**
   * The current time by the clock of the API. The clock of this machine can be wrong, so this adds the difference that
   * the last response showed.
   */
  now(): number {
    return Date.now() + this.#aheadMs;
  }

  /** @param schema of the result */
  async request<T>(request: ApiRequest, schema: z.ZodType<T>): Promise<ApiResponse<T>> {
    const { tell, wait, signal } = this.#options;
    const earlier: EarlierAttempts = { unconfirmed: undefined };
    let waitedMs = 0;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#attempt(request, schema, earlier);
      } catch (error) {
        if (!(error instanceof ErrorResponse) || error.retryAfterMs === undefined) throw error;
        const { retryAfterMs } = error;
        if (attempt === MAX_ATTEMPTS || waitedMs + retryAfterMs > MAX_WAIT_MS) throw error;
        tell(`${error.message} Trying again in ${retryAfterMs / 1000} s.`);
        await wait(retryAfterMs, signal);
        waitedMs += retryAfterMs;
      }
    }
  }

  async #attempt<T>(
    request: ApiRequest,
    schema: z.ZodType<T>,
    earlier: EarlierAttempts,
  ): Promise<ApiResponse<T>> {
    try {
      return await this.requestOnce(request, schema);
    } catch (error) {
      if (!(error instanceof ErrorResponse)) throw error;
      const { unconfirmed } = earlier;
      if (unconfirmed && error.isGone && request.method === "DELETE") {
        const requestId = unconfirmed.requestId ?? error.requestId ?? "";
        return { requestId, result: schema.parse(undefined) };
      }
      if (error.isOutcomeUnknown) earlier.unconfirmed = error;
      throw error;
    }
  }

  async requestOnce<T>(request: ApiRequest, schema: z.ZodType<T>): Promise<ApiResponse<T>> {
    const { access, transport, signal } = this.#options;
    signal.throwIfAborted();
    const isRead = request.method === "GET";
    const response = isRead ? await transport.send(request, signal) : await this.#write(request);
    const aheadMs = Date.parse(response.headers["date"] ?? "") - Date.now();
    this.#aheadMs = Math.abs(aheadMs) > CLOCK_TOLERANCE_MS ? aheadMs : 0;
    if (response.status !== 200) throw errorOf(response, request, access);
    return this.#read(response, schema);
  }

  /** Not aborted by Ctrl-C, so that the outcome is known. */
  async #write(request: ApiRequest): Promise<RawResponse> {
    const { transport, tell, signal } = this.#options;
    const onAbort = () =>
      tell("Waiting for the response to the change. If you press Ctrl-C again, the outcome is unknown.");
    signal.addEventListener("abort", onAbort);
    try {
      return await transport.send(request);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  #read<T>(response: RawResponse, schema: z.ZodType<T>): ApiResponse<T> {
    const { access } = this.#options;
    const body = jsonOf(response.text);
    const read = envelope.safeParse(body);
    if (!read.success) throw notThisApi(response, access);
    const { requestId } = read.data;
    const { success, data, error } = z.object({ result: schema }).safeParse(body);
    if (success) return { requestId, result: data.result };
    throw new CliError(
      `The response of ${access.url} does not match this version of pipe-scaling: ${printable(describeIssues(error))}. Use the pipe-scaling version of the API. (request ${printable(requestId)})`,
    );
  }
}
