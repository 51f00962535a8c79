import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeScalingView } from "../../../../src/controller/observe/pipe-scaling-view.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import { statusOf } from "../../../../src/controller/report/status.ts";
import type { Condition, PipeScalingStatus } from "../../../../src/crd/pipe-scaling.ts";
import { describedSize } from "../../../../src/crd/size-fields.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { mergePatch } from "../../../../src/runtime/merge-patch.ts";
import { aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import {
  aLabelledPipe,
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  COMPLETE,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
  UNDER_WAY,
} from "../../../support/fixtures/snapshot.ts";

const ONE = sizeOfCores(1);
const FOUR = sizeOfCores(4);

/** Returns the status after each of these states of one pipe; the desired size is one core. */
function statusesOf(...states: readonly Partial<PipeView>[]): PipeScalingStatus[] {
  let status: PipeScalingStatus = {};
  return states.map((state) => {
    const scaling = aScaling(1, { status });
    const snapshot = aSnapshot([aPipe("a", state)], { scaling });
    status = statusOf(snapshot, scaling, decide(snapshot, DECIDE_OPTIONS), POLICY);
    return status;
  });
}

function readiness(status: PipeScalingStatus): string | undefined {
  return status.conditions?.find(({ type }) => type === "Ready")?.status;
}

const done = { size: ONE, rollout: COMPLETE };
/** The controller has recorded that the pipe had its size. */
const adopted = { size: ONE, lastRollout: aRollout(ONE, { attempts: 0, generation: 0, cameUp: true }) };

describe("a pipe whose pods the controller does not see", () => {
  it("stays done while its owner rolls out something else, after its size was recorded", () => {
    const states = [done, { ...adopted, rollout: UNDER_WAY }];
    expect(statusesOf(...states).map(readiness)).toEqual(["True", "True"]);
  });

  it("must come up first if nothing was recorded", () => {
    const taken = { size: FOUR, rollout: UNDER_WAY };
    const givenBack = { size: ONE, rollout: UNDER_WAY };
    const statuses = statusesOf(done, taken, givenBack, done);
    expect(statuses.map(readiness)).toEqual(["True", "False", "False", "True"]);
  });
});

describe("a pipe whose pods run the size before its template has it", () => {
  const pipe = aLabelledPipe("a");
  const statusWith = (changes: Partial<Snapshot>, pipes = [pipe], before: PipeScalingStatus = {}) => {
    const scaling = aScaling(4, { status: before });
    const strategy = "InPlaceOrRollout";
    const pods = new Map([["a", [aResizedPod("a-1", { resizedAtMs: NOW_MS })]]]);
    const snapshot = aSnapshot(pipes, { scaling, strategy, pods, ...changes });
    return statusOf(snapshot, scaling, decide(snapshot, DECIDE_OPTIONS), POLICY);
  };

  it("counts as updated and ends the rescale, but is not Ready", () => {
    const status = statusWith({});
    expect(status).toMatchObject({
      pipes: {
        updated: 1,
        inPlace: 1,
        pending: [{ name: "a", state: "Resized" }],
      },
      effective: { replicaCpuMillicores: 4000 },
      propagation: { completedAt: expect.any(String) },
    });
    expect(readiness(status)).toBe("False");
    expect(status.conditions?.[0]?.message).toBe("The one pipe runs 4 cpu / 16 Gi. Its template follows: a.");
  });

  it.each([
    ["at first", NOW_MS],
    ["after the time that a rollout may take", NOW_MS - 2 * POLICY.rolloutTimeoutMs],
  ])("has not failed although its template cannot follow, %s", (_, sinceMs) => {
    const at = new Date(sinceMs).toISOString();
    const conditions: Condition[] = [
      { type: "Ready", status: "False", reason: "Progressing", message: "", lastTransitionTime: at },
    ];
    const desired = { ...describedSize(FOUR), source: "Spec" } as const;
    const before = { conditions, desired, propagation: { startedAt: at } };
    const templateProblem = { reason: "PodsNotLabeled", message: "its template has no label" } as const;
    const status = statusWith({ strategy: "InPlace" }, [aLabelledPipe("a", { templateProblem })], before);
    expect(status).toMatchObject({
      pipes: { updated: 1, pending: [{ state: "Resized", reason: "PodsNotLabeled" }] },
      failures: undefined,
    });
    expect(status.conditions?.[0]).toMatchObject({
      reason: "Progressing",
      message: "The one pipe runs 4 cpu / 16 Gi. With a template that cannot follow: a (PodsNotLabeled).",
    });
  });

  it("does not count while one of its pods has another size, whatever its template says", () => {
    const pods = new Map([["a", [aResizedPod("a-1"), aPod("a-2")]]]);
    const sized = aLabelledPipe("a", { size: FOUR, replicas: 2 });
    for (const status of [statusWith({ pods }), statusWith({ pods }, [sized])]) {
      expect(status).toMatchObject({ pipes: { updated: 0 } });
      expect([readiness(status), status.effective, status.propagation?.completedAt]).toEqual([
        "False",
        undefined,
        undefined,
      ]);
    }
  });
});

describe("the conditions of a status", () => {
  const others = (count: number): Condition[] =>
    Array.from({ length: count }, (_, index) => ({
      type: `Other${index}`,
      status: "True",
      reason: "Other",
      message: "Another tool wrote it.",
      lastTransitionTime: "2026-01-01T00:00:00Z",
    }));
  const typesAfter = (conditions: readonly Condition[], cores = 1): string[] | undefined => {
    const scaling = aScaling(cores, { status: { conditions: [...conditions] } });
    const snapshot = aSnapshot([aPipe("a", done)], { scaling });
    const status = statusOf(snapshot, scaling, decide(snapshot, DECIDE_OPTIONS), POLICY);
    return status.conditions?.map(({ type }) => type);
  };

  it("keep those of other tools where they are", () => {
    const [first, second] = others(2);
    const [ready] = statusesOf(done)[0]?.conditions ?? [];
    if (!first || !second || !ready) throw new Error("a condition is missing");
    expect(typesAfter([first, ready, second])).toEqual(["Other0", "Ready", "Other1"]);
    expect(typesAfter([first, ready, second], 4)).toEqual(["Other0", "Ready", "Other1", "Reconciling"]);
    expect(typesAfter([first, { ...ready, type: "Stalled" }, second])).toEqual(["Other0", "Other1", "Ready"]);
  });

  it("are at most as many as the CRD allows, and those of the controller have precedence", () => {
    expect(typesAfter(others(8), 4)).toEqual([...others(6).map(({ type }) => type), "Ready", "Reconciling"]);
  });
});

describe("the status of a service whose tier is unknown", () => {
  const obstacle = { reason: "UnknownTier", message: "The tier is gold." } as const;
  const UNKNOWN = { tier: { ok: false, obstacle } } as const;
  const reported = (
    scaling: PipeScalingView,
    changes: Partial<Snapshot> = {},
    pipe: Partial<PipeView> = done,
  ) => {
    const snapshot = aSnapshot([aPipe("a", pipe)], { scaling, ...changes });
    return statusOf(snapshot, scaling, decide(snapshot, DECIDE_OPTIONS), POLICY);
  };
  const { conditions: _, ...scaled } = reported(aScaling(1));
  const withoutConditions = ({ conditions: __, ...status }: PipeScalingStatus) => status;
  const NEXT = { ...aScaling(1).metadata, generation: 2 };
  const LATER = { nowMs: NOW_MS + 60_000 };

  it("is about the same size while the spec is the same, so that no rescale begins when the tier is known", () => {
    const unknown = reported(aScaling(1, { status: scaled }), { ...UNKNOWN, ...LATER });
    expect(mergePatch(scaled, withoutConditions(unknown))).toBeUndefined();
    const known = reported(aScaling(1, { status: unknown }), LATER);
    expect(mergePatch(scaled, withoutConditions(known))).toBeUndefined();
  });

  it("says nothing about a size if the spec has changed, and stays so", () => {
    const failures = [
      { pipe: "a", size: describedSize(ONE), reason: "Refused", message: "", attempts: 1, at: "" },
    ];
    const changed = { metadata: NEXT, status: { ...scaled, failures } };
    const status = reported(aScaling(4, changed), UNKNOWN);
    expect(mergePatch(scaled, withoutConditions(status))).toEqual({
      observedGeneration: 2,
      desired: null,
      pipes: null,
      computeUnits: null,
    });
    expect(status.failures).toBeUndefined();
    const again = reported(aScaling(4, { metadata: NEXT, status }), { ...UNKNOWN, ...LATER });
    expect(mergePatch(status, again)).toBeUndefined();
  });

  it("continues the last rescale if the changed spec has the same size", () => {
    const unknown = reported(aScaling(1, { metadata: NEXT, status: scaled }), { ...UNKNOWN, ...LATER });
    const known = reported(aScaling(1, { metadata: NEXT, status: unknown }), LATER);
    expect(known.propagation?.startedAt).toBe(scaled.propagation?.startedAt);
    expect(known.history).toEqual(scaled.history);
    const other = reported(aScaling(4, { metadata: NEXT, status: unknown }), LATER);
    expect(other.propagation?.startedAt).not.toBe(scaled.propagation?.startedAt);
    expect(other.history).toHaveLength(2);
  });
});

it("the status of a PipeScaling that waits for a finalizer says so", () => {
  const scaling = aScaling(4, { isBeingDeleted: true });
  const snapshot = aSnapshot([aPipe("a")], { scaling });
  const status = statusOf(snapshot, scaling, decide(snapshot, DECIDE_OPTIONS), POLICY);
  const about = { reason: "Deleting", message: "The PipeScaling is being deleted." };
  expect(status.conditions).toContainEqual(expect.objectContaining({ type: "Reconciling", ...about }));
  expect(status.conditions).toContainEqual(expect.objectContaining({ type: "Ready", status: "False" }));
});

it("the status has the rollout timeout in whole seconds, because its schema accepts no others", () => {
  const scaling = aScaling(1);
  const snapshot = aSnapshot([aPipe("a", done)], { scaling });
  const { sizing } = decide(snapshot, DECIDE_OPTIONS);
  const { limits } = statusOf(snapshot, scaling, { sizing }, { ...POLICY, rolloutTimeoutMs: 1500 });
  expect(limits?.rolloutTimeoutSeconds).toBe(2);
});
