import { assess } from "../../controller/decide/assess.ts";
import type { Assessment } from "../../controller/decide/assessment.ts";
import { type DeploymentView, isRollingOurs } from "../../controller/observe/deployment-view.ts";
import type { PendingPodView } from "../../controller/observe/pending-pod-view.ts";
import { unschedulableReason } from "../../controller/observe/pending-pod-view.ts";
import type { PipeScalingView } from "../../controller/observe/pipe-scaling-view.ts";
import { isSize } from "../../controller/observe/resources.ts";
import { waitingFor } from "../../controller/report/conditions.ts";
import type { PipeFailure } from "../../crd/pipe-scaling.ts";
import { planRollout } from "../../domain/rollout-plan.ts";
import { formatSize, type Size, sameSize } from "../../domain/size.ts";
import type { PipeLine } from "../view/rescale-view.ts";

/** A pipe, and what is read of its Deployment beside what the controller reads. */
export interface WatchedPipe extends DeploymentView {
  /** Replicas that are sure to run the template as it stands. */
  readonly updatedReplicas: number;
}

export interface PipesSeen {
  readonly pipes: readonly WatchedPipe[];
  readonly pendingPods: readonly PendingPodView[];
  readonly nowMs: number;
}

/** Pipes as they stand to the wanted size, and when the next of those that failed is tried again. */
export interface PipesStanding {
  readonly lines: readonly PipeLine[];
  readonly progressedAt: Date | undefined;
  readonly retryAt: Date | undefined;
}

/**
 * How each pipe stands to the wanted size: judged as the controller judges it, but what the controller has
 * reported as failed is so until it tries again, since only it knows how long a rollout may take.
 */
export function standingOf(seen: PipesSeen, scaling: PipeScalingView, desired: Size): PipesStanding {
  const failures = scaling.status.failures ?? [];
  const context = {
    desired,
    scaling,
    failures,
    unschedulable: unschedulableIn(seen),
    autoscalers: new Map(),
    nowMs: seen.nowMs,
    rolloutTimeoutMs: Number.POSITIVE_INFINITY,
  };
  const assessed = seen.pipes
    .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    .map((pipe) => ({ watched: pipe, assessment: withReported(assess(pipe, context), failures, desired) }));
  const wait = waitFor(assessed.map(({ assessment }) => assessment));
  const since = Date.parse(scaling.status.propagation?.startedAt ?? "");
  return {
    lines: assessed.map(({ watched, assessment }) => lineOf(watched, assessment, desired, since, wait)),
    progressedAt: latest(assessed.flatMap(({ assessment }) => cameUpAt(assessment, since))),
    retryAt: earliest(
      assessed.flatMap(({ assessment }) =>
        assessment.state === "failed" ? (assessment.recheckAtMs ?? []) : [],
      ),
    ),
  };
}

function unschedulableIn({ pipes, pendingPods }: PipesSeen): ReadonlyMap<string, string> {
  return new Map(
    pipes.flatMap((pipe): [string, string][] => {
      const { name } = pipe.metadata;
      const reason = unschedulableReason(
        pipe,
        pendingPods.filter(({ pipeName }) => pipeName === name),
      );
      return reason === undefined ? [] : [[name, reason]];
    }),
  );
}

/** The failure that was reported of it stands, unless it was given the size again since. */
function withReported(assessment: Assessment, failures: readonly PipeFailure[], desired: Size): Assessment {
  const { pipe, state } = assessment;
  const failure = failures.find(
    (each) => each.pipe === pipe.metadata.name && each.size === formatSize(desired),
  );
  if (!failure || (state !== "waiting" && state !== "rolling")) return assessment;
  const isSince = state === "rolling" && (pipe.attempt?.startedAtMs ?? 0) > Date.parse(failure.at);
  return isSince ? assessment : { ...assessment, state: "failed", failure };
}

/** What the waiting ones wait for, to follow on the word. */
function waitFor(assessments: readonly Assessment[]): string {
  const planned = assessments.map(({ pipe, state }) => ({
    name: pipe.metadata.name,
    state,
    replicas: pipe.replicas,
    isRolling: isRollingOurs(pipe),
    isRestarting: isRollingOurs(pipe) || pipe.rollout.terminatingReplicas > 0,
  }));
  // Of the bound over all services only the controller knows.
  return waitingFor(planRollout(planned, { overallFree: Number.POSITIVE_INFINITY }).holdBack).trim();
}

function lineOf(
  { updatedReplicas }: WatchedPipe,
  { pipe, state, failure, obstacle }: Assessment,
  desired: Size,
  sinceMs: number,
  wait: string,
): PipeLine {
  const line = { name: pipe.metadata.name, from: sizeBefore(pipe, desired, sinceMs), to: desired };
  switch (state) {
    case "rolling":
      return {
        ...line,
        state,
        progress: { updated: updatedReplicas, of: pipe.replicas },
        why: obstacle && `no node has room for it at present: ${obstacle}`,
      };
    case "waiting":
      return { ...line, state, why: wait };
    case "failed":
    case "unsizable":
      return { ...line, state: "failed", why: failure?.message };
    case "done":
    case "paused":
      return { ...line, state };
  }
}

/** What it had when the rescale began. */
function sizeBefore(pipe: DeploymentView, desired: Size, sinceMs: number): Size | undefined {
  if (!sameSize(pipe.size, desired)) return pipe.size;
  if (!isOfRescale(pipe, sinceMs)) return desired;
  return isSize(pipe.completed) ? pipe.completed : undefined;
}

/** Times of the status are whole seconds, cut off. */
function isOfRescale({ attempt }: DeploymentView, sinceMs: number): boolean {
  return (attempt?.startedAtMs ?? 0) >= sinceMs - 1000;
}

function cameUpAt({ pipe, state }: Assessment, sinceMs: number): number[] {
  const at = Date.parse(pipe.rollout.progressing?.lastUpdateTime ?? "");
  return state === "done" && isOfRescale(pipe, sinceMs) && at > sinceMs ? [at] : [];
}

function latest(times: readonly number[]): Date | undefined {
  return times.length === 0 ? undefined : new Date(Math.max(...times));
}

function earliest(times: readonly number[]): Date | undefined {
  const [first] = times.filter(Number.isFinite).toSorted((a, b) => a - b);
  return first === undefined ? undefined : new Date(first);
}
