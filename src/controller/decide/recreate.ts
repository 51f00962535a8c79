import type { PipeScalingSpec } from "../../crd/pipe-scaling.ts";
import { sizeIn } from "../../crd/size-fields.ts";
import { allSizes, type Size, sameSize } from "../../domain/size.ts";
import { desiredSize, type Tier } from "../../domain/tier.ts";
import type { DeletedScaling } from "../observe/deleted-scalings.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";

/** A size that the controller applied to a pipe. */
interface Applied {
  /** Absent if the pipe's resources make no size any more. */
  readonly size: Size | undefined;
  readonly atMs: number;
}

/**
 * Returns the spec for a PipeScaling that was deleted while no controller was watching. A deletion must not resize
 * anything, so the spec has the newest size that the controller applied to a pipe of the service. It is suspended if a
 * pipe has another size, because nothing shows whether it was suspended before. It is empty, for the tier's default
 * size, only if nothing shows that the controller ever resized a pipe of the service, as at the first installation.
 *
 * @param pipes all pipes of the service
 */
export function specForRecreation(serviceId: string, pipes: readonly DeploymentView[]): PipeScalingSpec {
  const applied = pipes.flatMap((pipe) => appliedTo(pipe, serviceId) ?? []);
  if (applied.length === 0) return {};
  const [newest] = applied
    .toSorted((a, b) => b.atMs - a.atMs)
    .flatMap(({ size }) => (size && isRequestable(size) ? size : []));
  if (!newest) return { suspend: true };
  const isCommon = pipes.every(({ size }) => sameSize(size, newest));
  return {
    replicaCpuMillicores: newest.cpuMillicores,
    replicaMemoryGb: newest.memoryGib,
    ...(isCommon ? {} : { suspend: true }),
  };
}

/** @returns true if something shows that the controller resized a pipe of the service */
export function wasResized(serviceId: string, pipes: readonly DeploymentView[]): boolean {
  return pipes.some((pipe) => appliedTo(pipe, serviceId) !== undefined);
}

/** A deletion must not resize anything, so a spec that may be outdated is suspended if a pipe has another size. */
export function specAfterDeletion(
  { spec, isOutdated }: DeletedScaling,
  pipes: readonly DeploymentView[],
  tier: Tier,
): PipeScalingSpec {
  const desired = desiredSize(sizeIn(spec), tier).size;
  const isCommon = pipes.every(({ size }) => sameSize(size, desired));
  return isOutdated && !isCommon ? { ...spec, suspend: true } : spec;
}

/** The API server rejects a spec with any other size, for example one after another writer changed only the CPU. */
function isRequestable(size: Size): boolean {
  return allSizes().some((each) => sameSize(each, size));
}

/** If another writer removed the annotation of the last rollout, only the current size is known. */
function appliedTo(
  { lastRollout, resizedAtMs, size }: DeploymentView,
  serviceId: string,
): Applied | undefined {
  // A pipe that moved in from another service has the size of that one.
  if (lastRollout?.serviceId === serviceId) return { size: lastRollout.size, atMs: lastRollout.startedAtMs };
  return resizedAtMs === undefined ? undefined : { size, atMs: resizedAtMs };
}
