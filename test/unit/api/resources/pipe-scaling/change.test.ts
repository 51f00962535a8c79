import { describe, expect, it } from "vitest";
import { toPipeScalingView } from "../../../../../src/api/cluster/views.ts";
import { WriteQueue } from "../../../../../src/api/cluster/write-queue.ts";
import {
  type BoostServiceDeps,
  endBoost,
  startBoost,
} from "../../../../../src/api/resources/pipe-scaling/boost-service.ts";
import { requestSize } from "../../../../../src/api/resources/pipe-scaling/service.ts";
import type { PipeScalingSpec } from "../../../../../src/crd/pipe-scaling.ts";
import { sizeOfCores } from "../../../../../src/domain/size.ts";
import { BUILT_IN_TIERS } from "../../../../../src/domain/tier.ts";
import { createLogger } from "../../../../../src/telemetry/log.ts";
import { FakeClock } from "../../../../support/fakes/fake-clock.ts";
import { organizationWith } from "../../../../support/fixtures/records.ts";

const UNTIL = "2026-01-01T08:00:00.000Z";
const DELETED = { deletionTimestamp: "2026-01-01T00:00:00Z" };
const FOUR = { replicaCpuMillicores: 4000, replicaMemoryGb: 16 };
const TWO = { replicaCpuMillicores: 2000, replicaMemoryGb: 8 };
const PARAMS = {
  organization: organizationWith({ id: "o" }),
  service: { id: "service", organizationId: "o", name: "orders", namespace: "pipes" },
};
const REQUEST = { requestId: "r", apiKey: "k", requestedAt: UNTIL, permit: () => undefined };

function scaling(
  spec: PipeScalingSpec,
  metadata: { readonly deletionTimestamp?: string } = {},
  generation = 1,
) {
  const identity = { name: "service", namespace: "pipes", uid: "u", resourceVersion: `${generation}` };
  return toPipeScalingView({ metadata: { ...identity, generation, ...metadata }, spec });
}

const CHANGES = {
  "a size": (deps: BoostServiceDeps) => requestSize(PARAMS, sizeOfCores(4), REQUEST, deps),
  "a boost": (deps: BoostServiceDeps) =>
    startBoost(PARAMS, { size: sizeOfCores(4), untilMs: Date.parse(UNTIL) }, REQUEST, deps),
  "the end of a boost": (deps: BoostServiceDeps) => endBoost(PARAMS, REQUEST, deps),
};

/** Makes a change that the cluster stores like this; `observed` is what the process has in its cache then. */
async function change(what: keyof typeof CHANGES, ...stored: Parameters<typeof scaling>) {
  const lines: Record<string, unknown>[] = [];
  const observed: unknown[] = [];
  const clock = new FakeClock();
  const [spec, metadata] = stored;
  const written = () => Promise.resolve(scaling(spec, metadata, 2));
  const unexpected = () => Promise.reject(new Error("no read was expected"));
  const outcome = CHANGES[what]({
    clock,
    maxBoostMs: 86_400_000,
    tiers: BUILT_IN_TIERS,
    log: createLogger("info", "api", { write: (line) => lines.push(JSON.parse(line)) }),
    scalingWrites: new WriteQueue(clock),
    cache: {
      scaling: () => scaling({ ...TWO, boost: { ...TWO, until: UNTIL } }),
      hasHadScaling: () => true,
      observeScaling: (_namespace, object) => observed.push(object.metadata.resourceVersion),
    },
    scalingWriter: { write: written, writeBoost: written, read: unexpected },
  });
  const [settled] = await Promise.allSettled([outcome]);
  return { settled, lines, observed };
}

describe("the response to a change of the size or the boost", () => {
  const VALUES = {
    "a size": FOUR,
    "a boost": { ...TWO, boost: { ...FOUR, until: UNTIL } },
    "the end of a boost": TWO,
  };

  describe.each([
    ["a size", "NotConfirmed"],
    ["a boost", "NotConfirmed"],
    ["the end of a boost", "EndNotConfirmed"],
  ] as const)("to %s", (what, reason) => {
    it.each([
      ["deleted", {}],
      ["deleted and suspended", { suspend: true }],
    ])("is a 503 if the object is %s after the cache was read, and a finalizer keeps it", async (_, spec) => {
      const { settled, lines, observed } = await change(what, { ...VALUES[what], ...spec }, DELETED);
      expect(settled).toMatchObject({ status: "rejected", reason: { status: 503, reason } });
      expect(lines).toMatchObject([{ level: "warn", msg: "size not confirmed", requestId: "r" }]);
      expect(observed, "so that the next request gets the right response").toEqual(["2"]);
    });

    it.each([
      ["is as it was", {}],
      ["has been suspended since, because it keeps the change", { suspend: true }],
    ])("is the success if the object %s", async (_, spec) => {
      const { settled, lines, observed } = await change(what, { ...VALUES[what], ...spec });
      expect(settled).toMatchObject({ status: "fulfilled" });
      expect(lines).toMatchObject([{ level: "info", msg: "size accepted" }]);
      expect(observed, "so that the next request gets the right response").toEqual(["2"]);
    });
  });

  it("has the size that was stored, also if a webhook has changed it", async () => {
    const { settled, lines } = await change("a size", TWO);
    expect(settled).toEqual({ status: "fulfilled", value: sizeOfCores(2) });
    expect(lines).toMatchObject([{ msg: "size accepted", to: expect.stringMatching(/^2 /) }]);
  });

  it("has the boost that was stored, also if a webhook has changed its size or its end", async () => {
    const until = "2026-01-01T04:00:00.000Z";
    const { settled } = await change("a boost", { ...TWO, boost: { ...TWO, until } });
    const value = { size: sizeOfCores(2), untilMs: Date.parse(until) };
    expect(settled).toMatchObject({ status: "fulfilled", value });
  });

  it.each([
    ["a size", { boost: { ...FOUR, until: UNTIL } }],
    ["a boost", FOUR],
  ] as const)("is a 503 if a webhook has removed %s", async (what, spec) => {
    const { settled } = await change(what, spec);
    expect(settled).toMatchObject({ status: "rejected", reason: { status: 503, reason: "NotConfirmed" } });
  });
});
