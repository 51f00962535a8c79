import { formatSize } from "../../domain/size.ts";
import { isConflict, KubeApiError } from "../../kube/errors.ts";
import { type Clock, waitAtMost } from "../../runtime/clock.ts";
import type { WorkQueue } from "../../runtime/work-queue.ts";
import type { Logger } from "../../telemetry/log.ts";
import type { Action, PipeAction } from "../actions.ts";
import { formatAllotment } from "../observe/resources.ts";
import { keyOfPipe, nameOf } from "../observe/workloads/kinds.ts";
import type { WriteError } from "../observe/write-record.ts";
import type { Applier } from "./applier.ts";
import { apply } from "./apply.ts";

export interface ActionRunnerOptions extends Applier {
  readonly clock: Clock;
  readonly log: Logger;
  /** To reconcile a service again when a slow write has ended. */
  readonly queue: Pick<WorkQueue, "add" | "retry">;
}

/** At least one action failed. A conflict of a write to a pipe or a pod does not count, because it is repeated soon. */
interface Failed {
  /** Present if an action threw: the error is not about a single pipe, or our view of another object is outdated. */
  readonly error?: unknown;
}

/**
 * A reconciliation waits this long for its writes, divided by the number of reconciliations with writes in flight.
 * Slower writes continue in the background, so those of many services block no worker.
 */
const PATIENCE_MS = 5000;

/**
 * The actions of all services at a time. The other connections (MAX_CALL_CONNECTIONS) are for urgent actions, reads and
 * statuses. A webhook that does not respond keeps each call for up to 30 s, and must keep no other service waiting.
 */
const MOST_AT_ONCE = 96;

/**
 * Most actions of a service at a time: two thirds of what the other services leave, which is 64 if they have none. So
 * the first services leave something to each that follows, and get less themselves when their actions end. A service
 * may always have one.
 */
function mostBeside(others: number): number {
  return Math.max(1, Math.floor(((MOST_AT_ONCE - others) * 2) / 3));
}

/**
 * These are not limited: without them, a workload stays paused or broken, or a pod keeps a size that failed. They are
 * few, except for reads, which no webhook delays.
 */
const URGENT: readonly Action["type"][] = ["continue-commit", "resume", "refresh", "roll-back", "return-pod"];

function isUrgent({ type }: Action): boolean {
  return URGENT.includes(type);
}

/** On shutdown, the process waits this long for writes in flight before it releases the lease. */
const SETTLE_MS = 10_000;

/** Runs the actions of reconciliations. The actions of one reconciliation run concurrently. */
export class ActionRunner {
  readonly #options: ActionRunnerOptions;
  /** The unfinished writes of each reconciliation, with its service ID. They end, because each write has a deadline. */
  readonly #inFlight = new Map<Promise<void>, string>();
  /** The actions that are running, with their service IDs. */
  readonly #running = new Map<Action, string>();

  constructor(options: ActionRunnerOptions) {
    this.#options = options;
  }

  /** Returns the actions that may begin now. The next reconciliation decides again about the others. */
  affordable(serviceId: string, actions: readonly Action[]): readonly Action[] {
    const own = [...this.#running.values()].filter((each) => each === serviceId).length;
    const free = mostBeside(this.#running.size - own) - own;
    const begun = new Set(actions.filter((each) => !isUrgent(each)).slice(0, Math.max(0, free)));
    return actions.filter((each) => isUrgent(each) || begun.has(each));
  }

  /**
   * Runs all actions, even if some of them fail.
   *
   * @returns `undefined` if no action has failed so far
   */
  async run(
    serviceId: string,
    actions: readonly Action[],
    requestId: string | undefined,
  ): Promise<Failed | undefined> {
    if (actions.length === 0) return undefined;
    const { clock, queue, log } = this.#options;
    const errors: unknown[] = [];
    let hasFailed = false;
    let isWaiting = true;
    const done = Promise.allSettled(actions.map((action) => this.#one(serviceId, action, requestId))).then(
      (results) => {
        for (const result of results) if (result.status === "rejected") errors.push(result.reason);
        hasFailed = results.some((result) => result.status === "fulfilled" && isReported(result.value));
        this.#inFlight.delete(done);
        if (isWaiting) return;
        for (const err of errors) log.warn({ serviceId, err }, "a slow write failed; trying again");
        if (errors.length === 0) queue.add(serviceId);
        else queue.retry(serviceId, Math.max(...errors.map(retryAfterMs)));
      },
    );
    this.#inFlight.set(done, serviceId);
    await waitAtMost(clock, PATIENCE_MS / this.#inFlight.size, done);
    isWaiting = false;
    const [first] = errors;
    if (errors.length > 0) return { error: errors.find((each) => !isConflict(each)) ?? first };
    return hasFailed ? {} : undefined;
  }

  /** Returns true while writes of a service are in flight. */
  isBusy(serviceId: string): boolean {
    return [...this.#inFlight.values()].includes(serviceId);
  }

  /** Resolves when no write is in flight, or after 10 s. */
  async settled(): Promise<void> {
    await waitAtMost(this.#options.clock, SETTLE_MS, Promise.all(this.#inFlight.keys()));
  }

  async #one(
    serviceId: string,
    action: Action,
    requestId: string | undefined,
  ): Promise<WriteError | undefined> {
    const { log } = this.#options;
    this.#running.set(action, serviceId);
    const error = await apply(this.#options, action).finally(() => {
      this.#running.delete(action);
      this.#wakeNewService(serviceId, action);
    });
    const line = { serviceId, ...describeAction(action), requestId };
    if (error) log.warn({ ...line, ...error }, `${action.type} failed`);
    else if (action.type === "dry-run" || action.type === "check-room") log.debug(line, action.type);
    else log.info(line, action.type);
    return error;
  }

  /** If the pipe moved to another service during this write, that service waits for the end of the write. */
  #wakeNewService(serviceId: string, action: Action): void {
    const { caches, queue } = this.#options;
    const present = "pipe" in action ? caches.pipes.get(keyOfPipe(action.pipe))?.serviceId : undefined;
    if (present !== undefined && present !== serviceId) queue.add(present);
  }
}

/** After a conflict, the write is repeated soon. */
function isReported(error: WriteError | undefined): boolean {
  return error !== undefined && !error.isConflict;
}

function retryAfterMs(error: unknown): number {
  return error instanceof KubeApiError ? (error.retryAfterMs ?? 0) : 0;
}

/** Log fields of an action. */
function describeAction(action: Action): object {
  return {
    ...("namespace" in action ? { namespace: action.namespace, spec: action.spec } : {}),
    ...("pipes" in action ? { pipes: action.pipes.map(nameOf) } : {}),
    ...("pipe" in action ? { pipe: nameOf(action.pipe) } : {}),
    ...("pod" in action ? { pod: action.pod.metadata.name } : {}),
    ...("resources" in action ? { resources: action.resources } : {}),
    ...("rollout" in action ? describeRollout(action.rollout) : {}),
    ...("size" in action ? { size: formatAllotment(action.size) } : {}),
    ...("fallback" in action ? action.fallback : {}),
  };
}

function describeRollout({ size, attempts, failure, inPlaceFailure }: PipeAction["rollout"]): object {
  return {
    size: formatSize(size),
    attempt: attempts,
    reason: failure?.reason,
    // Why the pipe is not resized in place.
    notInPlace: inPlaceFailure?.reason,
    to: inPlaceFailure && formatSize(inPlaceFailure.size),
    because: inPlaceFailure?.message,
  };
}
