import { type HistoryEntry, MAX_HISTORY, type PipeScalingStatus } from "../../crd/pipe-scaling.ts";

interface Rescale {
  readonly desired: NonNullable<PipeScalingStatus["desired"]>;
  readonly propagation: NonNullable<PipeScalingStatus["propagation"]>;
  /** A pipe cannot take the desired size. */
  readonly isFailed: boolean;
}

/**
 * The history with the present rescale as its newest entry. An entry that was Scaled stays Scaled: a pipe that fails
 * later does not change that every pipe ran the size, which is why a rollback can return to it.
 */
export function historyOf(
  history: readonly HistoryEntry[],
  { desired, propagation, isFailed }: Rescale,
): HistoryEntry[] {
  const { requestId, startedAt } = propagation;
  const [newest, ...older] = history;
  const isSame =
    newest?.replicaCpuMillicores === desired.replicaCpuMillicores &&
    newest.replicaMemoryGb === desired.replicaMemoryGb &&
    newest.requestId === requestId;
  // A pipe that is added later completes the rescale again; the history keeps the first time.
  const completedAt = (isSame ? newest.completedAt : undefined) ?? propagation.completedAt;
  const unfinished = isFailed ? "Failed" : "Progressing";
  const result = completedAt === undefined ? unfinished : "Scaled";
  const current: HistoryEntry = { ...desired, result, requestId, startedAt, completedAt };
  return [current, ...(isSame ? older : history.map(superseded))].slice(0, MAX_HISTORY);
}

function superseded(entry: HistoryEntry): HistoryEntry {
  return entry.result === "Scaled" ? entry : { ...entry, result: "Superseded" };
}
