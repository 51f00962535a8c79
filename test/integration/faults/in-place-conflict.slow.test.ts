import { setTimeout as delay } from "node:timers/promises";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { expect } from "vitest";
import { DATABASE_TYPE, RETRY_ANNOTATION, SERVICE_LABEL, TYPE_LABEL } from "../../../src/controller/names.ts";
import { parseClusterCalls } from "../../support/cluster-calls.ts";
import { conditionOf, resourcesOf, type TestEnvironment } from "../../support/test-environment.ts";
import { it } from "./fixtures.ts";

const ONE_CORE = { requests: { cpu: "1", memory: "4Gi" }, limits: { memory: "4Gi" } };

/** An operator that owns the Deployment, and writes its template back this long after it has noticed a change. */
async function writeBack(environment: TestEnvironment, afterMs: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    if (resourcesOf(await environment.pipe("pipe")) !== "1 4Gi 4Gi") {
      await delay(afterMs);
      const containers = [{ name: "pipe", resources: ONE_CORE }];
      await environment.patchPipe("pipe", { spec: { template: { spec: { containers } } } }, "owner-operator");
    }
    await delay(5);
  }
}

async function patchesOf(environment: TestEnvironment, resource: string): Promise<number> {
  return parseClusterCalls(await environment.scrape())
    .filter((call) => call.verb === "patch" && call.resource === resource && call.code.startsWith("20"))
    .reduce((sum, { count }) => sum + count, 0);
}

it.for([3, 100, 400])(
  "an owner that writes the template back after %i ms is reported as a field conflict after a few commits and rollouts",
  async (afterMs, { environment, invariants, startPipes, requestSize }) => {
    const podLabels = { [SERVICE_LABEL]: environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
    await startPipes(
      [{ name: "pipe", podLabels }],
      { resizeStrategy: "InPlaceOrRollout" },
      { timeouts: { fieldConflictMs: [0, 500, 1000] } },
    );
    const ending = new AbortController();
    const owner = writeBack(environment, afterMs, ending.signal);
    try {
      await requestSize(4);
      const isGivenUp = async () => {
        const scaling = await environment.scaling();
        const [failure] = scaling.status?.failures ?? [];
        const isOver = failure?.reason === "FieldConflict" && failure.nextRetryAt === undefined;
        return isOver ? scaling : undefined;
      };
      const conflict = await waitFor(isGivenUp, { what: "the controller to give up" });
      expect(conditionOf(conflict, "Ready")).toMatchObject({ status: "False", reason: "FieldConflict" });
      expect(conditionOf(conflict, "Ready")?.message).toContain('another writer, "owner-operator",');
      const begun = environment.log.filter(({ msg }) => msg === "commit" || msg === "resize");
      expect(begun.length).toBeLessThanOrEqual(4);
      await waitFor(async () => resourcesOf(await environment.pipe("pipe")) === "1 4Gi 4Gi", {
        what: "the size of the owner",
      });
      const before = await patchesOf(environment, "deployments");
      for (const startedAt = performance.now(); performance.now() < startedAt + 2000; )
        expect(await patchesOf(environment, "deployments")).toBe(before);
      // A commit has two, and each pod of a rollout of the owner may be resized.
      expect(await patchesOf(environment, "deployments")).toBeLessThanOrEqual(20);
      expect(await patchesOf(environment, "pods/resize")).toBeLessThanOrEqual(20);
    } finally {
      ending.abort();
      await owner;
    }
    await environment.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
    await invariants.settled(4, { quietMs: 0 });
    await invariants.end();
  },
);
