import type { Condition, PipeScalingStatus } from "../../src/crd/pipe-scaling.ts";
import { describeSize, type Size, sizeOfCores } from "../../src/domain/size.ts";
import { objectPath } from "../../src/kube/paths.ts";
import { PIPE_SCALINGS, type World } from "./world.ts";

/** What the controller says of a service's pipes, written by a test in its place. */

export const STARTED = "2026-01-31T12:00:00Z";

/** Of the cluster, which are nobody's to read but the operator's. */
export const CLUSTERS_WORDS = "exceeded quota: tenant-b, node worker-7";

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
    message: CLUSTERS_WORDS,
    lastTransitionTime: STARTED,
  }));
}

/** All of three pipes have it. */
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

/** One of three pipes has it, and the others had another size until now. */
export function onTheWayTo(cores: number, from: number, requestId?: string): PipeScalingStatus {
  return {
    ...scaledTo(cores, requestId),
    conditions: conditions({ Ready: "False", Reconciling: "True" }, "Progressing"),
    effective: sized(from),
    pipes: { total: 3, updated: 1, summary: "1/3" },
  };
}

/** The pipe `orders` may not have it. */
export function refusedAt(cores: number, from: number, requestId?: string): PipeScalingStatus {
  return {
    ...onTheWayTo(cores, from, requestId),
    conditions: conditions({ Ready: "False", Stalled: "True" }, "Refused"),
    failures: [
      {
        pipe: "orders",
        size: `${cores * 1000}m/${cores * 4}Gi`,
        reason: "Refused",
        message: CLUSTERS_WORDS,
        attempts: 1,
        at: STARTED,
      },
    ],
  };
}

/** Writes a status about the generation that there is now. */
export async function reportStatus(world: World, service: string, status: PipeScalingStatus): Promise<void> {
  const { metadata } = await world.scaling(service);
  await world.admin.json({
    method: "PATCH",
    path: `${objectPath(PIPE_SCALINGS, world.pipes, service)}/status`,
    patchType: "application/merge-patch+json",
    body: { status: { observedGeneration: metadata.generation, ...status } },
  });
}
