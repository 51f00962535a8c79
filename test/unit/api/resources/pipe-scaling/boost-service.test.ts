import { describe, expect, it } from "vitest";
import { toPipeScalingView } from "../../../../../src/api/cluster/views.ts";
import { WriteQueue } from "../../../../../src/api/cluster/write-queue.ts";
import { endBoost } from "../../../../../src/api/resources/pipe-scaling/boost-service.ts";
import { sizeOfCores } from "../../../../../src/domain/size.ts";
import { BUILT_IN_TIERS } from "../../../../../src/domain/tier.ts";
import { KubeUnreachableError } from "../../../../../src/kube/errors.ts";
import { createLogger } from "../../../../../src/telemetry/log.ts";
import { FakeClock } from "../../../../support/fakes/fake-clock.ts";

const clock = new FakeClock();
const UNTIL = "2026-01-01T08:00:00.000Z";
const OWN = { replicaCpuMillicores: 16_000, replicaMemoryGb: 64, until: UNTIL };

function scalingWith(boost: typeof OWN | undefined) {
  const metadata = { name: "service", namespace: "pipes", uid: "u", resourceVersion: "1", generation: 1 };
  return toPipeScalingView({ metadata, spec: boost ? { boost } : {} });
}

/** Ends a boost; the response to the write is lost, and then the object has this boost or does not exist. */
async function end(boostNow: typeof OWN | "none" | "gone" | "unreadable") {
  const observed: unknown[] = [];
  const now =
    typeof boostNow === "string" && boostNow !== "none"
      ? undefined
      : scalingWith(boostNow === "none" ? undefined : boostNow);
  const service = { id: "service", organizationId: "o", name: "orders", namespace: "pipes" };
  const organization = {
    id: "o",
    name: "Acme",
    createdAt: new Date(0),
    tier: "scale",
    byocConfig: [],
    privateEndpoints: [],
    rolloutWindow: undefined,
  };
  const request = { requestId: "r", apiKey: "k", requestedAt: UNTIL, permit: () => undefined };
  await endBoost({ organization, service: { ...service, rolloutWindow: undefined } }, request, {
    clock,
    maxBoostMs: 86_400_000,
    tiers: BUILT_IN_TIERS,
    log: createLogger("silent", "api"),
    scalingWrites: new WriteQueue(clock),
    cache: {
      scaling: () => scalingWith(OWN),
      hasHadScaling: () => true,
      observeScaling: (_namespace, object) => observed.push(object.boosted?.size),
    },
    scalingWriter: {
      write: () => Promise.reject(new Error("no size was expected")),
      writeBoost: () => Promise.reject(new KubeUnreachableError("lost")),
      read: () =>
        boostNow === "unreadable" ? Promise.reject(new KubeUnreachableError("lost")) : Promise.resolve(now),
    },
  });
  return observed;
}

describe("the end of a boost whose response from the cluster was lost", () => {
  it("succeeds if the boost is gone", async () => {
    expect(await end("none")).toEqual([undefined]);
  });

  it("succeeds if another boost has started since, which a repeated request would end", async () => {
    const other = { replicaCpuMillicores: 8000, replicaMemoryGb: 32, until: UNTIL };
    expect(await end(other)).toEqual([sizeOfCores(8)]);
  });

  it("is a 503 if the boost is still there, or the object is gone", async () => {
    const expected = { status: 503, reason: "EndNotConfirmed" };
    await expect(end(OWN)).rejects.toMatchObject(expected);
    await expect(end("gone")).rejects.toMatchObject(expected);
  });

  it("is a 503 that does not recommend to repeat the request blindly if the object cannot be read", async () => {
    await expect(end("unreadable")).rejects.toMatchObject({
      status: 503,
      message: expect.stringMatching(/^(?!.*safe to repeat).*Get the boost before you repeat the request/),
    });
  });
});
