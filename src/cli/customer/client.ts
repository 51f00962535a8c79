import * as z from "zod";
import { describeIssues } from "../../records/parse.ts";
import { printable } from "../view/text.ts";
import type { Access } from "./access.ts";
import { ForeignAnswer, foreign, jsonOf, Refusal, refusalOf, secondsOf } from "./refusal.ts";
import type { ApiRequest } from "./request.ts";
import type { RawAnswer, Transport } from "./transport.ts";

export interface ApiClientOptions {
  readonly access: Access;
  readonly transport: Pick<Transport, "send">;
  /** People are told of each wait. */
  readonly tell: (sentence: string) => void;
  /** Rejects with the signal's reason once it is aborted. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
}

/** A 200. */
export interface Answer<T> {
  readonly requestId: string;
  readonly result: T;
  /** How long the key should rest before its next request, to stay clear of its limit. */
  readonly restMs: number;
}

/** Of a request that is sent again and again. */
const MOST_TRIES = 5;
const MOST_WAITING_MS = 60_000;

/** Requests to be left for others who use the same key. */
const SPARE_REQUESTS = 2;

/**
 * The API's operations as a customer's program calls them.
 *
 * What is not answered 200 is thrown as a CliError, whose message says what to do: NoAnswer, Refusal, or
 * ForeignAnswer. A 429 or a 503 is waited out as long as it is told, and the request sent again, a write too:
 * the contract says that it is safe. A request that was not answered at all is never sent again by itself.
 */
export class ApiClient {
  readonly #options: ApiClientOptions;

  constructor(options: ApiClientOptions) {
    this.#options = options;
  }

  get access(): Access {
    return this.#options.access;
  }

  /** @param schema of the result */
  async ask<T>(request: ApiRequest, schema: z.ZodType<T>): Promise<Answer<T>> {
    const { tell, wait, signal } = this.#options;
    let waitedMs = 0;
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.askOnce(request, schema);
      } catch (error) {
        const retryMs = error instanceof Refusal ? error.retryAfterMs : undefined;
        const isEnough = retryMs === undefined || waitedMs + retryMs > MOST_WAITING_MS;
        if (isEnough || tries === MOST_TRIES || !(error instanceof Error)) throw error;
        tell(`${error.message} Trying again in ${retryMs / 1000} s.`);
        await wait(retryMs, signal);
        waitedMs += retryMs;
      }
    }
  }

  /** The same, without trying again. */
  async askOnce<T>(request: ApiRequest, schema: z.ZodType<T>): Promise<Answer<T>> {
    const { access, transport, signal } = this.#options;
    signal.throwIfAborted();
    const isWrite = request.method !== "GET";
    const answer = isWrite ? await this.#finish(request) : await transport.send(request, signal);
    if (answer.status !== 200) throw refusalOf(answer, request, access);
    return { ...this.#read(answer, schema), restMs: restMs(answer) };
  }

  /** A change that is under way is not given up: whether it was made should be told. */
  async #finish(request: ApiRequest): Promise<RawAnswer> {
    const { transport, tell, signal } = this.#options;
    const onAbort = () =>
      tell("The change is under way: its answer is waited for. To be interrupted again leaves it unknown.");
    signal.addEventListener("abort", onAbort);
    try {
      return await transport.send(request);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  #read<T>(answer: RawAnswer, schema: z.ZodType<T>): Omit<Answer<T>, "restMs"> {
    const { access } = this.#options;
    const envelope = z.object({ requestId: z.string(), status: z.literal(200) });
    const read = envelope.safeParse(jsonOf(answer.text));
    if (!read.success) throw foreign(answer, access);
    const { requestId } = read.data;
    const { success, data, error } = z.object({ result: schema }).safeParse(jsonOf(answer.text));
    if (success) return { requestId, result: data.result };
    throw new ForeignAnswer(
      `${access.url} is of another version than this program, which does not understand its answer: ${printable(describeIssues(error))}. Use the program of the API's version. (request ${printable(requestId)})`,
    );
  }
}

/** The limit is told on every answer; a server without one tells nothing. */
function restMs({ headers }: RawAnswer): number {
  const remaining = Number(headers["x-ratelimit-remaining"] ?? SPARE_REQUESTS);
  return remaining < SPARE_REQUESTS ? (secondsOf(headers["x-ratelimit-reset"]) ?? 0) : 0;
}
