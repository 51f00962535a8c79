import type { PendingPipe } from "../../crd/pipe-scaling.ts";
import { describeSize, sameSize } from "../../domain/size.ts";
import { describeBoost, type RescaleState, type RescaleView } from "./rescale-view.ts";
import { counted, labeled, padded, type painter, printable, type Style, widest } from "./text.ts";
import { roughly, stopwatch } from "./time.ts";

interface Canvas {
  readonly columns: number;
  readonly paint: ReturnType<typeof painter>;
}

const BAR_COLUMNS = 30;

const STATE_STYLES: Readonly<Record<RescaleState, Style>> = {
  propagating: "cyan",
  scaled: "green",
  failed: "red",
  suspended: "yellow",
  unknown: "yellow",
};

const PIPE_MARKS = {
  Waiting: ["·", "dim"],
  Rolling: ["▸", "cyan"],
  Resized: ["▸", "cyan"],
  Retrying: ["✗", "red"],
  Failed: ["✗", "red"],
  Unsizable: ["✗", "red"],
  Paused: ["‖", "yellow"],
} as const satisfies Readonly<Record<PendingPipe["state"], readonly [symbol: string, style: Style]>>;

/** A later version of the controller may report other states. */
const MARK_OF_STATE = new Map<string, readonly [symbol: string, style: Style]>(Object.entries(PIPE_MARKS));

const SOURCES: ReadonlyMap<string | undefined, string> = new Map([
  ["TierDefault", " (default of the tier)"],
  ["TierLimit", " (maximum of the tier)"],
]);

/** A rescale as lines for a terminal: sizes, a bar, pending pipes, the message. */
export function frame(view: RescaleView, nowMs: number, { columns, paint }: Canvas): string[] {
  const { service, source, boost, pending, state } = view;
  const title = `${paint("bold", printable(service))}  ${sizeChange(view)}${SOURCES.get(source) ?? ""}`;
  const boosted = boost ? labeled("", `Boost: ${describeBoost(boost)}`, columns) : [];
  const nameColumns = widest(pending.map(({ name }) => printable(name))) + 2;
  const pipes = pending.flatMap((pipe) => {
    const [symbol, style] = MARK_OF_STATE.get(pipe.state) ?? PIPE_MARKS.Waiting;
    const label = `  ${paint(style, symbol)} ${padded(printable(pipe.name), nameColumns)}`;
    return labeled(label, describePipe(pipe), columns);
  });
  const restarts = restartsOf(view).map((text) => labeled(`  ${paint("yellow", "↻")} `, text, columns));
  return [
    title.trimEnd(),
    ...boosted,
    progressLine(view, nowMs, paint),
    ...pipes,
    ...restarts.flat(),
    ...[view.message, retryNote(view, nowMs)]
      .filter((text) => text !== "")
      .flatMap((text) => labeled("", text, columns))
      .map((line) => paint(STATE_STYLES[state], line)),
  ].filter((line) => line !== "");
}

/** Renders lines without colors, for logs and programs. `follow` does not repeat lines of the last update. */
export function plainLines(view: RescaleView, nowMs: number): string[] {
  const { service, requestId, boost, pending, pipes, state, reason, message } = view;
  const change = sizeChange(view);
  const request = requestId === undefined ? "" : ` (request ${requestId})`;
  const count = pipes.total === 0 ? "" : `, ${pipesUpdated(view)}`;
  const { startedAt, completedAt } = view;
  const took =
    state === "scaled" && startedAt && completedAt
      ? ` after ${stopwatch(completedAt.getTime() - startedAt.getTime())}`
      : "";
  return [
    change === "" ? "" : `${service}: ${change}${request}`,
    // The remaining time would change this line in each update.
    boost ? `boost until ${boost.until}` : "",
    // The message of a waiting pipe changes whenever another pipe makes progress.
    ...pending.map((pipe) => `${pipe.name}: ${pipe.state === "Waiting" ? "Waiting" : describePipe(pipe)}`),
    ...restartsOf(view),
    `${state}${took}${count}: ${[reason, message].filter(Boolean).join(": ")}`,
    retryNote(view, nowMs),
  ]
    .filter((line) => line !== "")
    .map(printable);
}

/** Pipes whose pods were replaced, or are. The line of any other pending pipe says what it waits for. */
function restartsOf({ fallbacks, pending }: RescaleView): string[] {
  const states = new Map(pending.map(({ name, state }) => [name, state]));
  return fallbacks
    .filter(({ pipe }) => (states.get(pipe) ?? "Rolling") === "Rolling")
    .map(({ pipe, reason, message }) => `${pipe}: not resized in place (${reason}): ${message}`);
}

function describePipe({ state, message = "" }: PendingPipe): string {
  if (message === "") return state;
  return state === "Waiting" ? message.replace(/^waiting/, state) : `${state}: ${message}`;
}

function sizeChange({ effective, desired }: RescaleView): string {
  if (!desired) return "";
  const isChange = effective && !sameSize(effective, desired);
  return isChange ? `${describeSize(effective)} → ${describeSize(desired)}` : describeSize(desired);
}

function pipesUpdated({ pipes }: RescaleView): string {
  const inPlace = pipes.inPlace ? `, ${pipes.inPlace} in place` : "";
  return `${pipes.updated}/${counted(pipes.total, "pipe")}${inPlace}`;
}

function progressLine(view: RescaleView, nowMs: number, paint: Canvas["paint"]): string {
  const { pipes, state, startedAt, completedAt } = view;
  if (pipes.total === 0) return "";
  const full = Math.floor((BAR_COLUMNS * pipes.updated) / pipes.total);
  const bar = paint(STATE_STYLES[state], "█".repeat(full)) + paint("dim", "░".repeat(BAR_COLUMNS - full));
  const endMs = state === "scaled" ? completedAt?.getTime() : nowMs;
  const elapsed = startedAt && endMs !== undefined ? stopwatch(endMs - startedAt.getTime()) : "";
  return `${bar}  ${pipesUpdated(view)}  ${paint("dim", elapsed)}`.trimEnd();
}

function retryNote({ state, retryAt }: RescaleView, nowMs: number): string {
  if (state !== "failed" || !retryAt) return "";
  const leftMs = retryAt.getTime() - nowMs;
  return `The next attempt is ${leftMs > 0 ? `in ${roughly(leftMs)}` : "now"}.`;
}
