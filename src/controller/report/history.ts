import { type HistoryEntry, MAX_HISTORY, type PipeScalingStatus } from "../../crd/pipe-scaling.ts";

interface Rescale {
  readonly desired: NonNullable<PipeScalingStatus["desired"]>;
  readonly propagation: NonNullable<PipeScalingStatus["propagation"]>;
  /** A pipe has run the desired size. Pipes without replicas have it, and run nothing. */
  readonly isRun: boolean;
  /** A pipe cannot have the desired size. */
  readonly isFailed: boolean;
}

/**
 * Returns the history with the current rescale as its newest entry. An entry that was Scaled stays Scaled even if a
 * pipe fails later, because every pipe did run the size, so a rollback can return to it.
 */
export function historyOf(
  history: readonly HistoryEntry[],
  { desired, propagation, isRun, isFailed }: Rescale,
): HistoryEntry[] {
  const { requestId, startedAt } = propagation;
  const [newest] = history;
  const isSame =
    newest?.replicaCpuMillicores === desired.replicaCpuMillicores &&
    newest.replicaMemoryGb === desired.replicaMemoryGb &&
    newest.requestId === requestId;
  // A pipe that is added later completes the rescale again; the history keeps the time of the first completion.
  const completedAt =
    (isSame ? newest.completedAt : undefined) ?? (isRun ? propagation.completedAt : undefined);
  const unfinished = isFailed ? "Failed" : "Progressing";
  const result = completedAt === undefined ? unfinished : "Scaled";
  const current: HistoryEntry = { ...desired, result, requestId, startedAt, completedAt };
  const older = isSame ? history.slice(1) : history.map(superseded);
  return [current, ...older].slice(0, MAX_HISTORY);
}

function superseded(entry: HistoryEntry): HistoryEntry {
  return entry.result === "Scaled" ? entry : { ...entry, result: "Superseded" };
}
