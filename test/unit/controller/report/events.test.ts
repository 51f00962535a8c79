import { describe, expect, it } from "vitest";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import * as events from "../../../../src/controller/report/events.ts";
import { ROLLBACK_FAILED } from "../../../../src/controller/rollout/rules.ts";
import type { PipeFailure, PipeFallback, PipeScalingStatus } from "../../../../src/crd/pipe-scaling.ts";
import { describedSize } from "../../../../src/crd/size-fields.ts";
import { describeSize, sizeOfCores } from "../../../../src/domain/size.ts";
import type { Event } from "../../../../src/runtime/event-recorder.ts";
import { aPipe, aRollout, aScaling } from "../../../support/fixtures/snapshot.ts";

const SCALING = aScaling(4);
const REQUEST = " (request request-1)";

function eventsOf(
  before: PipeScalingStatus,
  after: PipeScalingStatus,
  pipes: readonly PipeView[] = [],
): Event[] {
  return events.eventsOf({ scaling: { ...SCALING, status: before }, after, pipes, reported: new Set() });
}

function statusOf(pipes: Partial<NonNullable<PipeScalingStatus["pipes"]>>, cores = 4): PipeScalingStatus {
  const { cpuMillicores, memoryGib } = sizeOfCores(cores);
  return {
    desired: {
      replicaCpuMillicores: cpuMillicores,
      replicaMemoryGb: memoryGib,
      source: "Spec",
      summary: describeSize(sizeOfCores(cores)),
    },
    pipes: { total: 3, updated: 0, summary: "", ...pipes },
    propagation: { requestId: "request-1", startedAt: "2026-06-01T12:00:00Z" },
  };
}

const deferred = (pipe: string): PipeFallback => ({
  pipe,
  reason: "Deferred",
  message: `pod ${pipe}-1: no room`,
});

const FAILURE: PipeFailure = {
  pipe: "a",
  size: describedSize(sizeOfCores(4)),
  reason: "Refused",
  message: "the policy says no",
  attempts: 1,
  at: "2026-06-01T12:00:00Z",
};

describe("the Events of a failure", () => {
  const eventsFor = (before: Partial<PipeFailure>, after: Partial<PipeFailure>) =>
    eventsOf(
      { ...statusOf({}), failures: [{ ...FAILURE, ...before }] },
      { ...statusOf({}), failures: [{ ...FAILURE, ...after }] },
    ).map(({ reason, note }) => `${reason}: ${note}`);

  it("are one for each cause of a write that is refused again and again", () => {
    expect(eventsFor({}, { attempts: 2 })).toEqual([]);
    expect(eventsFor({}, { attempts: 2, message: "the quota says no" })).toEqual([
      "Refused: a could not be resized to 4 cpu / 16 Gi: the quota says no",
    ]);
  });

  it("are one for a write that a quota refuses again and again, whatever others use of it meanwhile", () => {
    const quotaOf = (used: string) => ({
      message: `exceeded quota: q, requested: requests.cpu=4, used: ${used}, limited: requests.cpu=8`,
    });
    expect(eventsFor(quotaOf("requests.cpu=6"), quotaOf("requests.cpu=7500m"))).toEqual([]);
    expect(eventsFor(quotaOf("requests.cpu=6"), quotaOf("requests.memory=6Gi"))).toHaveLength(1);
  });

  it("are one for a write that fails again and again, whatever the message", () => {
    const unreachable = { reason: "WriteFailed", message: "connection refused" };
    expect(eventsFor(unreachable, { ...unreachable, attempts: 2, message: "connection reset" })).toEqual([]);
  });

  it("are one for each rollout that fails, and one more if its rollback fails", () => {
    const failed = { reason: "FailedCreate", message: "exceeded quota" };
    const rollback = (attempt: number) => ({
      ...failed,
      message: `exceeded quota; ${ROLLBACK_FAILED}no (attempt ${attempt})`,
    });
    expect(eventsFor(failed, { ...failed, attempts: 2 })).toHaveLength(1);
    expect(eventsFor(failed, rollback(1))).toEqual([
      "FailedCreate: a could not be resized to 4 cpu / 16 Gi: exceeded quota; the rollback failed: no (attempt 1)",
    ]);
    expect(eventsFor(rollback(1), rollback(2))).toEqual([]);
  });
});

