import { apply } from "@pipe-scaling/local-cluster/kubectl";
import type { TestEnvironment } from "../../support/test-environment.ts";

/** Pods of pipes with more memory than this are not created. */
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
