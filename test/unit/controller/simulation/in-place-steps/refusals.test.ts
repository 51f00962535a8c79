import { describe, expect, it } from "vitest";
import type { FallbackReason } from "../../../../../src/crd/fallback-reasons.ts";
import { KubeApiError, KubeUnreachableError } from "../../../../../src/kube/errors.ts";
import { STEPS, type Step } from "../../../../support/in-place-steps.ts";
import { type Fault, LOST_ANSWER } from "../../../../support/simulation/cluster.ts";
import { HeldPipe } from "../../../../support/simulation/held-steps.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const ONE = "1000m/4Gi";

const [FIRST_POD, SECOND_POD] = ["resize of the first pod", "resize of the second pod"] as const;
const REPLICA_SET = "write to the ReplicaSet";

function failure(code: number, message: string): Fault {
  return { error: new KubeApiError("PATCH", code, JSON.stringify({ message })) };
}

const BROKEN = failure(500, "failed calling webhook");
const CUT: Fault = { error: new KubeUnreachableError("the connection was reset") };
/** The API server has just started. */
const WITHOUT_ROLES = failure(
  403,
  'pods "a" is forbidden: User "controller" cannot patch: RBAC: clusterrole.rbac.authorization.k8s.io "b" not found',
);

const REFUSALS: readonly [string, number, string, FallbackReason][] = [
  ["an admission policy", 422, "ValidatingAdmissionPolicy 'pipes' denied request: no", "Refused"],
  ["a quota", 403, 'pods "a" is forbidden: exceeded quota: compute', "Refused"],
  ["a webhook", 409, 'admission webhook "a" denied the request: no', "Refused"],
  ["RBAC", 403, 'pods "a" is forbidden: User "controller" cannot patch resource "pods"', "Forbidden"],
];

describe.each(REFUSALS)("a resize in place that %s refuses", (_, code, message, reason) => {
  const steps = STEPS.filter((step) => step !== "resumption");

  it.each(steps)("leads to a rollout with this message if it refuses the %s", async (step) => {
    const pipe = await HeldPipe.start();
    const requests = pipe.failAlwaysAt(step, failure(code, message));
    let atRollout: readonly string[] | undefined;
    pipe.at({ step: "rollout", delayMs: 5 }, () => {
      atRollout = pipe.wantedSizes();
    });
    // A write that is refused is repeated after five minutes, because the rollout would probably be refused too.
    await pipe.request(2, 6 * MINUTE);
    expect(requests.failed).toBe(1);
    pipe.expectSettled(2);
    pipe.expectFallback(step === "dry run" ? "Refused" : reason, message);
    // The pods have their old size again before they are replaced. After the pause, the template already has the size.
    expect(atRollout).toEqual(step === REPLICA_SET ? undefined : [ONE, ONE]);
    expect(pipe.longestPauseMs).toBeLessThan(SECOND);
  });

  it("leaves the Deployment paused only while it refuses the resumption, and reports it", async () => {
    const pipe = await HeldPipe.start();
    const requests = pipe.failAlwaysAt("resumption", failure(code, message));
    await pipe.request(2, 10 * MINUTE);
    expect(pipe.simulation.condition(1)?.message).toContain(message);
    expect(pipe.isPaused).toBe(true);
    expect(requests.failed).toBeLessThanOrEqual(10);
    pipe.heal();
    await pipe.run(6 * MINUTE);
    pipe.expectSettled(2);
    pipe.expectNoRestart();
  });
});

const TRANSIENT: readonly [string, Fault][] = [
  ["a conflict", failure(409, "the object has been modified")],
  ["an error of a webhook", BROKEN],
  ["a lost request", CUT],
  ["a lost response", LOST_ANSWER],
  ["a missing role", WITHOUT_ROLES],
];

describe.each(TRANSIENT)("%s", (_, fault) => {
  it.each(STEPS)("at the %s causes no restart", async (step) => {
    const pipe = await HeldPipe.start();
    const requests = pipe.failAt(step, [fault]);
    await pipe.request(2);
    expect(requests.failed).toBe(1);
    pipe.expectSettled(2);
    pipe.expectNoRestart();
  });

  it.each(STEPS)("at the %s, and a second one after it, cause no restart", async (step) => {
    const pipe = await HeldPipe.start();
    // After a lost response, the step is not repeated.
    const second = fault === LOST_ANSWER ? CUT : fault;
    const requests = pipe.failAt(step, [second, fault]);
    await pipe.request(2);
    expect(requests.failed).toBe(2);
    pipe.expectSettled(2);
    pipe.expectNoRestart();
  });
});

it.each(STEPS)(
  "an API server that stops at the %s, and then does not know its roles for a moment, causes no restart",
  async (step) => {
    const pipe = await HeldPipe.start();
    const requests = pipe.failAt(step, [CUT, WITHOUT_ROLES]);
    await pipe.request(2);
    expect(requests.failed).toBe(2);
    pipe.expectSettled(2);
    pipe.expectNoRestart();
  },
);

describe("a webhook that makes every attempt fail", () => {
  it("at the dry run keeps the pods and reports its error", async () => {
    const pipe = await HeldPipe.start();
    const requests = pipe.failAlwaysAt("dry run", BROKEN);
    await pipe.request(2, 10 * MINUTE);
    expect(pipe.simulation.condition(1)).toMatchObject({ reason: "WriteFailed" });
    expect(requests.failed).toBeLessThanOrEqual(10);
    expect(pipe.wantedSizes()).toEqual([ONE, ONE]);
    expect(pipe.uids()).toEqual(pipe.before);
    pipe.heal();
    await pipe.run(6 * MINUTE);
    pipe.expectSettled(2);
    pipe.expectNoRestart();
  });

  it.each<[Step, FallbackReason, string, number]>([
    [FIRST_POD, "ResizeTimeout", "the API server has not resized it", 0],
    [SECOND_POD, "ResizeTimeout", "the API server has not resized it", 0],
    ["pause", "Refused", "failed calling webhook", 0],
    [REPLICA_SET, "CommitTimeout", "the API server has not changed it within 30 s", 30 * SECOND],
  ])("at the %s leads to a rollout with few writes", async (step, reason, message, pausedMs) => {
    const pipe = await HeldPipe.start();
    const requests = pipe.failAlwaysAt(step, BROKEN);
    await pipe.request(2, 10 * MINUTE);
    pipe.expectSettled(2);
    pipe.expectFallback(reason, message);
    expect(requests.failed).toBeLessThanOrEqual(12);
    expect(pipe.longestPauseMs).toBeLessThan(pausedMs + SECOND);
  });
});

it.each([FIRST_POD, SECOND_POD])(
  "an API server that does not know the %s leads to a rollout",
  async (step) => {
    const pipe = await HeldPipe.start();
    pipe.failAlwaysAt(step, failure(405, "the server does not allow this method"));
    await pipe.request(2);
    pipe.expectSettled(2);
    pipe.expectFallback("NotSupported", "the API server cannot resize pods");
  },
);
