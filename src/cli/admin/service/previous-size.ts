import type { HistoryEntry, PipeScalingSpec } from "../../../crd/pipe-scaling.ts";
import { type Size, sameSize } from "../../../domain/size.ts";

export function sizeOfEntry({ replicaCpuMillicores, replicaMemoryGb }: HistoryEntry): Size {
  return { cpuMillicores: replicaCpuMillicores, memoryGib: replicaMemoryGb };
}

/**
 * The newest entry that a rollback can return to: every pipe ran its size, and it is not the current size.
 *
 * @param to only an entry of this size
 */
export function findPrevious(
  history: readonly HistoryEntry[],
  current: Size | undefined,
  to: Size | undefined,
): HistoryEntry | undefined {
  return history.find((entry) => {
    const size = sizeOfEntry(entry);
    return entry.result === "Scaled" && !sameSize(size, current) && (to === undefined || sameSize(size, to));
  });
}

/** The size fields of the spec; `null` removes one. */
export type SizeChange = Readonly<Record<"replicaCpuMillicores" | "replicaMemoryGb", number | null>>;

/**
 * The change of the spec that returns to the entry. A size that was the tier's default is left to the tier again.
 * If the spec leaves it to the tier already, the default has changed, and only a size in the spec brings back the old one.
 */
export function changeTo(entry: HistoryEntry, spec: PipeScalingSpec): SizeChange {
  const { source, replicaCpuMillicores, replicaMemoryGb } = entry;
  const isByTier = source === "TierDefault" && spec.replicaCpuMillicores !== undefined;
  return isByTier
    ? { replicaCpuMillicores: null, replicaMemoryGb: null }
    : { replicaCpuMillicores, replicaMemoryGb };
}
