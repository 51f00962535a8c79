import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { DeploymentView } from "../../../../src/controller/observe/deployment-view.ts";
import { statusOf } from "../../../../src/controller/report/status.ts";
import type { PipeScalingStatus } from "../../../../src/crd/pipe-scaling.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import {
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  COMPLETE,
  DECIDE_OPTIONS,
  POLICY,
  rollingTo,
  UNDER_WAY,
} from "../../../support/fixtures/snapshot.ts";

const ONE = sizeOfCores(1);
const FOUR = sizeOfCores(4);

/** Returns the status after each of these states of one pipe; the desired size is one core. */
function statusesOf(...states: readonly Partial<DeploymentView>[]): PipeScalingStatus[] {
  let status: PipeScalingStatus = {};
  return states.map((state) => {
    const scaling = aScaling(1, { status });
    const snapshot = aSnapshot([aPipe("a", state)], { scaling });
    status = statusOf(snapshot, scaling, decide(snapshot, DECIDE_OPTIONS).sizing, POLICY);
    return status;
  });
}

function readiness(status: PipeScalingStatus): string | undefined {
  return status.conditions?.find(({ type }) => type === "Ready")?.status;
}

const done = { size: ONE, rollout: COMPLETE };

describe("a pipe that the controller never resized and that came up", () => {
  it("stays done while its owner rolls out something else", () => {
    expect(statusesOf(done, { size: ONE, rollout: UNDER_WAY }).map(readiness)).toEqual(["True", "True"]);
  });

  it("must come up again after another writer changes its size and restores it", () => {
    const taken = { size: FOUR, rollout: UNDER_WAY };
    const givenBack = { size: ONE, rollout: UNDER_WAY };
    const statuses = statusesOf(done, taken, givenBack, done);
    expect(statuses.map(readiness)).toEqual(["True", "False", "False", "True"]);
  });
});

it("the status keeps the last good size of a pipe while the pipe has another size", () => {
  const [, status = {}] = statusesOf(done, { size: FOUR, rollout: UNDER_WAY });
  const rolling = rollingTo("a", FOUR, {
    lastRollout: aRollout(FOUR, { startedAtMs: 0, lastGoodSize: undefined }),
  });
  const next = aSnapshot([rolling], { scaling: aScaling(8, { status }) });
  expect(decide(next, DECIDE_OPTIONS).actions).toMatchObject([
    { type: "resize", rollout: { lastGoodSize: ONE } },
  ]);
});

it("the status has the rollout timeout in whole seconds, because its schema accepts no others", () => {
  const scaling = aScaling(1);
  const snapshot = aSnapshot([aPipe("a", done)], { scaling });
  const { sizing } = decide(snapshot, DECIDE_OPTIONS);
  const { limits } = statusOf(snapshot, scaling, sizing, { ...POLICY, rolloutTimeoutMs: 1500 });
  expect(limits?.rolloutTimeoutSeconds).toBe(2);
});
