import type { PipeLine, PipeLineState } from "./rescale-view.ts";

/** What stands on one line: a pipe, or many of which there is the same to say. */
export type PipeRow = PipeLine | PipeSum;

export interface PipeSum {
  readonly state: PipeLineState;
  readonly pipes: number;
}

/** In which order they are summed up: what needs nobody's eyes first. */
const ORDER: readonly PipeLineState[] = ["done", "waiting", "paused", "rolling", "failed"];

/**
 * The pipes in as many rows as there is room for. What is too much is summed up: all that are done, all that
 * wait; of those that roll or have failed as many are shown as can be.
 */
export function fitted(lines: readonly PipeLine[], rows: number): PipeRow[] {
  let kept = lines;
  const sums: PipeSum[] = [];
  for (const state of ORDER) {
    if (kept.length + sums.length <= rows) break;
    const others = kept.filter((each) => each.state !== state);
    const those = kept.filter((each) => each.state === state);
    const isTold = state === "rolling" || state === "failed";
    const room = isTold ? Math.max(0, rows - others.length - sums.length - 1) : 0;
    const hidden = new Set(those.slice(room));
    // One takes as much room by itself as summed up.
    if (hidden.size < 2) continue;
    kept = kept.filter((each) => !hidden.has(each));
    sums.unshift({ state, pipes: hidden.size });
  }
  return [...kept, ...sums].slice(0, Math.max(0, rows));
}
