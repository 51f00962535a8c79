import * as z from "zod";
import type { DeploymentView } from "../../src/controller/observe/deployment-view.ts";
import type { LastRollout } from "../../src/controller/observe/last-rollout.ts";
import type { PipeScalingView } from "../../src/controller/observe/pipe-scaling-view.ts";
import type { Snapshot } from "../../src/controller/observe/snapshot.ts";
import { type Size, sizeOfCores } from "../../src/domain/size.ts";
import { readOptions } from "../../src/settings/option.ts";
import { type RolloutPolicy, rolloutPolicySettings } from "../../src/settings/rollout-policy.ts";

export const NOW_MS = Date.parse("2026-06-01T12:00:00Z");

/** The policy as it is shipped. */
export const POLICY: RolloutPolicy = readOptions(z.object(rolloutPolicySettings), {}, {});

/** For decisions with every place of the rollout budget free, and without dry runs. */
export const DECIDE_OPTIONS = { policy: POLICY, overallFree: 50, validatesFirst: false };

const LONG_AGO_MS = NOW_MS - 24 * 3_600_000;

/** A pipe of one core that runs well; `changes` makes it another. */
export function aPipe(name: string, changes: Partial<DeploymentView> = {}): DeploymentView {
  return {
    metadata: { name, namespace: "pipes", uid: `uid-${name}`, resourceVersion: "1", generation: 1 },
    serviceId: "service",
    createdAtMs: LONG_AGO_MS,
    isBeingDeleted: false,
    container: { name: "pipe" },
    size: sizeOfCores(1),
    cpuLimitFollows: false,
    otherManagers: [],
    replicas: 1,
    isPaused: false,
    isPausedByUs: false,
    stopsOldPodsFirst: false,
    revision: 1,
    rollout: COMPLETE,
    lastRollout: undefined,
    ...changes,
  };
}

export const COMPLETE: DeploymentView["rollout"] = {
  isComplete: true,
  isAvailable: true,
  isUpdated: true,
  isSeen: true,
  isWithoutPods: false,
  terminatingReplicas: 0,
  progressedAtS: LONG_AGO_MS / 1000,
  progressing: undefined,
  replicaFailure: undefined,
};

export const UNDER_WAY: DeploymentView["rollout"] = {
  ...COMPLETE,
  isComplete: false,
  progressedAtS: NOW_MS / 1000 - 50,
};

/** A rollout that the controller started a minute ago, on a pipe of one core. */
export function aRollout(size: Size, changes: Partial<LastRollout> = {}): LastRollout {
  return {
    size,
    isRollback: false,
    lastGoodSize: sizeOfCores(1),
    startedAtMs: NOW_MS - 60_000,
    attempts: 1,
    serviceId: "service",
    scalingUid: "scaling-uid",
    scalingGeneration: 1,
    generation: 1,
    revision: 1,
    progressedAtS: LONG_AGO_MS / 1000,
    replicas: 1,
    ...changes,
  };
}

/** A pipe whose size the controller has applied and that is on its way to it. */
export function rollingTo(name: string, size: Size, changes: Partial<DeploymentView> = {}): DeploymentView {
  return aPipe(name, { size, lastRollout: aRollout(size), rollout: UNDER_WAY, ...changes });
}

export function aScaling(cores: number | undefined, changes: Partial<PipeScalingView> = {}): PipeScalingView {
  const size = cores === undefined ? undefined : sizeOfCores(cores);
  return {
    metadata: {
      name: "service",
      namespace: "pipes",
      uid: "scaling-uid",
      resourceVersion: "1",
      generation: 1,
    },
    isBeingDeleted: false,
    spec: size ? { replicaCpuMillicores: size.cpuMillicores, replicaMemoryGb: size.memoryGib } : {},
    status: {},
    requestAnnotation: undefined,
    retryRequestedAtMs: undefined,
    windowIgnoredUntilMs: undefined,
    malformedAnnotations: [],
    ...changes,
  };
}

export function aSnapshot(pipes: readonly DeploymentView[], changes: Partial<Snapshot> = {}): Snapshot {
  return {
    serviceId: "service",
    nowMs: NOW_MS,
    namespace: "pipes",
    tier: {
      ok: true,
      value: { name: "basic", defaultSize: sizeOfCores(1), maximumSize: sizeOfCores(24) },
    },
    scaling: aScaling(4),
    rolloutWindow: undefined,
    deleted: undefined,
    foreign: [],
    failures: [],
    orphans: [],
    writes: new Map(),
    validations: new Map(),
    strategy: "Rollout",
    inPlace: new Map(),
    pipes,
    unschedulable: new Map(),
    autoscalers: new Map(),
    ...changes,
  };
}
