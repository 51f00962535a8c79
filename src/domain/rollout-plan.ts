/** How a pipe stands to the size that it is to have. */
export type PipeState =
  /** Has it, and every wanted pod came up once with it. */
  | "done"
  /** Has it in its template; pods are being replaced. */
  | "rolling"
  /** Does not have it, and can be given it. */
  | "waiting"
  /** Does not have it; the API server did not do the last write, which is retried later. */
  | "retrying"
  /** Was given it, and could not take it. */
  | "failed"
  /** Has it, but its owner paused its rollouts. */
  | "paused"
  /** Cannot be sized until a person changes something. */
  | "unsizable";

/** The movement of a pipe's pods, of any size. */
export type RolloutPhase =
  /** Every wanted replica runs the template, or none is wanted. */
  | "settled"
  /** A size that the controller applied is on its way. */
  | "rolling-out"
  /** The last good size is on its way back. */
  | "rolling-back"
  /** A change of the owner is on its way. */
  | "updating"
  /** The rollout is complete, and old pods are still ending. */
  | "terminating"
  /** The owner paused the rollout. */
  | "paused"
  /** Should have ended by now: broken, or its status stands still. */
  | "overdue";

/** Phases in which pods of a pipe are replaced: they count against the limit of the service. */
const MOVING: readonly RolloutPhase[] = ["rolling-out", "rolling-back", "updating", "terminating"];

/** Phases that the controller started: they count against the limit over all services. */
export const OURS: readonly RolloutPhase[] = ["rolling-out", "rolling-back"];

export interface PlannedPipe {
  readonly name: string;
  readonly state: PipeState;
  readonly phase: RolloutPhase;
  readonly replicas: number;
}

export interface RolloutLimits {
  /** Rollouts that may start before the limit over all services is reached. */
  readonly overallFree: number;
  /** False while rollouts that restart pods have to wait for the rollout window. */
  readonly isWindowOpen: boolean;
}

/** The reason why waiting pipes wait. */
export type HoldBack = "nothing" | "failure" | "window" | "canary" | "service-limit" | "overall-limit";

export interface RolloutPlan {
  /** Pipes to resize now, in this order. */
  readonly start: readonly string[];
  readonly holdBack: HoldBack;
  /** True if a running pipe starts before any other has proven the size. */
  readonly isCanary: boolean;
  /** Pipes whose rollouts the waiting ones wait for. */
  readonly blockedBy: readonly string[];
}

/** At most this many rollouts at once in a service of `total` pipes. */
export function serviceLimit(total: number): number {
  return Math.max(3, Math.ceil(total / 4));
}

/**
 * Chooses the pipes to resize next: first those without replicas, which a rollout costs nothing; then one canary; then, when
 * a running pipe has proven the size, as many as the limits allow. A failure holds back the rest. Pipes that already
 * restart for an older size of ours come first, because that lag is paid; pipes that their owner's change or something
 * else keeps from being healthy come last, because they would prove nothing.
 */
export function planRollout(pipes: readonly PlannedPipe[], limits: RolloutLimits): RolloutPlan {
  const waiting = pipes.filter((pipe) => pipe.state === "waiting");
  const idle = waiting.filter((pipe) => pipe.replicas === 0).map((pipe) => pipe.name);
  const running = waiting.filter((pipe) => pipe.replicas > 0).toSorted((a, b) => rank(a) - rank(b));
  if (running.length === 0) return { start: idle, holdBack: "nothing", isCanary: false, blockedBy: [] };
  const failed = pipes.filter((pipe) => pipe.state === "failed");
  const held = { start: idle, isCanary: false };
  if (failed.length > 0) return { ...held, holdBack: "failure", blockedBy: failed.map(nameOf) };
  if (!limits.isWindowOpen) return { ...held, holdBack: "window", blockedBy: [] };

  const isProven = pipes.some((pipe) => pipe.state === "done" && pipe.replicas > 0);
  const limit = isProven ? serviceLimit(pipes.length) : 1;
  const moving = pipes.filter((pipe) => MOVING.includes(pipe.phase) && (isProven || precedesCanary(pipe)));
  // A waiting pipe that is moving has its place already and may be redirected within it.
  const inPlace = running.filter((pipe) => moving.includes(pipe));
  const redirected = inPlace.slice(0, Math.max(0, limit - (moving.length - inPlace.length)));
  const fresh = running.filter((pipe) => !moving.includes(pipe)).slice(0, Math.max(0, limit - moving.length));
  const next = [...redirected, ...fresh];
  const placed = next.filter(({ phase }) => !OURS.includes(phase)).slice(0, limits.overallFree);
  const started = next.filter((pipe) => OURS.includes(pipe.phase) || placed.includes(pipe));
  const plan = { start: [...idle, ...started.map(nameOf)], isCanary: !isProven && started.length > 0 };
  if (started.length === running.length) return { ...plan, holdBack: "nothing", blockedBy: [] };
  if (started.length < next.length) return { ...plan, holdBack: "overall-limit", blockedBy: [] };
  const blockedBy = [...moving.filter((pipe) => !inPlace.includes(pipe)), ...started].map(nameOf);
  return { ...plan, holdBack: isProven ? "service-limit" : "canary", blockedBy };
}

/** The canary waits for rollouts of the controller, and for any rollout that may prove the size; not for other changes of owners. */
function precedesCanary({ state, phase }: PlannedPipe): boolean {
  return OURS.includes(phase) || state === "rolling";
}

function rank({ phase }: PlannedPipe): number {
  if (OURS.includes(phase)) return 0;
  return phase === "settled" || phase === "terminating" ? 1 : 2;
}

function nameOf({ name }: PlannedPipe): string {
  return name;
}
