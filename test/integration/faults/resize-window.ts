import { setTimeout as delay } from "node:timers/promises";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { conditionOf } from "../../support/test-environment.ts";
import { ifPossible } from "./operation.ts";
import type { ServiceUnderTest } from "./service-under-test.ts";

/** Maximum wait for a calm service, for a write of a resize in place, and from then on. */
const CALM_MS = 8000;
const AWAITED_MS = 1500;
const SOON_MS = 100;

/**
 * Requests another size in place, and resolves soon after one of the writes that follow. Returns false if there is none,
 * for example because of other faults.
 */
export async function inResizeWindow(service: ServiceUnderTest): Promise<boolean> {
  const kind = service.pick<"Pod" | "ReplicaSet" | "Deployment">(["Pod", "Pod", "ReplicaSet", "Deployment"]);
  const delayMs = service.random() * SOON_MS;
  const size = service.anySize();
  // Without calm, a resize in place seldom begins; always calm, faults would never meet.
  if (service.below(4) > 0) await calm(service);
  const seen = service.sees(kind, AWAITED_MS);
  const cores = size === service.requested ? size + 1 : size;
  await service.request(cores, IN_PLACE);
  if (!(await seen)) return false;
  await delay(delayMs);
  return true;
}

const IN_PLACE = { strategy: "InPlaceOrRollout", suspend: null };

/** Ends obstacles, and waits for a while until the service is ready. */
async function calm(service: ServiceUnderTest): Promise<void> {
  const { environment } = service;
  await ifPossible(() => service.calm(IN_PLACE));
  const isReady = async () => {
    const scaling = await environment.scaling();
    const isSeen = scaling.status?.observedGeneration === scaling.metadata.generation;
    return isSeen && conditionOf(scaling, "Ready")?.status === "True";
  };
  await waitFor(isReady, { what: "a calm service", timeoutMs: CALM_MS }).catch(() => undefined);
}
