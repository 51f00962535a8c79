/** How a pipe stands to the size that it is to have. */
export type PipeState =
  /** Runs it, by a completed rollout. */
  | "done"
  /** Has it in its template; pods are being replaced. */
  | "rolling"
  /** Has not been given it. */
  | "waiting"
  /** Was given it, and could not take it. */
  | "failed"
  /** Has it, but its owner paused its rollouts: nothing will happen until they go on. */
  | "paused"
  /** Cannot be sized at all; a person must act. */
  | "unsizable";

export interface PlannedPipe {
  readonly name: string;
  readonly state: PipeState;
  /** Pods of it are being replaced or are still ending, for whatever size. */
  readonly isRestarting: boolean;
  /** A size is on its way to its pods, whichever: it counts against the bound over all services already. */
  readonly isRolling: boolean;
  readonly replicas: number;
}

export interface RolloutLimits {
  /** Rollouts that may begin over all services before the overall bound is reached. */
  readonly overallFree: number;
}

export interface RolloutPlan {
  /** Pipes to give the size to now, in this order. */
  readonly start: readonly string[];
  /** Why the other waiting pipes wait. */
  readonly holdBack: "nothing" | "failure" | "canary" | "service-limit" | "overall-limit";
}

/** At most this many rollouts at once in a service of `total` pipes (design, section 5). */
export function serviceLimit(total: number): number {
  return Math.max(3, Math.ceil(total / 4));
}

/**
 * Which pipes are given the size next: first those without a running replica, whom a restart costs nothing;
 * then one canary; then, when a pipe has proven the size, as many as the limits allow. A failure holds the
 * rest back. Pipes that are already restarting for an older size come first, since that lag is paid.
 */
export function planRollout(pipes: readonly PlannedPipe[], limits: RolloutLimits): RolloutPlan {
  const waiting = pipes.filter((pipe) => pipe.state === "waiting");
  const idle = waiting.filter((pipe) => pipe.replicas === 0).map((pipe) => pipe.name);
  const running = waiting.filter((pipe) => pipe.replicas > 0);
  if (running.length === 0) return { start: idle, holdBack: "nothing" };
  if (pipes.some((pipe) => pipe.state === "failed")) return { start: idle, holdBack: "failure" };

  const proven = pipes.some((pipe) => pipe.state === "done" && pipe.replicas > 0);
  const limit = proven ? serviceLimit(pipes.length) : 1;
  const inFlight = pipes.filter((pipe) => pipe.state !== "waiting" && holdsSlot(pipe)).length;
  // Who restarts for an older size holds a slot already and may be redirected within it.
  const redirectable = running.filter(holdsSlot);
  const fresh = running.filter((pipe) => !holdsSlot(pipe));
  const room = Math.max(0, limit - inFlight);
  const roomForFresh = Math.max(0, room - redirectable.length);
  const next = [...redirectable.slice(0, room), ...fresh.slice(0, roomForFresh)];
  const placed = next.filter(({ isRolling }) => !isRolling).slice(0, limits.overallFree);
  const started = next.filter((pipe) => pipe.isRolling || placed.includes(pipe));
  const start = [...idle, ...started.map((pipe) => pipe.name)];
  if (started.length === running.length) return { start, holdBack: "nothing" };
  if (started.length < next.length) return { start, holdBack: "overall-limit" };
  return { start, holdBack: proven ? "service-limit" : "canary" };
}

/** Paused rollouts hold no slot: they may stay so for weeks. */
function holdsSlot(pipe: PlannedPipe): boolean {
  return pipe.isRestarting && pipe.state !== "paused";
}
