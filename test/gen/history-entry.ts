import type { HistoryEntry } from "../../src/crd/pipe-scaling.ts";
import { describeSize, sizeOfCores } from "../../src/domain/size.ts";

/** An entry of `status.history`: by default a requested size that every pipe ran. */
export function historyEntry(cores: number, changes: Partial<HistoryEntry> = {}): HistoryEntry {
  const size = sizeOfCores(cores);
  return {
    replicaCpuMillicores: size.cpuMillicores,
    replicaMemoryGb: size.memoryGib,
    summary: describeSize(size),
    source: "Spec",
    result: "Scaled",
    startedAt: "2026-06-01T12:00:00Z",
    ...changes,
  };
}
