import { describeSize, type Size, sameSize } from "../../domain/size.ts";
import type { PipeRow } from "./fit.ts";
import type { PipeLine, PipeLineState } from "./rescale-view.ts";
import { type Span, type Style, span } from "./span.ts";
import { clipped, padded, printable, widthOf } from "./text.ts";

const LOOK: Readonly<Record<PipeLineState, { readonly symbol: string; readonly style: Style }>> = {
  waiting: { symbol: "·", style: "faint" },
  rolling: { symbol: "▸", style: "busy" },
  done: { symbol: "✓", style: "good" },
  failed: { symbol: "✗", style: "bad" },
  paused: { symbol: "‖", style: "warning" },
};

/** `  ✓ ` */
const MARGIN = 4;
const GAP = 2;
/** What must be left for how a pipe is. */
const STATE_COLUMNS = 14;

/** A line for each; where there is too little room for the sizes, they are left out. */
export function pipeSpans(rows: readonly PipeRow[], columns: number): Span[][] {
  const pipes = rows.flatMap((row) => ("name" in row ? [row] : []));
  const widest = (texts: readonly string[]) => Math.max(0, ...texts.map(widthOf));
  const sizeColumns = widest(pipes.map(sizes));
  const name = Math.min(
    widest(pipes.map((pipe) => printable(pipe.name))),
    Math.max(8, columns - MARGIN - GAP - STATE_COLUMNS),
  );
  const hasSizes = sizeColumns > 0 && MARGIN + name + 2 * GAP + sizeColumns + STATE_COLUMNS <= columns;
  return rows.map((row) => {
    const { symbol, style } = LOOK[row.state];
    const mark = span(`  ${symbol} `, style);
    if (!("name" in row)) return [mark, span(`${howMany(row.pipes)} ${row.state}`, style)];
    const cells = [span(padded(clipped(printable(row.name), name), name + GAP))];
    if (hasSizes) cells.push(span(padded(sizes(row), sizeColumns + GAP), "faint"));
    return [mark, ...cells, span(describePipeState(row), style)];
  });
}

function howMany(pipes: number): string {
  return pipes === 1 ? "1 pipe" : `${pipes} pipes`;
}

function sizes({ from, to }: PipeLine): string {
  return to ? sizeChange(from, to) : "";
}

/** `1 cpu / 4 Gi → 4 cpu / 16 Gi`; one size where nothing changes, or nothing is known of the other. */
export function sizeChange(from: Size | undefined, to: Size): string {
  return from && !sameSize(from, to) ? `${describeSize(from)} → ${describeSize(to)}` : describeSize(to);
}

/** `rolling 1/2`, `waiting for those under way`, `failed: exceeded quota` */
export function describePipeState({ state, progress, why = "" }: PipeLine): string {
  const because = why === "" ? "" : `: ${why}`;
  switch (state) {
    case "rolling":
      return `rolling${progress ? ` ${progress.updated}/${progress.of}` : ""}${because}`;
    case "paused":
      return `paused by its owner${because}`;
    case "waiting":
      return why === "" ? "waiting" : `waiting ${why}`;
    case "done":
    case "failed":
      return `${state}${because}`;
  }
}
