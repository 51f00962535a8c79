import type { DeploymentView } from "../../controller/observe/deployment-view.ts";
import type { PipeScalingView } from "../../controller/observe/pipe-scaling-view.ts";
import { isSize } from "../../controller/observe/resources.ts";
import { MAX_PENDING, type PendingPipe } from "../../crd/pipe-scaling.ts";
import { type Size, sameSize } from "../../domain/size.ts";
import type { PipeLine } from "../view/rescale-view.ts";

/** A pipe, and the part of its Deployment that the controller does not need. */
export interface WatchedPipe extends DeploymentView {
  /** Replicas that run the current template for certain. */
  readonly updatedReplicas: number;
}

/** Pipes as the controller reports them, and when the next of those that failed is tried again. */
export interface PipesStanding {
  readonly lines: readonly PipeLine[];
  readonly progressedAt: Date | undefined;
  readonly retryAt: Date | undefined;
}

/** The state of each pipe is the one that the controller reports; only sizes and counts come from the Deployments. */
export function standingOf(
  pipes: readonly WatchedPipe[],
  scaling: PipeScalingView,
  desired: Size,
): PipesStanding {
  const { status, metadata } = scaling;
  const sinceMs = Date.parse(status.propagation?.startedAt ?? "");
  const pending =
    status.observedGeneration === metadata.generation ? (status.pipes?.pending ?? []) : undefined;
  const sorted = pipes.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const lines = sorted.map((pipe) => lineOf(pipe, reportedState(pipe, pending, desired), desired, sinceMs));
  const retries = status.failures?.flatMap(({ nextRetryAt }) => nextRetryAt ?? []) ?? [];
  return {
    lines,
    progressedAt: latest(sorted.flatMap((pipe) => cameUpAt(pipe, desired, sinceMs))),
    retryAt: earliest(retries.map((time) => Date.parse(time))),
  };
}

type Reported = Pick<PendingPipe, "message"> & { readonly state: PendingPipe["state"] | "Done" };

/** The controller lists only so many of the pipes that wait, and none before it has seen the newest spec. */
function reportedState(
  { metadata, size }: WatchedPipe,
  pending: readonly PendingPipe[] | undefined,
  desired: Size,
): Reported {
  const reported = pending?.find(({ name }) => name === metadata.name);
  if (reported) return reported;
  const isListed = pending !== undefined && pending.length < MAX_PENDING;
  return { state: isListed || sameSize(size, desired) ? "Done" : "Waiting" };
}

function lineOf(pipe: WatchedPipe, { state, message }: Reported, desired: Size, sinceMs: number): PipeLine {
  const line = { name: pipe.metadata.name, from: sizeBefore(pipe, desired, sinceMs), to: desired };
  switch (state) {
    case "Rolling":
      return {
        ...line,
        state: "rolling",
        progress: { updated: pipe.updatedReplicas, of: pipe.replicas },
        why: message && `no node has room for it at present: ${message}`,
      };
    case "Waiting":
      return { ...line, state: "waiting", why: message?.replace(/^waiting /, "") ?? "" };
    case "Retrying":
    case "Failed":
    case "Unsizable":
      return { ...line, state: "failed", why: message };
    case "Done":
      return { ...line, state: "done" };
    case "Paused":
      return { ...line, state: "paused" };
  }
}

/** The size that the pipe had when the rescale began. */
function sizeBefore(pipe: DeploymentView, desired: Size, sinceMs: number): Size | undefined {
  if (!sameSize(pipe.size, desired)) return pipe.size;
  if (!isOfRescale(pipe, sinceMs)) return desired;
  const before = pipe.lastRollout?.lastGoodSize;
  return isSize(before) ? before : undefined;
}

/** Times of the status are whole seconds, cut off. */
function isOfRescale({ lastRollout }: DeploymentView, sinceMs: number): boolean {
  return (lastRollout?.startedAtMs ?? 0) >= sinceMs - 1000;
}

function cameUpAt(pipe: DeploymentView, desired: Size, sinceMs: number): number[] {
  const atMs = pipe.rollout.progressedAtS * 1000;
  const isUp = pipe.rollout.isComplete && sameSize(pipe.size, desired);
  return isUp && isOfRescale(pipe, sinceMs) && atMs > sinceMs ? [atMs] : [];
}

function latest(times: readonly number[]): Date | undefined {
  return times.length === 0 ? undefined : new Date(Math.max(...times));
}

function earliest(times: readonly number[]): Date | undefined {
  const [first] = times.filter(Number.isFinite).toSorted((a, b) => a - b);
  return first === undefined ? undefined : new Date(first);
}
