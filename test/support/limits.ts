import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { isCode } from "../../src/kube/errors.ts";
import { collectionPath, PODS } from "../../src/kube/paths.ts";
import { applyAll } from "./apply.ts";
import type { TestEnvironment } from "./test-environment.ts";

type Pipes = Pick<TestEnvironment, "client" | "pipes">;

/** Sets the ResourceQuota "small", which limits the total requests of the pods in the namespace of the pipes. */
export async function setQuota(pipes: Pipes, hard: Readonly<Record<string, string>>): Promise<void> {
  await limit(pipes, "ResourceQuota", "small", { hard });
  await enforced(pipes, "exceeded quota: small");
}

/** Limits the memory of each container of the pipes with the LimitRange "limit". */
export async function limitMemory(pipes: Pipes, max: string): Promise<void> {
  await limit(pipes, "LimitRange", "limit", { limits: [{ type: "Container", max: { memory: max } }] });
  await enforced(pipes, "maximum memory usage per Container");
}

function limit({ client, pipes: namespace }: Pipes, kind: string, name: string, spec: object): Promise<void> {
  return applyAll(client, [{ apiVersion: "v1", kind, metadata: { name, namespace }, spec }]);
}

/** Waits until the API server rejects a pod that is larger than any limit. That can take seconds on a busy machine. */
async function enforced({ client, pipes }: Pipes, message: string): Promise<void> {
  const amounts = { cpu: "1M", memory: "1Pi" };
  const containers = [{ name: "large", image: "large", resources: { requests: amounts, limits: amounts } }];
  const body = { metadata: { name: "large" }, spec: { containers } };
  const path = collectionPath(PODS, pipes);
  const isRejected = () =>
    client.json({ method: "POST", path, query: { dryRun: "All" }, body }).then(
      () => false,
      (error: unknown) => isCode(error, 403) && error.message.includes(message),
    );
  await waitFor(isRejected, { what: `the limit to be enforced: ${message}` });
}
