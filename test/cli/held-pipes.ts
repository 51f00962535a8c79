import { NEVER_READY_LABEL } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { PIPE_SCALINGS } from "../../src/crd/names.ts";
import { isCode } from "../../src/kube/errors.ts";
import { collectionPath, DEPLOYMENTS, objectPath, PODS } from "../../src/kube/paths.ts";
import type { Pod } from "../../src/kube/pods.ts";
import { pipeDeployment } from "../support/fixtures/pipe.ts";
import type { TestEnvironment } from "../support/test-environment.ts";

/** Creates a pipe whose pods become ready only when the test releases them, so the test controls each rollout. */
export async function createHeldPipe(environment: TestEnvironment, name: string, cores = 1): Promise<void> {
  const deployment = pipeDeployment({
    name,
    cores,
    namespace: environment.pipes,
    serviceId: environment.serviceId,
  });
  const { template } = deployment.spec;
  const labels = { ...template.metadata.labels, [NEVER_READY_LABEL]: "true" };
  const held = { ...template, metadata: { ...template.metadata, labels } };
  await environment.create(DEPLOYMENTS, environment.pipes, {
    ...deployment,
    spec: { ...deployment.spec, template: held },
  });
}

/** Waits until the pipe has a pod, and releases all its pods. */
export async function release(environment: TestEnvironment, name: string): Promise<void> {
  const path = collectionPath(PODS, environment.pipes);
  const query = { labelSelector: `app=${name},${NEVER_READY_LABEL}=true` };
  const { items } = await waitFor(
    async () => {
      const list = await environment.client.json<{ readonly items: readonly Pod[] }>({ path, query });
      return list.items.length > 0 && list;
    },
    { what: `${name} to have pods` },
  );
  for (const { metadata } of items) {
    const released = environment.client.json({
      method: "PATCH",
      path: objectPath(PODS, environment.pipes, metadata.name),
      patchType: "application/merge-patch+json",
      body: { metadata: { labels: { [NEVER_READY_LABEL]: null } } },
    });
    // A pod with the old size is deleted when a new pod is ready.
    await released.catch((error: unknown) => {
      if (!isCode(error, 404)) throw error;
    });
  }
}

/** Waits until the API server serves PipeScalings, because their CRD may be new. */
export async function waitForPipeScalings({ client, pipes }: TestEnvironment): Promise<void> {
  await waitFor(() => client.json({ path: collectionPath(PIPE_SCALINGS, pipes) }), {
    what: "the API server to serve PipeScalings",
  });
}
