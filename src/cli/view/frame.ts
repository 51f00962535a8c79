import { bar } from "./bar.ts";
import { estimatedMsLeft } from "./estimate.ts";
import { fitted } from "./fit.ts";
import { retried } from "./news.ts";
import { pipeSpans, sizeChange } from "./pipe-spans.ts";
import { NOT_SEEN_YET, type RescaleState, type RescaleView } from "./rescale-view.ts";
import { type Canvas, painted, type Span, type Style, span } from "./span.ts";
import { printable, wrapped } from "./text.ts";
import { roughly, stopwatch } from "./time.ts";

export interface FrameCanvas extends Canvas {
  /** Lines that there is room for; there are more only where the head and the message take more. */
  readonly rows: number;
}

const BAR_COLUMNS = 30;
const MESSAGE_ROWS = 4;

const STYLES: Readonly<Record<RescaleState, Style>> = {
  propagating: "busy",
  scaled: "good",
  failed: "bad",
  suspended: "warning",
  unknown: "warning",
};

/**
 * A service's rescale as lines for a terminal: what is wanted, a bar, each pipe, what is to be said. No line is
 * wider than the canvas, and none has a control code other than colours, and those only if it has colours.
 */
export function frame(view: RescaleView, nowMs: number, canvas: FrameCanvas): string[] {
  const head = [title(view), progress(view, nowMs, canvas.columns)];
  const message = messageOf(view, nowMs, canvas.columns);
  const room = canvas.rows - head.length - message.length;
  const pipes = pipeSpans(fitted(view.lines, room), canvas.columns);
  return [...head, ...pipes, ...message].map((spans) => painted(spans, canvas));
}

function title({ service, wanted, effective, from }: RescaleView): Span[] {
  const source = from === "TierDefault" || from === "TierLimit";
  const because = from === "TierDefault" ? "the tier's default" : "the most that the tier allows";
  return [
    span(service, "strong"),
    ...(wanted ? [span(`  ${sizeChange(effective, wanted)}`)] : []),
    ...(wanted && source ? [span(` (${because})`, "faint")] : []),
  ];
}

function progress(view: RescaleView, nowMs: number, columns: number): Span[] {
  const { pipes, state } = view;
  const words = [span(pipesDone(view)), span(timesOf(view, nowMs), "faint")].filter(
    ({ text }) => text !== "",
  );
  const taken = words.reduce((sum, { text }) => sum + text.length + 2, 0);
  const width = Math.min(BAR_COLUMNS, columns - taken);
  const told = words.flatMap((each, index) => (index === 0 ? [each] : [span("  "), each]));
  if (width < 5 || pipes.total === 0) return told;
  const { full, empty } = bar(shareOf(view), width);
  return [span(full, STYLES[state]), span(empty, "faint"), span("  "), ...told];
}

function pipesDone({ pipes, state }: RescaleView): string {
  if (pipes.total === 0) return state === "unknown" ? "" : "no pipes";
  return `${pipes.updated}/${pipes.total} ${pipes.total === 1 ? "pipe" : "pipes"}`;
}

function timesOf(view: RescaleView, nowMs: number): string {
  const { startedAt, completedAt, state } = view;
  if (!startedAt) return "";
  const endMs = state === "scaled" ? completedAt?.getTime() : nowMs;
  if (endMs === undefined) return "";
  const leftMs = estimatedMsLeft(view, nowMs);
  const left =
    leftMs === undefined ? "" : `, ${leftMs < 60_000 ? "less than 1 min" : `about ${roughly(leftMs)}`} left`;
  return `${stopwatch(endMs - startedAt.getTime())}${left}`;
}

/** How much of it is done, from 0 to 1: a pipe whose replicas are being replaced counts by those that are. */
function shareOf({ pipes, lines }: RescaleView): number {
  const partly = lines.flatMap(({ state, progress }) =>
    state === "rolling" && progress && progress.of > 0 ? [progress.updated / progress.of] : [],
  );
  // Until it is done it is not: a replica may still fail to stay.
  const begun = partly.reduce((sum, each) => sum + 0.9 * each, 0);
  return Math.min(1, (pipes.updated + begun) / pipes.total);
}

/** Where each pipe is on a line of its own, they say how far it is. */
function messageOf(view: RescaleView, nowMs: number, columns: number): Span[][] {
  const { state, reason, message, lines, pipes } = view;
  const isTold = lines.length > 0 && lines.length >= pipes.total && reason !== NOT_SEEN_YET;
  if (state === "propagating" && isTold) return [];
  const all = [message, ...retried(view, nowMs)].flatMap((text) => wrapped(printable(text).trim(), columns));
  const shown = all.slice(0, MESSAGE_ROWS);
  if (all.length > shown.length) shown.push(`${shown.pop() ?? ""}…`);
  return shown.map((line) => [span(line, STYLES[state])]);
}
