import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { collectionPath, REPLICA_SETS } from "../../src/kube/paths.ts";
import type { ReplicaSet } from "../../src/kube/workloads.ts";
import type { TestEnvironment } from "../support/test-environment.ts";
import { podsOf } from "./pods.ts";

/** Creates a pipe whose pods have the labels by which the controller sees them. */
export function createPipe(
  environment: TestEnvironment,
  options: Parameters<TestEnvironment["createPipe"]>[0],
): Promise<unknown> {
  const podLabels = { [SERVICE_LABEL]: environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
  return environment.createPipe({ podLabels, ...options });
}

/** Waits until the status has the reason why a pipe is not resized in place. */
export function fallbackMessage(environment: TestEnvironment): Promise<string> {
  const read = async () => (await environment.scaling()).status?.pipes?.fallbacks?.[0]?.message;
  return waitFor(read, { what: "the reason for the rollout in the status" });
}

export async function replicaSetsOf({ client, pipes }: TestEnvironment): Promise<readonly ReplicaSet[]> {
  const { items } = await client.json<{ readonly items: readonly ReplicaSet[] }>({
    path: collectionPath(REPLICA_SETS, pipes),
  });
  return items;
}

export async function runningPods(environment: TestEnvironment, count: number): Promise<void> {
  const areRunning = async () => {
    const all = await podsOf(environment);
    return all.length === count && all.every(({ status }) => status?.containerStatuses?.[0]?.resources);
  };
  await waitFor(areRunning, { what: "the pods to run" });
}
