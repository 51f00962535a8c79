import type { PipeScalingSpec } from "../../crd/pipe-scaling.ts";
import { sameSize } from "../../domain/size.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";

/**
 * The spec of a PipeScaling that was deleted while no controller was watching. A deletion must not resize anything, so
 * it comes back with the newest size that was applied to a pipe of the service, and suspended if a pipe has
 * another size: whether it was suspended before is not known.
 *
 * @param own the pipes whose last rollout was for this service; others may have moved in with the size of another one
 * @param all all pipes of the service
 */
export function specForRecreation(
  own: readonly DeploymentView[],
  all: readonly DeploymentView[],
): PipeScalingSpec {
  const [newest] = own
    .flatMap(({ lastRollout }) => lastRollout ?? [])
    .toSorted((a, b) => b.startedAtMs - a.startedAtMs);
  if (!newest) return {};
  const { cpuMillicores, memoryGib } = newest.size;
  const isCommon = all.every(({ size }) => sameSize(size, newest.size));
  return {
    replicaCpuMillicores: cpuMillicores,
    replicaMemoryGb: memoryGib,
    ...(isCommon ? {} : { suspend: true }),
  };
}
