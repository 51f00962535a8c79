import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import { Reporter } from "../../../../src/controller/report/reporter.ts";
import { KubeApiError, KubeUnreachableError } from "../../../../src/kube/errors.ts";
import { createLogger } from "../../../../src/telemetry/log.ts";
import { anApplier } from "../../../support/fixtures/applier.ts";
import { aPipe, aScaling, aSnapshot, DECIDE_OPTIONS, POLICY } from "../../../support/fixtures/snapshot.ts";

const SECOND = 1000;
const OWN = aScaling(4);
const OTHER = aScaling(2, { metadata: { ...OWN.metadata, namespace: "tenant", uid: "other-uid" } });

/** Reports on a service with a PipeScaling, and another one in the namespace of another tenant. */
function setup(fail: (namespace: string) => Error | undefined) {
  const { applier, caches, clock, requests } = anApplier(({ method, path }) => {
    const { namespace } = path.includes("/namespaces/tenant/") ? OTHER.metadata : OWN.metadata;
    if (method !== "PATCH") return { items: [] };
    const error = fail(namespace);
    if (error) throw error;
    return OWN;
  });
  const reporter = new Reporter({
    ...applier,
    caches,
    policy: POLICY,
    events: { record: () => undefined },
    metrics: { passed: () => undefined, reported: () => undefined },
    log: createLogger("silent", "controller", { write: () => undefined }),
  });
  const report = async () => {
    const snapshot = aSnapshot([aPipe("a")], {
      nowMs: clock.now(),
      scaling: OWN,
      unmanaged: [OTHER],
      writes: applier.writes,
    });
    const dueAtMs = await reporter.report(snapshot, decide(snapshot, DECIDE_OPTIONS));
    return dueAtMs - clock.now();
  };
  const written = (namespace: string) =>
    requests.filter(({ method, path }) => method === "PATCH" && path.includes(`/namespaces/${namespace}/`));
  return { clock, report, written };
}

const denial = (code: number, retryAfterHeader?: string) =>
  new KubeApiError(
    "PATCH",
    code,
    JSON.stringify({ message: 'admission webhook "quiet" denied the request: later' }),
    { retryAfterHeader },
  );
const conflict = new KubeApiError("PATCH", 409, JSON.stringify({ message: "the object has been modified" }));

describe("a status that the server wants to have later", () => {
  it.each([403, 409, 422, 429, 503])(
    "is written then, and fails no reconciliation meanwhile, after a %i",
    async (code) => {
      const { clock, report, written } = setup((namespace) =>
        namespace === "pipes" ? denial(code, "60") : undefined,
      );
      expect(await report()).toBe(60 * SECOND);
      await clock.advance(59 * SECOND);
      expect(await report()).toBe(SECOND);
      expect(written("pipes")).toHaveLength(1);
      await clock.advance(SECOND);
      expect(await report()).toBe(60 * SECOND);
      expect(written("pipes")).toHaveLength(2);
    },
  );

  it.each([
    ["without Retry-After", denial(429)],
    ["of an outdated view", conflict],
    ["without a response", new KubeUnreachableError("cut short")],
  ])("fails its reconciliation after an error %s", async (_, error) => {
    const { report } = setup((namespace) => (namespace === "pipes" ? error : undefined));
    await expect(report()).rejects.toBe(error);
  });
});

describe("the status of a PipeScaling with the ID of the service in the namespace of another tenant", () => {
  it.each([
    ["with Retry-After", denial(429, "60"), 60 * SECOND],
    ["without it", denial(429), SECOND],
    ["because of a conflict", conflict, 0],
    ["without a response", new KubeUnreachableError("cut short"), SECOND],
  ])("fails no reconciliation of the service if it is not written %s", async (_, error, dueInMs) => {
    const { report, written } = setup((namespace) => (namespace === "tenant" ? error : undefined));
    expect(await report()).toBe(dueInMs);
    expect(written("pipes")).toHaveLength(1);
    expect(written("tenant")).toHaveLength(1);
  });
});
