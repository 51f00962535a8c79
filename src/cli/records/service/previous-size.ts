import type { HistoryEntry, PipeScalingSpec } from "../../../crd/pipe-scaling.ts";
import { type Size, sameSize } from "../../../domain/size.ts";
import type { Tier } from "../../../domain/tier.ts";

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
 * If the tier's default is another one by now, only a size in the spec brings back the old one.
 *
 * @param tier of the organization, if it is known
 */
export function changeTo(entry: HistoryEntry, spec: PipeScalingSpec, tier?: Tier): SizeChange {
  const { source, replicaCpuMillicores, replicaMemoryGb } = entry;
  const isDefault = !tier || sameSize(tier.defaultSize, sizeOfEntry(entry));
  const isByTier = source === "TierDefault" && spec.replicaCpuMillicores !== undefined && isDefault;
  return isByTier
    ? { replicaCpuMillicores: null, replicaMemoryGb: null }
    : { replicaCpuMillicores, replicaMemoryGb };
}