describe("the Event of a service that is stalled as a whole", () => {
  const stalled = (reason: string) => ({
    conditions: [
      {
        type: "Stalled",
        status: "True",
        lastTransitionTime: "",
        reason,
        message: `because of ${reason}`,
      } as const,
    ],
  });
  const eventsFor = (before: PipeScalingStatus, after: PipeScalingStatus) =>
    eventsOf(before, after).map(({ type, reason, note }) => `${type} ${reason}: ${note}`);

  it.each([
    ["no pipe has failed", []],
    ["a pipe had failed before", [FAILURE]],
    ["a pipe had failed before, with a reason of a later version", [{ ...FAILURE, reason: "Later" }]],
  ])("is recorded once if %s", (_, failures) => {
    const after = { ...statusOf({}), failures, ...stalled("UnknownTier") };
    const expected = ["Warning UnknownTier: because of UnknownTier"];
    expect(eventsFor({ ...statusOf({}), failures }, after)).toEqual(expected);
    expect(eventsFor({ ...statusOf({}), failures, ...stalled("Refused") }, after)).toEqual(expected);
    expect(eventsFor(after, after)).toEqual([]);
    expect(eventsFor(after, { ...after, ...stalled("MalformedRecord") })).toEqual([
      "Warning MalformedRecord: because of MalformedRecord",
    ]);
  });

  it("is not recorded besides the Event of the pipe whose failure stalls the service", () => {
    const after = { ...statusOf({}), failures: [FAILURE], ...stalled("Refused") };
    expect(eventsFor(statusOf({}), after)).toEqual([
      "Warning Refused: a could not be resized to 4 cpu / 16 Gi: the policy says no",
    ]);
    const later = { ...FAILURE, reason: "Later" };
    const unknown = { ...statusOf({}), failures: [later], ...stalled("RolloutFailed") };
    expect(eventsFor(statusOf({}), unknown)).toHaveLength(1);
    expect(eventsFor({ ...statusOf({}), failures: [FAILURE] }, after)).toEqual([]);
  });
});

describe("the Events of a fallback to a rollout", () => {
  const eventsFor = (before: PipeFallback[], after: PipeFallback[], cores = 4) =>
    eventsOf(statusOf({ fallbacks: before }, cores), statusOf({ fallbacks: after })).map(
      ({ type, reason, note, suffix, regarding }) => `${regarding.kind} ${type} ${reason}: ${note}${suffix}`,
    );

  it("name the reason and the request, with one Event per reason", () => {
    const refused = { pipe: "c", reason: "Refused", message: "the quota is exceeded" } as const;
    expect(eventsFor([], [deferred("a"), deferred("b"), refused])).toEqual([
      `PipeScaling Normal FellBackToRollout: Fell back to a rollout: a: pod a-1: no room; 1 more fell back for the same reason${REQUEST}`,
      `PipeScaling Normal FellBackToRollout: Fell back to a rollout: c: the quota is exceeded${REQUEST}`,
    ]);
    expect(eventsFor([deferred("a")], [deferred("a"), deferred("b")])).toEqual([]);
  });

  it("are recorded again for another size", () => {
    expect(eventsFor([deferred("a")], [deferred("a")], 2)).toHaveLength(1);
  });
});

describe("the Event of a completed rescale", () => {
  const running = aPipe("a");
  const idle = aPipe("b", { replicas: 0 });
  const notesFor = (pipes: readonly PipeView[]) => {
    const before = statusOf({ total: pipes.length });
    const propagation = { startedAt: "2026-06-01T12:00:00Z", completedAt: "2026-06-01T12:01:00Z" };
    return eventsOf(before, { ...before, propagation }, pipes).map(
      ({ reason, note }) => `${reason}: ${note}`,
    );
  };

  it("says whether the pipes run the size, or have it and no replicas", () => {
    expect(notesFor([running])).toEqual(["Scaled: The one pipe runs 4 cpu / 16 Gi."]);
    expect(notesFor([idle])).toEqual(["Scaled: The one pipe has 4 cpu / 16 Gi, and no replicas."]);
    expect(notesFor([running, idle])).toEqual([
      "Scaled: 1 of 2 pipes run 4 cpu / 16 Gi, and 1 without replicas has it.",
    ]);
  });

  it("is not recorded for a service without pipes", () => {
    expect(notesFor([])).toEqual([]);
  });
});

describe("the Event of a resize in place", () => {
  const lastRollout = aRollout(sizeOfCores(4), { replicas: 2 });
  const pipe = aPipe("a", { lastRollout });
  const inPlace = statusOf({ resizedBy: { a: "InPlace", b: "Rollout" } });

  it("is on the Deployment, and names the pods, the size and the request", () => {
    expect(eventsOf(statusOf({}), inPlace, [pipe, aPipe("b", { lastRollout })])).toEqual([
      {
        regarding: {
          apiVersion: "apps/v1",
          kind: "Deployment",
          namespace: "pipes",
          name: "a",
          uid: "uid-a",
        },
        action: "Rescale",
        type: "Normal",
        reason: "ResizedInPlace",
        note: `Resized 2 pods in place to 4 cpu / 16 Gi, and updated the template without a rollout${REQUEST}.`,
      },
    ]);
  });

  it("is recorded once, and not again for a re-created PipeScaling", () => {
    expect(eventsOf(inPlace, inPlace, [pipe])).toEqual([]);
    const other = aPipe("a", { lastRollout: { ...lastRollout, scalingUid: "deleted" } });
    expect(eventsOf(statusOf({}), inPlace, [other])).toEqual([]);
  });
});
