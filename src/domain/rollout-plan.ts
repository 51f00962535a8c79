import type { WindowScope } from "./rollout-window.ts";

/** The state of a pipe relative to the desired size. */
export type PipeState =
  /** The pods and the template have the size. */
  | "done"
  /** The pods run the size, and the template follows without a rollout. */
  | "resized"
  /** A change of the pods is in progress: usually, they are being resized or replaced. */
  | "rolling"
  /** The pipe does not have the size, and waits to be resized. */
  | "waiting"
  /** The pipe does not have the size; the last write failed and is retried later. */
  | "retrying"
  /** The pipe failed to get the size, or another writer keeps reverting it. */
  | "failed"
  /** The owner paused rollouts, or keeps pods from them. */
  | "paused"
  /** The pipe cannot be resized until someone changes something. */
  | "unsizable";

/** The phase of a pipe's rollout or resize in place, of any size. */
export type RolloutPhase =
  /**
   * Running pods are being resized, or replaced without a change of their template; or a commit is in progress, and not
   * every pod has the desired size.
   */
  | "resizing"
  /**
   * The rollout is complete, as far as the owner allows it; or every pod has the desired size, and only the template
   * has to follow; or there are no desired replicas.
   */
  | "settled"
  /** A rollout of the controller is in progress, or may be, because the outcome of a write is unknown. */
  | "rolling-out"
  /** A rollback of the controller is in progress. */
  | "rolling-back"
  /** The rollout is not complete, and the controller did not begin it: usually, the owner changed the pipe. */
  | "updating"
  /** The rollout is complete, or there are no desired replicas, and old pods are still terminating. */
  | "terminating"
  /** The owner paused the rollout, or keeps all pods from rollouts. */
  | "paused"
  /** A rollout or a commit timed out: it is broken, or its status is not updated. */
  | "overdue";

/** Phases in which pods of a pipe are resized or replaced. They count against the limit of the service. */
const MOVING: readonly RolloutPhase[] = [
  "resizing",
  "rolling-out",
  "rolling-back",
  "updating",
  "terminating",
];

/** Phases of the controller's own rollouts and rollbacks. They count against the limit across all services. */
export const OURS: readonly RolloutPhase[] = ["rolling-out", "rolling-back"];

export interface PlannedPipe {
  readonly name: string;
  readonly state: PipeState;
  readonly phase: RolloutPhase;
  readonly replicas: number;
  /**
   * Shows whether the size works. `proving`: the pipe runs the size and is not available, or not for long enough, and
   * other pipes wait for it.
   */
  readonly proof: "none" | "proving" | "proven";
  /** Every wanted replica is available now. */
  readonly isAvailable: boolean;
  /** The template has the size and its pods lack it, or a resize in place failed. Such a pipe comes first. */
  readonly isUnfinished?: boolean;
  /** Only resizes that replace pods count against the limit across all services and wait for windows of both scopes. */
  readonly replacesPods: boolean;
  /** A closed rollout window does not hold it back, because its containers restart anyway. */
  readonly ignoresWindow?: boolean;
}

export interface RolloutLimits {
  /** Number of rollouts that may start before the limit across all services is reached. */
  readonly overallFree: number;
  /** Maximum number of concurrent rollouts and resizes in the service once a pipe has proven the size. */
  readonly serviceLimit: number;
  /** The resizes that a closed rollout window holds back; `undefined` while it is open. */
  readonly held: WindowScope | undefined;
}

/** The reason why waiting pipes wait. */
export type PlanWaitReason = "nothing" | "failure" | "window" | "canary" | "service-limit" | "overall-limit";

export interface RolloutPlan {
  /** Pipes to resize now, in this order. */
  readonly start: readonly string[];
  readonly waitReason: PlanWaitReason;
  /** True if a running pipe starts before any other has proven the size. */
  readonly isCanary: boolean;
  /** Pipes that the waiting ones wait for: they are in progress, are still proving the size, or failed. */
  readonly blockedBy: readonly string[];
}

const NOTHING: RolloutPlan = { start: [], waitReason: "nothing", isCanary: false, blockedBy: [] };

/** Returns the maximum number of concurrent rollouts in a service of `total` pipes. */
export function serviceLimit(total: number): number {
  return Math.max(3, Math.ceil(total / 4));
}

