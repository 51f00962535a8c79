import { expect, it } from "vitest";
import { timedPhase } from "../../../../src/controller/rollout/phase.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import {
  aPipe,
  aRollout,
  COMPLETE,
  NOW_MS,
  POLICY,
  rollingTo,
  UNDER_WAY,
} from "../../../support/fixtures/snapshot.ts";

it("a pipe whose old pods never terminate leaves the phase terminating even if its last rollout is in the future", () => {
  const rollout = { ...COMPLETE, terminatingReplicas: 1, progressedAtS: NOW_MS / 1000 - 3600 };
  const lastRollout = aRollout(sizeOfCores(1), { startedAtMs: NOW_MS + 24 * 3_600_000 });
  const pipe = aPipe("a", { rollout, lastRollout });
  expect(timedPhase(pipe, { nowMs: NOW_MS, policy: POLICY }).phase).toBe("settled");
});

it("a Deployment that is newer than its last rollout is not overdue before its own age reaches the timeout", () => {
  const startedAtMs = NOW_MS - 2 * POLICY.rolloutTimeoutMs;
  const lastRollout = aRollout(sizeOfCores(4), { startedAtMs });
  const timing = { nowMs: NOW_MS, policy: POLICY };
  const created = (createdAtMs: number) => rollingTo("a", sizeOfCores(4), { lastRollout, createdAtMs });
  expect(timedPhase(created(startedAtMs), timing).phase).toBe("overdue");
  expect(timedPhase(created(NOW_MS - 60_000), timing).phase).toBe("rolling-out");
});

it("the timeout is the longer one of the policy and of the owner's deadline, plus the time until a pod is available", () => {
  const lastRollout = aRollout(sizeOfCores(4), { startedAtMs: NOW_MS - 2 * POLICY.rolloutTimeoutMs });
  const timing = { nowMs: NOW_MS, policy: POLICY };
  const phaseWith = (times: { readonly deadlineMs: number; readonly minReadyMs?: number }) =>
    timedPhase(rollingTo("a", sizeOfCores(4), { lastRollout, ...times }), timing).phase;
  const { rolloutTimeoutMs } = POLICY;
  expect(phaseWith({ deadlineMs: rolloutTimeoutMs })).toBe("overdue");
  expect(phaseWith({ deadlineMs: 2 * rolloutTimeoutMs + 1 })).toBe("rolling-out");
  expect(phaseWith({ deadlineMs: rolloutTimeoutMs, minReadyMs: rolloutTimeoutMs })).toBe("overdue");
  expect(phaseWith({ deadlineMs: 0, minReadyMs: rolloutTimeoutMs + 1 })).toBe("rolling-out");
});

it.each([
  ["rolling-out", UNDER_WAY],
  ["terminating", { ...COMPLETE, terminatingReplicas: 1 }],
])(
  "by a clock that went back behind the start, the condition of the previous rollout does not end the phase %s",
  (phase, rollout) => {
    const lastRollout = aRollout(sizeOfCores(4), { startedAtMs: NOW_MS + 1 });
    const phaseWith = (progressedAtS: number) => {
      const pipe = rollingTo("a", sizeOfCores(4), { lastRollout, rollout: { ...rollout, progressedAtS } });
      return timedPhase(pipe, { nowMs: NOW_MS, policy: POLICY });
    };
    const { rolloutTimeoutMs } = POLICY;
    expect(phaseWith(lastRollout.progressedAtS)).toEqual({ phase, phaseEndsAtMs: NOW_MS + rolloutTimeoutMs });
    expect(phaseWith(NOW_MS / 1000 - 60)).toEqual({
      phase,
      phaseEndsAtMs: NOW_MS - 60_000 + rolloutTimeoutMs,
    });
  },
);
