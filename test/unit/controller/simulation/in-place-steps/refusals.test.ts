import { describe, expect, it } from "vitest";
import type { FallbackReason } from "../../../../../src/crd/fallback-reasons.ts";
import type { FailureReason } from "../../../../../src/crd/reasons.ts";
import { KubeApiError, KubeUnreachableError } from "../../../../../src/kube/errors.ts";
import { STEPS, type Step } from "../../../../support/in-place-steps.ts";
import { type Fault, LOST_ANSWER } from "../../../../support/simulation/cluster.ts";
import { HeldPipe } from "../../../../support/simulation/held-steps.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const [ONE, TWO] = ["1000m/4Gi", "2000m/8Gi"];
/** Maximum number of writes to one object in the first hour. */
const MAX_WRITES = 20;

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

type Refusal = readonly [string, number, string, FallbackReason];

const QUOTA: Refusal = ["a quota", 403, 'pods "a" is forbidden: exceeded quota: compute', "Refused"];

const RBAC: Refusal = [
  "RBAC",
  403,
  'pods "a" is forbidden: User "controller" cannot patch resource "pods"',
  "Forbidden",
];

const REFUSALS: readonly Refusal[] = [
  ["an admission policy", 422, "ValidatingAdmissionPolicy 'pipes' denied request: no", "Refused"],
  QUOTA,
  ["a webhook", 409, 'admission webhook "a" denied the request: no', "Refused"],
  RBAC,
];

/** An own test has what happens then: a size that new pods could not have either is no reason to replace pods. */
function isOfSize(what: string, step: Step): boolean {
  return what === "a quota" && (step === FIRST_POD || step === SECOND_POD);
}

