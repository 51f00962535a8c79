import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import { statusOf } from "../../../../src/controller/report/status.ts";
import { MAX_FAILURES, type PipeScalingStatus } from "../../../../src/crd/pipe-scaling.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { newPod, oldPod, partitionOf, rolling } from "../../../support/fixtures/in-turn.ts";
import { amounts, aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import {
  aLabelledPipe,
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
  rollingTo,
} from "../../../support/fixtures/snapshot.ts";
import { aPodWrite, aWrite, failed, someWrites } from "../../../support/fixtures/writes.ts";

const FOUR = sizeOfCores(4);

/** The status of a service whose pipes should have four cores. */
function statusFor(
  pipes: readonly PipeView[],
  changes: Partial<Snapshot> = {},
  previous: PipeScalingStatus = {},
): PipeScalingStatus {
  const snapshot = aSnapshot(pipes, changes);
  const scaling = aScaling(4, { status: previous });
  return statusOf(snapshot, scaling, decide(snapshot, DECIDE_OPTIONS), POLICY);
}

/** The message of Ready of that service. */
function messageFor(...state: Parameters<typeof statusFor>): string | undefined {
  return statusFor(...state).conditions?.find(({ type }) => type === "Ready")?.message;
}

describe("the message of the condition Ready", () => {
  it("says for a rollout and for a resize in place that it is in progress", () => {
    const expected = "0 of 1 pipes run 4 cpu / 16 Gi. In progress: a.";
    expect(messageFor([rollingTo("a", FOUR)])).toBe(expected);
    const pods = new Map([["a", [aResizedPod("a-1", { observedGeneration: 1 })]]]);
    expect(messageFor([aLabelledPipe("a")], { strategy: "InPlaceOrRollout", pods })).toBe(expected);
  });

  it("says that a Deployment is paused, and that a StatefulSet with a partition waits for its owner", () => {
    const pipes = [
      rollingTo("b", FOUR, { isPaused: true }),
      rolling({ updatedReplicas: 2 }, {}, partitionOf(1)),
    ];
    const pods = new Map([["statefulset/a", [oldPod(0), newPod(1), newPod(2)]]]);
    const message = messageFor(pipes, { pods });
    expect(message).toContain("Paused by their owner: b. Waiting for their owner: statefulset/a.");
  });

  it("says of a pod without a node that it fits none, but not of one that waits for room on its node", () => {
    const words = "0/3 nodes are available";
    const pod = aPod("a-1", { unschedulable: words }, { resources: amounts(FOUR) });
    expect(messageFor([rollingTo("a", FOUR)], { pods: new Map([["a", [pod]]]) })).toContain(
      `In progress: a. a fits no node at present: ${words}.`,
    );
    const resize = { type: "PodResizePending", reason: "Deferred", message: "no room" } as const;
    const message = messageFor([aLabelledPipe("a", { stopsOldPodsFirst: true })], {
      strategy: "InPlaceOrRollout",
      pods: new Map([["a", [aResizedPod("a-1", { resize })]]]),
      writes: someWrites([aPodWrite("a-1", { lastAtMs: NOW_MS - 60_000 })]),
    });
    expect(message).toContain("In progress: a. a: pod a-1 waits for room on its node (no room);");
  });
});

describe("the failures of a service", () => {
  const names = Array.from({ length: MAX_FAILURES + 5 }, (_, index) => `a-${10 + index}`);
  const retried = names.map((name) => aPipe(name));
  const writes = someWrites(
    names.map((name) => aWrite(`uid-${name}`, "resize", { attempts: 5, outcome: failed() })),
  );
  const since = new Date(NOW_MS - POLICY.rolloutTimeoutMs).toISOString();
  const previous: PipeScalingStatus = {
    desired: statusFor([]).desired,
    propagation: { startedAt: since },
    conditions: [{ type: "Ready", status: "False", reason: "", message: "", lastTransitionTime: since }],
  };

  it.each([
    ["CpuLimitTooLow", aPipe("b", { cpuLimitMillicores: 1000 }), {}],
    ["RolloutTimeout", rollingTo("b", FOUR, { lastRollout: aRollout(FOUR, { startedAtMs: 0 }) }), {}],
    ["NotResizedInPlace", aPipe("b"), { strategy: "InPlace" }],
  ] as const)(
    "begin with the one that needs intervention (%s), however many writes to other pipes are retried",
    (reason, pipe, changes) => {
      const status = statusFor([...retried, pipe], { writes, ...changes }, previous);
      const failures = status.failures?.map((each) => [each.pipe, each.reason]);
      expect(failures).toEqual([
        ["b", reason],
        ...names.slice(0, MAX_FAILURES - 1).map((name) => [name, "WriteFailed"]),
      ]);
      expect(status.conditions?.find(({ type }) => type === "Stalled")?.reason).toBe(reason);
    },
  );

  it("are in the order of the pipes if all of them are of one kind", () => {
    const limited = ["a", "b"].map((name) => aPipe(name, { cpuLimitMillicores: 1000 }));
    expect(statusFor(limited).failures?.map(({ pipe }) => pipe)).toEqual(["a", "b"]);
    const status = statusFor(retried.slice(0, 3), { writes });
    expect(status.failures?.map(({ pipe }) => pipe)).toEqual(names.slice(0, 3));
    expect(status.conditions?.map(({ type, reason }) => [type, reason])).toContainEqual([
      "Reconciling",
      "WriteFailed",
    ]);
  });
});
