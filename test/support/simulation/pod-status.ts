import type { Pod, PodSpec } from "../../../src/kube/pods.ts";

export type SimulatedPod = Pod & { readonly spec: PodSpec };
export type PodStatus = NonNullable<Pod["status"]>;
type Condition = NonNullable<PodStatus["conditions"]>[number];

/** Returns true if a ReplicaSet counts the pod. */
export function isActive({ metadata, status }: Pod): boolean {
  return metadata.deletionTimestamp === undefined && status?.phase !== "Failed";
}

export function isRunning({ status }: Pod): boolean {
  return status?.containerStatuses?.[0]?.state?.running !== undefined;
}

/** Returns the status with these conditions; `undefined` removes the condition of a type. */
export function withConditions(
  status: PodStatus | undefined,
  changes: Readonly<Record<string, Omit<Condition, "type"> | undefined>>,
): PodStatus {
  const kept = (status?.conditions ?? []).filter(({ type }) => !(type in changes));
  const set = Object.entries(changes).flatMap(([type, change]) => (change ? [{ type, ...change }] : []));
  return { ...status, conditions: [...kept, ...set] };
}

export const UNSCHEDULABLE = {
  status: "False",
  reason: "Unschedulable",
  message: "0/1 nodes are available: 1 Insufficient cpu.",
};

/** The condition Ready at a time. */
export function readiness(isReady: boolean, lastTransitionTime: string) {
  return { status: isReady ? "True" : "False", lastTransitionTime };
}

export function readySinceMs({ status }: Pod): number | undefined {
  const ready = status?.conditions?.find(({ type, status: is }) => type === "Ready" && is === "True");
  return ready ? Date.parse(ready.lastTransitionTime ?? "") : undefined;
}

/** Returns the phase and container statuses of a pod that runs with the resources in its spec, or its earlier ones. */
export function runningWith(
  { metadata, spec, status }: Pod,
  restartCount = status?.containerStatuses?.[0]?.restartCount ?? 0,
  keepsResources = false,
) {
  const containerStatuses = spec.containers.map(({ name, resources: wanted = {} }) => {
    const before = status?.containerStatuses?.find((each) => each.name === name);
    const resources = (keepsResources ? before?.resources : undefined) ?? wanted;
    return {
      ...before,
      name,
      state: { running: {} },
      ready: true,
      restartCount,
      containerID: `containerd://${metadata.uid}-${restartCount}`,
      resources,
      allocatedResources: resources.requests ?? {},
    };
  });
  return { phase: "Running", containerStatuses };
}

const WAITING: { readonly running?: object; readonly waiting: { readonly reason: string } } = {
  waiting: { reason: "CrashLoopBackOff" },
};

/** Returns the container statuses of a pod whose container has ended and starts again later. */
export function crashedWith({ status }: Pod, reason: string, finishedAt: string) {
  const containerStatuses = (status?.containerStatuses ?? []).map((each) => ({
    ...each,
    ready: false,
    state: WAITING,
    lastState: { terminated: { exitCode: reason === "OOMKilled" ? 137 : 1, reason, finishedAt } },
  }));
  return { containerStatuses };
}
