import { describe, expect, it, vi } from "vitest";
import { toPipeScalingView } from "../../../../../src/api/cluster/views.ts";
import { WriteQueue } from "../../../../../src/api/cluster/write-queue.ts";
import {
  type BoostServiceDeps,
  endBoost,
  startBoost,
} from "../../../../../src/api/resources/pipe-scaling/boost-service.ts";
import type { Boost } from "../../../../../src/domain/boost.ts";
import { sizeOfCores } from "../../../../../src/domain/size.ts";
import { BUILT_IN_TIERS } from "../../../../../src/domain/tier.ts";
import { KubeUnreachableError } from "../../../../../src/kube/errors.ts";
import { createLogger } from "../../../../../src/telemetry/log.ts";
import { FakeClock } from "../../../../support/fakes/fake-clock.ts";
import { organizationWith } from "../../../../support/fixtures/records.ts";

const clock = new FakeClock();
const UNTIL = "2026-01-01T08:00:00.000Z";
const OWN = { replicaCpuMillicores: 16_000, replicaMemoryGb: 64, until: UNTIL };

function scalingWith(boost: typeof OWN | undefined) {
  const metadata = { name: "service", namespace: "pipes", uid: "u", resourceVersion: "1", generation: 1 };
  return toPipeScalingView({ metadata, spec: boost ? { boost } : {} });
}

const PARAMS = {
  organization: organizationWith({ id: "o" }),
  service: {
    id: "service",
    organizationId: "o",
    name: "orders",
    namespace: "pipes",
    rolloutWindow: undefined,
  },
};
const REQUEST = { requestId: "r", apiKey: "k", requestedAt: UNTIL, permit: () => undefined };

/** A service with a boost, these calls to its cluster, and what the process logs and observes. */
function serviceWith(calls: Partial<BoostServiceDeps["scalingWriter"]>, tiers = BUILT_IN_TIERS) {
  const lines: Record<string, unknown>[] = [];
  const observed: unknown[] = [];
  const unexpected = () => Promise.reject(new Error("no such call was expected"));
  const deps: BoostServiceDeps = {
    clock,
    maxBoostMs: 86_400_000,
    tiers,
    log: createLogger("info", "api", { write: (line) => lines.push(JSON.parse(line)) }),
    scalingWrites: new WriteQueue(clock),
    cache: {
      scaling: () => scalingWith(OWN),
      hasHadScaling: () => true,
      observeScaling: (_namespace, object) => observed.push(object.boosted?.size),
    },
    scalingWriter: { write: unexpected, writeBoost: unexpected, read: unexpected, ...calls },
  };
  return { deps, lines, observed };
}

/** Ends a boost; the response to the write is lost, and then the object has this boost or does not exist. */
function end(boostNow: typeof OWN | "none" | "gone" | "unreadable") {
  const lost = () => Promise.reject(new KubeUnreachableError("lost"));
  const now =
    boostNow === "gone" ? undefined : scalingWith(typeof boostNow === "string" ? undefined : boostNow);
  const read = boostNow === "unreadable" ? lost : () => Promise.resolve(now);
  const { deps, ...seen } = serviceWith({ writeBoost: lost, read });
  return { ...seen, ended: endBoost(PARAMS, REQUEST, deps) };
}

function boostTo(cores: number): Boost {
  return { size: sizeOfCores(cores), untilMs: Date.parse(UNTIL) };
}

describe("the start of a boost", () => {
  it("is a write of its own, although others with other boosts wait at the same time", async () => {
    const writeBoost = vi.fn(async () => scalingWith(OWN));
    const { deps } = serviceWith({ writeBoost });
    await Promise.all([1, 2, 3].map((cores) => startBoost(PARAMS, boostTo(cores), REQUEST, deps)));
    expect(writeBoost.mock.calls).toHaveLength(3);
  });

  it("is a 400 without a write if the size is above the limit of the tier", async () => {
    const tier = { name: "scale", defaultSize: sizeOfCores(2), maximumSize: sizeOfCores(8) };
    const { deps } = serviceWith({}, new Map([[tier.name, tier]]));
    await expect(startBoost(PARAMS, boostTo(9), REQUEST, deps)).rejects.toMatchObject({
      status: 400,
      reason: "AboveTier",
    });
  });
});

describe("the end of a boost that a webhook changes", () => {
  const OTHER = { replicaCpuMillicores: 8000, replicaMemoryGb: 32, until: UNTIL };

  it.each([
    ["keeps the boost", OWN],
    ["sets another boost", OTHER],
    ["keeps the size until another time", { ...OWN, until: "2026-01-01T09:00:00.000Z" }],
  ])("is a 503 with an audit log line if the webhook %s", async (_what, stored) => {
    const { deps, lines } = serviceWith({ writeBoost: async () => scalingWith(stored) });
    const ended = endBoost(PARAMS, REQUEST, deps);
    await expect(ended).rejects.toMatchObject({ status: 503, reason: "EndNotConfirmed" });
    expect(lines).toMatchObject([{ level: "warn", audit: "boost", msg: "size not confirmed" }]);
  });

  it.each([
    ["is past", new Date(clock.now()).toISOString()],
    ["is no time", "9999-99-99T00:00:00Z"],
  ])(
    "succeeds if the webhook sets a boost that is not in effect, because its end %s",
    async (_what, until) => {
      const { deps, lines } = serviceWith({ writeBoost: async () => scalingWith({ ...OWN, until }) });
      await endBoost(PARAMS, REQUEST, deps);
      expect(lines).toMatchObject([{ level: "info", msg: "size accepted" }]);
    },
  );
});

describe("the end of a boost whose response from the cluster was lost", () => {
  it("succeeds if the boost is gone", async () => {
    const { ended, observed } = end("none");
    await ended;
    expect(observed).toEqual([undefined]);
  });

  it("succeeds if another boost has started since, which a repeated request would end", async () => {
    const other = { replicaCpuMillicores: 8000, replicaMemoryGb: 32, until: UNTIL };
    const { ended, observed } = end(other);
    await ended;
    expect(observed).toEqual([sizeOfCores(8)]);
  });

  it.each([
    ["the boost is still there", OWN],
    ["the object is gone", "gone"],
  ] as const)("is a 503 with an audit log line if %s", async (_what, boostNow) => {
    const { ended, lines } = end(boostNow);
    await expect(ended).rejects.toMatchObject({ status: 503, reason: "EndNotConfirmed" });
    const msg = expect.stringContaining("not confirmed");
    expect(lines).toMatchObject([{ level: "warn", audit: "boost", requestId: "r", msg }]);
  });

  it("is a 503 that does not recommend to repeat the request blindly if the object cannot be read", async () => {
    await expect(end("unreadable").ended).rejects.toMatchObject({
      status: 503,
      message: expect.stringMatching(/^(?!.*safe to repeat).*Get the boost before you repeat the request/),
    });
  });
});
