import { isConflict, KubeApiError } from "../../kube/errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../telemetry/log.ts";
import type { Action } from "../decide/actions.ts";
import { describeAction } from "./action-log.ts";
import { type Applier, apply } from "./apply.ts";

export interface ActionRunnerOptions extends Applier {
  readonly clock: Clock;
  readonly log: Logger;
  /** Reconciles a service again; called when a slow write has ended. */
  readonly enqueue: (serviceId: string) => void;
  /**
   * The same after a slow write has failed, with a delay that grows with each failure.
   *
   * @param leastMs delay that the server requests
   */
  readonly retry: (serviceId: string, leastMs: number) => void;
}

/**
 * A reconciliation waits this long for its writes. Slower writes continue in the background, so they block no worker.
 */
const PATIENCE_MS = 5000;

/** On shutdown, the process waits this long for writes in flight before it releases the lease. */
const SETTLE_MS = 10_000;

/** Runs the actions of reconciliations. The actions of one reconciliation run concurrently. */
export class ActionRunner {
  readonly #options: ActionRunnerOptions;
  /** At most one entry for each reconciliation with slow writes; each write has a deadline. */
  readonly #inFlight = new Map<Promise<void>, string>();

  constructor(options: ActionRunnerOptions) {
    this.#options = options;
  }

  /**
   * Runs all actions, even if some of them fail.
   *
   * @returns an error if our view is outdated, or if the error is not about a single pipe
   */
  async run(
    serviceId: string,
    actions: readonly Action[],
    requestId: string | undefined,
  ): Promise<{ readonly error: unknown } | undefined> {
    if (actions.length === 0) return undefined;
    const { clock, enqueue, retry, log } = this.#options;
    const errors: unknown[] = [];
    let isWaiting = true;
    const done = Promise.allSettled(actions.map((action) => this.#one(serviceId, action, requestId))).then(
      (results) => {
        for (const result of results) if (result.status === "rejected") errors.push(result.reason);
        this.#inFlight.delete(done);
        if (isWaiting) return;
        for (const err of errors) log.warn({ serviceId, err }, "a slow write failed; trying again");
        if (errors.length === 0) enqueue(serviceId);
        else retry(serviceId, Math.max(...errors.map(retryAfterMs)));
      },
    );
    this.#inFlight.set(done, serviceId);
    await within(clock, PATIENCE_MS, done);
    isWaiting = false;
    const [first] = errors;
    return errors.length === 0 ? undefined : { error: errors.find((each) => !isConflict(each)) ?? first };
  }

  /** Returns true while writes of a service are in flight. */
  isBusy(serviceId: string): boolean {
    return [...this.#inFlight.values()].includes(serviceId);
  }

  /** Resolves when no write is in flight, or after 10 s. */
  async settled(): Promise<void> {
    await within(this.#options.clock, SETTLE_MS, Promise.all(this.#inFlight.keys()));
  }

  async #one(serviceId: string, action: Action, requestId: string | undefined): Promise<void> {
    const { log, writes } = this.#options;
    const recordOf = () => ("pipe" in action ? writes.records.get(action.pipe.metadata.uid) : undefined);
    const before = recordOf();
    await apply(this.#options, action);
    const after = recordOf();
    // A dry run that succeeds does not change the record of an earlier write.
    const error = after && after !== before && "error" in after.outcome ? after.outcome.error : undefined;
    const line = { serviceId, ...describeAction(action), requestId };
    if (error && action.type !== "refresh") log.warn({ ...line, ...error }, `${action.type} failed`);
    else if (action.type === "validate") log.debug(line, action.type);
    else log.info(line, action.type);
  }
}

function retryAfterMs(error: unknown): number {
  return error instanceof KubeApiError ? (error.retryAfterMs ?? 0) : 0;
}

/** Resolves when the work is done, or after the timeout. */
async function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  const patience = Promise.withResolvers<void>();
  const cancel = clock.after(ms, patience.resolve);
  await Promise.race([work, patience.promise]);
  cancel();
}
