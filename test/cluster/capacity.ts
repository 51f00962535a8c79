import type { ComponentArgs } from "./kwokctl.ts";
import type { NodeSize } from "./ready.ts";

/** A node with room for the pods of all tests. */
export const ROOMY_NODE = { cpus: 10_000, memoryGib: 100_000 } satisfies Partial<NodeSize>;

const LIMITS = { "kube-api-qps": "1000", "kube-api-burst": "2000" };

/** Each of these makes only 20 requests per second by default, so concurrent rollouts would delay each other. */
export const WITHOUT_CLIENT_LIMITS: ComponentArgs = {
  "kube-controller-manager": LIMITS,
  "kube-scheduler": LIMITS,
};