describe.each(REFUSALS)("a resize in place that %s refuses", (what, code, message, reason) => {
  // At the pause, a missing permission is no matter of the values.
  const steps = STEPS.filter(
    (step) => step !== "resumption" && !isOfSize(what, step) && !(step === "pause" && reason === "Forbidden"),
  );

  it.each(steps)("leads to a rollout with this message if it refuses the %s", async (step) => {
    const pipe = await HeldPipe.start();
    const requests = pipe.failAlwaysAt(step, failure(code, message));
    let atRollout: readonly string[] | undefined;
    pipe.at({ step: "rollout", delayMs: 5 }, () => {
      atRollout = pipe.wantedSizes();
    });
    await pipe.request(2, MINUTE);
    expect(requests.failed).toBe(1);
    pipe.expectSettled(2);
    pipe.expectFallback(reason, message);
    // The pods have their old size again before they are replaced.
    expect(atRollout).toEqual([ONE, ONE]);
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

describe("a quota that is too small for the size of a pod", () => {
  const [, code, message] = QUOTA;

  it.each([FIRST_POD, SECOND_POD])(
    "at the %s replaces no pod, and is reported until the quota is raised",
    async (step) => {
      const pipe = await HeldPipe.start();
      const requests = pipe.failAlwaysAt(step, failure(code, message));
      await pipe.request(2, 4 * MINUTE);
      for (const attempts of [1, 2, 3, 4]) {
        expect(requests.failed).toBe(attempts);
        expect(pipe.simulation.condition(1)).toMatchObject({
          type: "Stalled",
          status: "True",
          reason: "Refused",
        });
        expect(pipe.simulation.status(1).failures).toMatchObject([
          { attempts, message: expect.stringContaining(`${message}; raise the ResourceQuota "compute"`) },
        ]);
        expect(pipe.simulation.status(1).pipes?.pending).toMatchObject([{ state: "Failed" }]);
        // A pod that was resized has the size of the template again.
        expect({ pods: pipe.podSizes(), template: pipe.templateSize() }).toEqual({
          pods: [ONE, ONE],
          template: ONE,
        });
        await pipe.run(5 * MINUTE * 2 ** (attempts - 1));
      }
      pipe.heal();
      await pipe.run(HOUR);
      pipe.expectSettled(2);
      pipe.expectNoRestart();
    },
  );

  it("does not prevent that the first size is requested again", async () => {
    const pipe = await HeldPipe.start();
    pipe.failAlwaysAt(SECOND_POD, failure(code, message));
    await pipe.request(2, MINUTE);
    await pipe.request(1, MINUTE);
    pipe.expectSettled(1);
    pipe.expectNoRestart();
  });
});

describe("a quota that is too small for the size of the template", () => {
  const [, code, message] = QUOTA;

  it("is reported with few writes if the size is requested again before the template has followed its pods", async () => {
    const pipe = await HeldPipe.start();
    const { cluster, simulation } = pipe;
    await pipe.request(2, 2 * MINUTE);
    pipe.setImage("registry.example/pipe:2");
    await pipe.run(MINUTE);
    pipe.failAlwaysAt("pause", failure(500, "{}"));
    await pipe.request(1, 10 * SECOND);
    expect({ pods: pipe.podSizes(), template: pipe.templateSize() }).toEqual({
      pods: [ONE, ONE],
      template: TWO,
    });
    cluster.fault = ({ path }) => (path.endsWith("/resize") ? failure(code, message) : undefined);
    const before = cluster.attempts.length;
    await pipe.request(2, 4 * MINUTE);
    const written = cluster.attempts.slice(before).map(({ target }) => target);
    expect(written.filter((target) => target.startsWith("pods/resize"))).toHaveLength(1);
    expect(simulation.condition(1)).toMatchObject({ type: "Stalled", status: "True", reason: "Refused" });
    expect(simulation.status(1).failures).toMatchObject([
      { attempts: 1, message: expect.stringContaining(message) },
    ]);
    pipe.heal();
    await pipe.run(10 * MINUTE);
    pipe.expectSettled(2);
  });
});

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

  it.each([FIRST_POD, SECOND_POD])("at the %s leads to a rollout with few writes", async (step) => {
    const pipe = await HeldPipe.start();
    const requests = pipe.failAlwaysAt(step, BROKEN);
    await pipe.request(2, 10 * MINUTE);
    pipe.expectSettled(2);
    pipe.expectFallback("ResizeTimeout", "the API server has not resized it");
    expect(requests.failed).toBeLessThanOrEqual(12);
    expect(pipe.longestPauseMs).toBe(0);
  });
});

/** Until these are over, the template cannot follow. */
const LASTING: readonly [string, Fault, FailureReason, string][] = [
  ["a webhook that fails", BROKEN, "WriteFailed", "failed calling webhook"],
  ["an API server that is not reachable", CUT, "WriteFailed", "the connection was reset"],
  ["a conflict", failure(409, "the object has been modified"), "WriteFailed", "the object was changed"],
];
const FORBIDDEN: (typeof LASTING)[number] = [
  "a missing permission",
  failure(RBAC[1], RBAC[2]),
  "Forbidden",
  RBAC[2],
];
const LASTING_AT: readonly (readonly [...(typeof LASTING)[number], Step])[] = [
  ...[...LASTING, FORBIDDEN].map((each) => [...each, "pause"] as const),
  ...LASTING.map((each) => [...each, REPLICA_SET] as const),
];

describe.each(LASTING_AT)("%s for an hour", (_, fault, reason, message, step) => {
  it(`at the ${step} restarts no pod, and is reported`, async () => {
    const pipe = await HeldPipe.start();
    const requests = pipe.failAlwaysAt(step, fault);
    await pipe.request(2, 5 * MINUTE);
    expect(requests.failed).toBeGreaterThan(5);
    expect(pipe.simulation.condition(1)).toMatchObject({ reason });
    expect(pipe.simulation.condition(1)?.message).toContain(message);
    await pipe.run(55 * MINUTE);
    expect(pipe.longestPauseMs).toBeLessThan((step === "pause" ? 0 : 30 * SECOND) + SECOND);
    const sizes = { wanted: pipe.wantedSizes(), actual: pipe.podSizes() };
    expect(sizes).toEqual({ wanted: [TWO, TWO], actual: [TWO, TWO] });
    expect(pipe.uids()).toEqual(pipe.before);
    pipe.heal();
    await pipe.run(11 * MINUTE);
    pipe.expectSettled(2);
    pipe.expectNoRestart();
  });

  it(`at the ${step} causes no more than ${MAX_WRITES} writes to one object`, async () => {
    const pipe = await HeldPipe.start();
    const requests = pipe.failAlwaysAt(step, fault);
    const before = pipe.writesToDeployment();
    await pipe.request(2, HOUR);
    expect(requests.failed).toBeLessThanOrEqual(MAX_WRITES);
    expect(pipe.writesToDeployment() - before).toBeLessThanOrEqual(MAX_WRITES);
  });
});

it("a policy that refused a ReplicaSet once does not prevent a later resize in place", async () => {
  const pipe = await HeldPipe.start();
  pipe.failAlwaysAt(REPLICA_SET, failure(422, "ValidatingAdmissionPolicy 'pipes' denied request: no"));
  await pipe.request(2, MINUTE);
  pipe.expectFallback("Refused");
  pipe.heal();
  const uids = pipe.uids();
  await pipe.request(3, MINUTE);
  pipe.expectSettled(3);
  expect(pipe.uids()).toEqual(uids);
  expect(pipe.simulation.fallbacks).toHaveLength(1);
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
