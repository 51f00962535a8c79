import { describe, expect, test } from "vitest";
import type { WatchedPipe } from "../../src/cli/status/pipe-lines.ts";
import { oldTierOf, viewOf } from "../../src/cli/status/scaling-view.ts";
import { watchedPipeOf } from "../../src/cli/status/service-kinds.ts";
import type { DeploymentView } from "../../src/controller/observe/deployment-view.ts";
import type { Condition, PendingPipe, PipeScalingStatus } from "../../src/crd/pipe-scaling.ts";
import { describeSize, sizeOfCores } from "../../src/domain/size.ts";
import type { Deployment } from "../../src/kube/objects.ts";
import { aPipe, aRollout, aScaling, COMPLETE, NOW_MS, rollingTo } from "../gen/snapshot.ts";

const FOUR = sizeOfCores(4);
const BEGUN_MS = NOW_MS - 120_000;

function rfc3339(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}

function fields(cores: number) {
  const size = sizeOfCores(cores);
  return {
    replicaCpuMillicores: size.cpuMillicores,
    replicaMemoryGb: size.memoryGib,
    summary: describeSize(size),
  };
}

function condition(type: string, status: Condition["status"], reason: string): Condition {
  return { type, status, reason, message: "", lastTransitionTime: rfc3339(NOW_MS) };
}

const UNDER_WAY: PipeScalingStatus = {
  observedGeneration: 1,
  conditions: [condition("Ready", "False", "Progressing"), condition("Reconciling", "True", "Progressing")],
  desired: { ...fields(4), source: "Spec" },
  effective: fields(1),
  pipes: { total: 1, updated: 0, summary: "0/1" },
  propagation: { startedAt: rfc3339(BEGUN_MS) },
};

function view(pipes: readonly DeploymentView[], status: PipeScalingStatus = UNDER_WAY) {
  const watched = pipes.map((pipe): WatchedPipe => ({ ...pipe, updatedReplicas: 0 }));
  return viewOf("orders", aScaling(4, { status }), watched);
}

/** Came up with four cores in this rescale. */
function done(name: string, atMs: number): DeploymentView {
  const lastRollout = aRollout(FOUR, { startedAtMs: BEGUN_MS });
  return rollingTo(name, FOUR, { lastRollout, rollout: { ...COMPLETE, progressedAtS: atMs / 1000 } });
}

describe("a pipe", () => {
  const lineOf = (pipe: DeploymentView, status?: PipeScalingStatus) => view([pipe], status).lines[0];

  test("that came up in this rescale shows what it had before", () => {
    expect(lineOf(done("pipe-a", NOW_MS - 60_000))).toMatchObject({
      state: "done",
      from: sizeOfCores(1),
      to: FOUR,
    });
  });

  test("that had the size before shows no other", () => {
    expect(lineOf(aPipe("pipe-a", { size: FOUR }))).toMatchObject({ state: "done", from: FOUR, to: FOUR });
  });

  const reported = (entry: Omit<PendingPipe, "name">): PipeScalingStatus => ({
    ...UNDER_WAY,
    pipes: { total: 1, updated: 0, summary: "0/1", pending: [{ name: "pipe-a", ...entry }] },
  });

  test("that is paused by its owner is shown as paused", () => {
    expect(lineOf(rollingTo("pipe-a", FOUR), reported({ state: "Paused" }))).toMatchObject({
      state: "paused",
    });
  });

  test.each(["Failed", "Retrying", "Unsizable"] as const)(
    "that is reported as %s is shown with why",
    (state) => {
      const status = reported({ state, message: "too slow" });
      expect(lineOf(aPipe("pipe-a"), status)).toMatchObject({ state: "failed", why: "too slow" });
    },
  );

  test("that has failed shows when it is tried again", () => {
    const nextRetryAt = rfc3339(NOW_MS + 240_000);
    const failure = { pipe: "pipe-a", size: "4000m/16Gi", reason: "Refused", message: "no", attempts: 1 };
    const failures = [{ ...failure, at: rfc3339(NOW_MS - 60_000), nextRetryAt }];
    expect(view([aPipe("pipe-a")], { ...UNDER_WAY, failures }).retryAt).toEqual(new Date(NOW_MS + 240_000));
  });

  test("whose new pod fits no node says so while it rolls", () => {
    const status = reported({ state: "Rolling", message: "0/3 nodes are available" });
    expect(lineOf(rollingTo("pipe-a", FOUR), status)).toMatchObject({
      state: "rolling",
      why: "no node has room for it at present: 0/3 nodes are available",
    });
  });

  test("that waits says what it waits for", () => {
    const status = reported({ state: "Waiting", message: "waiting for pipe-b to prove the size" });
    expect(lineOf(aPipe("pipe-a"), status)).toMatchObject({
      state: "waiting",
      why: "for pipe-b to prove the size",
    });
  });

  test("waits if the controller has not seen the newest size yet", () => {
    expect(lineOf(aPipe("pipe-a"), { ...UNDER_WAY, observedGeneration: 0 })).toMatchObject({
      state: "waiting",
    });
  });
});

