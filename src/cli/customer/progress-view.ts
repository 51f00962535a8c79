import { describeSize, type Size } from "../../domain/size.ts";
import type { RescaleState, RescaleView } from "../view/rescale-view.ts";
import { type ProgressAnswer, toSize } from "./answers.ts";

const STATES: readonly RescaleState[] = ["propagating", "scaled", "failed", "suspended"];

/** A state that a later version of the API may have is one that nothing is known of. */
export function stateOf({ state, pipes }: Pick<ProgressAnswer, "state" | "pipes">): RescaleState {
  const known = STATES.find((each) => each === state) ?? "unknown";
  // Until they are counted there is nothing to draw.
  return known === "propagating" && !pipes ? "unknown" : known;
}

/**
 * What the API tells of a rescale, as it is shown.
 *
 * @param progressedAt when the last pipe was seen to have come up
 */
export function viewOf(
  service: string,
  progress: ProgressAnswer,
  progressedAt: Date | undefined,
): RescaleView {
  const { desired, effective, pipes, failures, requestId, reason, message } = progress;
  const wanted = desired && toSize(desired);
  return {
    service,
    wanted,
    from: desired?.source,
    effective: effective && toSize(effective),
    pipes: pipes ?? { total: 0, updated: 0 },
    startedAt: dateOf(progress.startedAt),
    completedAt: dateOf(progress.completedAt),
    progressedAt,
    requestId,
    state: stateOf(progress),
    reason,
    message,
    lines: failures.map(({ pipe, message }) => ({
      name: pipe,
      from: undefined,
      to: wanted,
      state: "failed",
      why: message,
    })),
  };
}

/** What an API that does not know of progress tells: the size that all pipes have reached. */
export function viewOfSize(service: string, wanted: Size, reached: Size | undefined): RescaleView {
  return {
    service,
    wanted,
    from: undefined,
    effective: reached,
    pipes: { total: 0, updated: 0 },
    startedAt: undefined,
    completedAt: undefined,
    requestId: undefined,
    state: "unknown",
    reason: "NotTold",
    message: `This API is of an older version and does not tell how far it is, only when every pipe has ${describeSize(wanted)}.`,
    lines: [],
  };
}

function dateOf(text: string | undefined): Date | undefined {
  const date = new Date(text ?? Number.NaN);
  return Number.isNaN(date.getTime()) ? undefined : date;
}
