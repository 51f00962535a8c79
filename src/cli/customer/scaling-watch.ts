import { describeSize, type Size, sameSize } from "../../domain/size.ts";
import type { Clock } from "../../runtime/clock.ts";
import { CliError } from "../failure.ts";
import type { News } from "../view/follow.ts";
import type { RescaleView } from "../view/rescale-view.ts";
import { profileFlag } from "./access.ts";
import { type ProgressAnswer, progress, size, toSize } from "./answers.ts";
import type { ApiClient } from "./client.ts";
import { NoAnswer } from "./no-answer.ts";
import { viewOf, viewOfSize } from "./progress-view.ts";
import { Refusal } from "./refusal.ts";

export interface ScalingWatchOptions {
  readonly api: Pick<ApiClient, "askOnce" | "access">;
  /** Of the service's pipesCdcScaling. */
  readonly path: string;
  readonly service: string;
  /** What this program itself has asked for, if anything. */
  readonly asked: { readonly size: Size; readonly requestId: string } | undefined;
  readonly clock: Clock;
  /** Rejects with the signal's reason once it is aborted. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** A key may send 10 requests in 10 s by default, and others may use it too. */
const POLL_MS = 2500;
const MOST_POLL_MS = 10_000;

interface Look {
  /** Absent where what was told must not be believed yet. */
  readonly view: RescaleView | undefined;
  readonly restMs: number;
}

/**
 * How a rescale goes on, by asking the API every few seconds.
 *
 * Guarantees:
 * - A lost connection and an API that is not available are told as trouble, and outlasted; once the API has
 *   answered at all, that is: one that never did fails at once.
 * - The outcome of another request is never taken for that of ours. A process of the API may lag behind by a
 *   second, so that ours was superseded is believed when it is told twice, a poll apart (docs/adr/0017).
 * - An API that does not know of progress is asked for the size that all pipes have.
 */
export class ScalingWatch {
  readonly #options: ScalingWatchOptions;
  #hasAnswered: boolean;
  #isOlder = false;
  #last: ProgressAnswer | undefined;
  #progressedAt: Date | undefined;
  #isDoubted = false;

  constructor(options: ScalingWatchOptions) {
    this.#options = options;
    this.#hasAnswered = options.asked !== undefined;
  }

  /** As the API has told it last. */
  get last(): ProgressAnswer | undefined {
    return this.#last;
  }

  /** @throws CliError when it is known that there will be no outcome, or none that can be seen */
  async *news(signal: AbortSignal): AsyncGenerator<News> {
    const { wait } = this.#options;
    for (let troubles = 0; ; ) {
      let waitMs = POLL_MS;
      try {
        const { view, restMs } = await this.#look();
        this.#hasAnswered = true;
        troubles = 0;
        waitMs = Math.max(POLL_MS, restMs);
        if (view) yield { view };
      } catch (error) {
        if (!this.#hasAnswered || !isPassing(error)) throw error;
        troubles += 1;
        const retryMs = error instanceof Refusal ? (error.retryAfterMs ?? 0) : 0;
        waitMs = Math.max(retryMs, Math.min(POLL_MS * troubles, MOST_POLL_MS));
        yield { trouble: `${error.message} Trying again.` };
      }
      await wait(waitMs, signal);
    }
  }

  async #look(): Promise<Look> {
    const { api, path } = this.#options;
    if (this.#isOlder) return await this.#lookAtSize();
    try {
      const { result, restMs } = await api.askOnce({ method: "GET", path: `${path}/progress` }, progress);
      return { view: this.#viewOf(result), restMs };
    } catch (error) {
      // Of an absent service the other operation says the same.
      if (this.#last || !(error instanceof Refusal) || error.status !== 404) throw error;
      const look = await this.#lookAtSize();
      this.#isOlder = true;
      return look;
    }
  }

  async #lookAtSize(): Promise<Look> {
    const { api, path, service, asked } = this.#options;
    const { result, restMs } = await api.askOnce({ method: "GET", path }, size);
    if (!asked) throw olderApi(api.access.url);
    const reached = toSize(result);
    const view = viewOfSize(service, asked.size, reached);
    if (!sameSize(reached, asked.size)) return { view, restMs };
    return { view: { ...view, state: "scaled", reason: "Scaled", message: "" }, restMs };
  }

  #viewOf(told: ProgressAnswer): RescaleView | undefined {
    const { service, clock } = this.#options;
    const isForeign = this.#isForeign(told);
    if (isForeign && this.#isDoubted)
      throw superseded(told, `${service} --watch${profileFlag(this.#options.api.access)}`);
    this.#isDoubted = isForeign;
    if (isForeign) return undefined;
    if ((told.pipes?.updated ?? 0) > (this.#last?.pipes?.updated ?? Number.POSITIVE_INFINITY)) {
      this.#progressedAt = new Date(clock.now());
    }
    this.#last = told;
    return viewOf(service, told, this.#progressedAt);
  }

  /** Of another request, and for another size: who else asks for the same is welcome. */
  #isForeign({ requestId, desired }: ProgressAnswer): boolean {
    const { asked } = this.#options;
    return (
      asked !== undefined &&
      requestId !== asked.requestId &&
      !sameSize(desired && toSize(desired), asked.size)
    );
  }
}

/** @param watched the words of a command that watches it */
function superseded({ requestId, desired }: ProgressAnswer, watched: string): CliError {
  const what = desired ? ` (${describeSize(toSize(desired))})` : "";
  const who = requestId === undefined ? "A change that came by no request" : `Another request, ${requestId},`;
  return new CliError(
    `${who} has asked for another size since${what}: yours was superseded. \`pipe-scaling scaling get ${watched}\` shows what becomes of that.`,
  );
}

function olderApi(url: string): CliError {
  return new CliError(
    `The API at ${url} is of an older version, which does not tell how far a rescale is: it cannot be watched.`,
  );
}

/** What may be over by itself; a key that is not accepted any more, or a service that is gone, is not. */
function isPassing(error: unknown): error is NoAnswer | Refusal {
  return (
    error instanceof NoAnswer || (error instanceof Refusal && (error.status === 429 || error.status >= 500))
  );
}
