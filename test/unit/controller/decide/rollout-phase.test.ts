import { expect, it } from "vitest";
import { rolloutPhase } from "../../../../src/controller/decide/rollout-phase.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { aPipe, aRollout, COMPLETE, NOW_MS, POLICY } from "../../../support/fixtures/snapshot.ts";

it("a pipe whose old pods never terminate leaves the phase terminating even if its last rollout is in the future", () => {
  const rollout = { ...COMPLETE, terminatingReplicas: 1, progressedAtS: NOW_MS / 1000 - 3600 };
  const lastRollout = aRollout(sizeOfCores(1), { startedAtMs: NOW_MS + 24 * 3_600_000 });
  const pipe = aPipe("a", { rollout, lastRollout });
  expect(rolloutPhase(pipe, { nowMs: NOW_MS, policy: POLICY })).toBe("settled");
});
