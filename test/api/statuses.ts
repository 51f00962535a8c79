import type { Condition, PipeScalingStatus } from "../../src/crd/pipe-scaling.ts";
import { describeSize, type Size, sizeOfCores } from "../../src/domain/size.ts";
import { objectPath } from "../../src/kube/paths.ts";
import { type ApiEnvironment, PIPE_SCALINGS } from "./environment.ts";

/** Statuses that a test writes in place of the controller. */

export const STARTED = "2026-01-31T12:00:00Z";
export const NEXT_RETRY = "2026-01-31T12:05:00Z";

/** A message from the cluster, which callers of the API must not see. */
export const CLUSTER_MESSAGE = "exceeded quota: tenant-b, node worker-7";

export function fieldsOf(size: Size) {
  return { replicaCpuMillicores: size.cpuMillicores, replicaMemoryGb: size.memoryGib };
}

export function sized(cores: number) {
  const size = sizeOfCores(cores);
  return { ...fieldsOf(size), summary: describeSize(size) };
}

export function conditions(of: Readonly<Record<string, Condition["status"]>>, reason: string): Condition[] {
  return Object.entries(of).map(([type, status]) => ({
    type,
    status,
    reason,
    message: CLUSTER_MESSAGE,
    lastTransitionTime: STARTED,
  }));
}

/** All three pipes run the size. */
export function scaledTo(cores: number, requestId?: string): PipeScalingStatus {
  return {
    conditions: conditions({ Ready: "True" }, "Scaled"),
    desired: { ...sized(cores), source: "Spec" },
    effective: sized(cores),
    pipes: { total: 3, updated: 3, summary: "3/3" },
    propagation: {
      ...(requestId === undefined ? {} : { requestId }),
      startedAt: STARTED,
      completedAt: STARTED,
    },
    failures: [],
  };
}

/** One of three pipes runs the size; the others still run the previous one. */
export function progressingTo(cores: number, from: number, requestId?: string): PipeScalingStatus {
  return {
    ...scaledTo(cores, requestId),
    conditions: conditions({ Ready: "False", Reconciling: "True" }, "Progressing"),
    effective: sized(from),
    pipes: { total: 3, updated: 1, summary: "1/3" },
  };
}

/** The API server rejected the size for the pipe `orders`. */
export function refusedAt(cores: number, from: number, requestId?: string): PipeScalingStatus {
  return {
    ...progressingTo(cores, from, requestId),
    conditions: conditions({ Ready: "False", Stalled: "True" }, "Refused"),
    failures: [
      {
        pipe: "orders",
        size: sized(cores),
        reason: "Refused",
        message: CLUSTER_MESSAGE,
        attempts: 1,
        at: STARTED,
        nextRetryAt: NEXT_RETRY,
      },
    ],
  };
}

/** Writes a status for the current generation. */
export async function reportStatus(
  environment: ApiEnvironment,
  service: string,
  status: PipeScalingStatus,
): Promise<void> {
  const { metadata } = await environment.scaling(service);
  await environment.admin.json({
    method: "PATCH",
    path: `${objectPath(PIPE_SCALINGS, environment.pipes, service)}/status`,
    patchType: "application/merge-patch+json",
    body: { status: { observedGeneration: metadata.generation, ...status } },
  });
}