describe("a service", () => {
  const state = (conditions: Condition[], observedGeneration = 1) => {
    const { state, reason } = view([], { ...UNDER_WAY, conditions, observedGeneration });
    return [state, reason];
  };

  test("is as its conditions say", () => {
    expect(state([condition("Ready", "True", "Scaled")])).toEqual(["scaled", "Scaled"]);
    const stalled = [condition("Ready", "False", "Refused"), condition("Stalled", "True", "Refused")];
    expect(state(stalled)).toEqual(["failed", "Refused"]);
    expect(state([condition("Ready", "Unknown", "Suspended")])).toEqual(["suspended", "Suspended"]);
    expect(state(UNDER_WAY.conditions ?? [])).toEqual(["propagating", "Progressing"]);
  });

  test("is on its way while its newest spec has not been seen, whatever the conditions say of the one before", () => {
    expect(state([condition("Ready", "True", "Scaled")], 0)).toEqual(["propagating", "NotSeenYet"]);
    expect(state([], -1)).toEqual(["unknown", "NotSeenYet"]);
  });

  test("is on its way while it is scaled by a tier that its organization has no more", () => {
    const conditions = [condition("Ready", "True", "Scaled")];
    const scaling = aScaling(4, { status: { ...UNDER_WAY, conditions, tier: "basic" } });
    const stateBy = (tier: string) => {
      const { state, reason } = viewOf("orders", scaling, undefined, oldTierOf(scaling, { tier }));
      return [state, reason];
    };
    expect(stateBy("basic")).toEqual(["scaled", "Scaled"]);
    expect(stateBy("scale")).toEqual(["propagating", "NotSeenYet"]);
    expect(oldTierOf(scaling, undefined)).toBeUndefined();
    // Watched on, it is judged by that tier, or by yet another one.
    const later = aScaling(4, { status: { ...UNDER_WAY, conditions, tier: "scale" } });
    expect(viewOf("orders", later, undefined, "basic").state).toBe("scaled");
  });

  test("is to have what its newest spec says before that has been seen", () => {
    const status = {
      ...UNDER_WAY,
      observedGeneration: 0,
      desired: { ...fields(2), source: "Spec" as const },
    };
    expect(view([], status).wanted).toEqual(FOUR);
  });

  test("was last moved on by the pipe that came up last", () => {
    const pipes = [done("pipe-a", NOW_MS - 60_000), done("pipe-b", NOW_MS - 20_000), aPipe("pipe-c")];
    expect(view(pipes).progressedAt).toEqual(new Date(NOW_MS - 20_000));
    expect(view([aPipe("pipe-a", { size: FOUR })]).progressedAt).toBeUndefined();
  });

  test("whose pipes cannot be read is counted by its PipeScaling, with those that failed", () => {
    const at = rfc3339(NOW_MS);
    const failure = { pipe: "pipe-a", size: "4000m/16Gi", reason: "Refused", message: "no", attempts: 1, at };
    const scaling = aScaling(4, { status: { ...UNDER_WAY, failures: [failure] } });
    expect(viewOf("orders", scaling, undefined)).toMatchObject({
      pipes: { total: 1, updated: 0 },
      lines: [{ name: "pipe-a", to: FOUR, state: "failed", why: "no" }],
    });
  });
});

test.each([
  // Two of the old are there yet, all available: none of the new is sure to be.
  [{ replicas: 4, updatedReplicas: 2, availableReplicas: 2 }, 0],
  [{ replicas: 4, updatedReplicas: 2, availableReplicas: 3 }, 1],
  [{ replicas: 3, updatedReplicas: 3, availableReplicas: 2 }, 2],
  [{ replicas: 3, updatedReplicas: 3, availableReplicas: 3, observedGeneration: 0 }, 0],
])("of the replicas in %j so many are sure to be new: %i", (status, sure) => {
  const deployment: Deployment = {
    metadata: { name: "pipe-a", uid: "u", resourceVersion: "1", generation: 1 },
    spec: { replicas: 3, template: { spec: { containers: [{ name: "pipe" }] } } },
    status: { observedGeneration: 1, ...status },
  };
  expect(watchedPipeOf(deployment).updatedReplicas).toBe(sure);
});