/**
 * Chooses the pipes to resize next: all pipes without replicas, because their rollout costs nothing; then one canary;
 * then, once a pipe has proven the size, as many as the limits allow. A failure blocks all pipes with replicas. A
 * closed window blocks only the pipes that it applies to. Pipes that are unfinished, or whose pods the controller
 * already replaces for an earlier size, come first. Pipes that are unhealthy because of their owner's change or for
 * another reason come last, because they would prove nothing, and their failure would block the others.
 */
export function planRollout(pipes: readonly PlannedPipe[], limits: RolloutLimits): RolloutPlan {
  const waiting = pipes.filter((pipe) => pipe.state === "waiting");
  if (waiting.length === 0) return NOTHING;
  const idle = waiting.filter((pipe) => pipe.replicas === 0).map((pipe) => pipe.name);
  const withPods = waiting.filter((pipe) => pipe.replicas > 0).toSorted((a, b) => rank(a) - rank(b));
  if (withPods.length === 0) return { ...NOTHING, start: idle };
  const failed = pipes.filter((pipe) => pipe.state === "failed");
  const onlyIdle = { start: idle, isCanary: false };
  if (failed.length > 0) return { ...onlyIdle, waitReason: "failure", blockedBy: failed.map(nameOf) };
  const running = withPods.filter((pipe) => !isHeld(pipe, limits));
  if (running.length === 0) return { ...onlyIdle, waitReason: "window", blockedBy: [] };

  const isProven = pipes.some(({ proof }) => proof === "proven");
  const limit = isProven ? limits.serviceLimit : 1;
  const moving = pipes.filter((pipe) => (isProven ? MOVING.includes(pipe.phase) : precedesCanary(pipe)));
  // A waiting pipe whose pods are being replaced already counts against the limits, so it may be redirected.
  const inPlace = running.filter((pipe) => moving.includes(pipe));
  const fresh = running.filter((pipe) => !moving.includes(pipe));
  const firstOf = (may: (pipe: PlannedPipe) => boolean) => [
    ...inPlace.filter(may).slice(0, Math.max(0, limit - (moving.length - inPlace.length))),
    ...fresh.filter(may).slice(0, Math.max(0, limit - moving.length)),
  ];
  // A pipe that waits for other services leaves its turn in this one to the next pipe, such as one resized in place.
  const placed = [...inPlace, ...fresh].filter(isCounted).slice(0, limits.overallFree);
  const started = firstOf((pipe) => !isCounted(pipe) || placed.includes(pipe));
  const waitsForOthers = firstOf(() => true).some((pipe) => !started.includes(pipe));
  const plan = { start: [...idle, ...started.map(nameOf)], isCanary: !isProven && started.length > 0 };
  if (started.length === withPods.length) return { ...plan, waitReason: "nothing", blockedBy: [] };
  if (started.length === running.length) return { ...plan, waitReason: "window", blockedBy: [] };
  if (waitsForOthers) return { ...plan, waitReason: "overall-limit", blockedBy: [] };
  const blockedBy = [...moving.filter((pipe) => !inPlace.includes(pipe)), ...started].map(nameOf);
  return { ...plan, waitReason: isProven ? "service-limit" : "canary", blockedBy };
}

/**
 * The canary waits for what the controller does, for any rollout that may prove the size, and for a pipe that is still
 * proving it (`proof`), but not for other changes of owners.
 */
function precedesCanary({ state, phase, proof }: PlannedPipe): boolean {
  if (proof === "proving" || phase === "resizing" || OURS.includes(phase)) return true;
  return state === "rolling" && MOVING.includes(phase);
}

/** True if the resize of a pipe needs a place in the limit across all services. Those in `OURS` have one already. */
export function isCounted({
  replicas,
  replacesPods,
  phase,
}: Pick<PlannedPipe, "replicas" | "replacesPods" | "phase">): boolean {
  return replicas > 0 && replacesPods && !OURS.includes(phase);
}

function isHeld({ replacesPods, ignoresWindow = false }: PlannedPipe, { held }: RolloutLimits): boolean {
  if (ignoresWindow) return false;
  return held === "all" || (held === "restarts" && replacesPods);
}

/** A rollout counts as complete even if its pods crash later, so the phase alone does not show whether a pipe is healthy. */
function rank({ phase, isAvailable, isUnfinished = false }: PlannedPipe): number {
  if (OURS.includes(phase) || isUnfinished) return 0;
  return isAvailable && (phase === "settled" || phase === "terminating") ? 1 : 2;
}

function nameOf({ name }: PlannedPipe): string {
  return name;
}
