import { apply } from "@pipe-scaling/local-cluster/kubectl";
import type { TestEnvironment } from "../../support/test-environment.ts";

/** Makes the API server reject pods in the namespace of the pipes with a container of more memory. */
export function limitMemory({ cluster, pipes }: TestEnvironment, max: string): Promise<void> {
  return apply(cluster, [
    {
      apiVersion: "v1",
      kind: "LimitRange",
      metadata: { name: "limit", namespace: pipes },
      spec: { limits: [{ type: "Container", max: { memory: max } }] },
    },
  ]);
}
