import { NEVER_READY_LABEL, START_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { expect } from "vitest";
import { LAST_ROLLOUT_ANNOTATION } from "../../src/controller/names.ts";
import { collectionPath, STATEFUL_SETS } from "../../src/kube/paths.ts";
import type { StatefulSet } from "../../src/kube/workloads.ts";
import type { TestEnvironment } from "../support/test-environment.ts";
import { cpuOf, Loaders } from "./stateful-loader.ts";

/** So long that the test sees a new pod before it is ready, also on a busy machine. */
export const SLOWER = { podAnnotations: { [START_AFTER_ANNOTATION]: "4s" } };

/** Starts a controller, and waits until all pipes are ready and all pods of StatefulSets are available. */
export async function start(
  environment: TestEnvironment,
  ...settings: Parameters<TestEnvironment["startController"]>
) {
  const stop = await environment.startController(...settings);
  await environment.waitForCondition("Ready", "True");
  const path = collectionPath(STATEFUL_SETS, environment.pipes);
  await waitFor(
    async () => {
      const { items } = await environment.client.json<{ readonly items: readonly StatefulSet[] }>({ path });
      return items.every(({ spec, status }) => status?.availableReplicas === spec.replicas);
    },
    { what: "all pods to be available" },
  );
  return stop;
}

/** The last pod crashes as soon as it has four cores. Returns its UID. */
export async function crashLastPod(loaders: Loaders): Promise<string> {
  const { metadata } = await waitFor(async () => (await loaders.pods()).find((pod) => cpuOf(pod) === "4"), {
    what: "the first pod of the new size",
  });
  await loaders.patchPod(metadata.name, { labels: { [NEVER_READY_LABEL]: "true" } });
  return metadata.uid;
}

/** Expects that a size whose first pod crashes is rolled back, and that only this pod is replaced. */
export async function expectRollback(
  environment: TestEnvironment,
  podManagementPolicy: "OrderedReady" | "Parallel",
): Promise<void> {
  const loaders = new Loaders(environment);

  await loaders.create({ podManagementPolicy, ...SLOWER });
  await start(environment, { rolloutTimeoutMs: 8000 });
  const before = await loaders.uids();
  await environment.requestSize(4);
  const stuck = await crashLastPod(loaders);
  await environment.waitForCondition("Stalled", "True", "RolloutTimeout");
  await waitFor(
    async () => (await loaders.sizes()).join() === "1,1,1" && !(await loaders.uids()).includes(stuck),
    {
      what: "the stuck pod to be replaced by one of the old size",
    },
  );
  expect((await loaders.uids()).slice(0, 2)).toEqual(before.slice(0, 2));
  const { status, metadata } = await waitFor(
    async () => {
      const current = await loaders.read();
      return current.status?.availableReplicas === 3 ? current : undefined;
    },
    { what: "all pods to be available" },
  );
  expect(status?.updatedReplicas).toBe(3);
  expect(JSON.parse(metadata.annotations?.[LAST_ROLLOUT_ANNOTATION] ?? "{}")).toMatchObject({
    isRollback: true,
  });
}
