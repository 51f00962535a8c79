import { describeSize, sameSize } from "../../domain/size.ts";
import { describePipeState, sizeChange } from "./pipe-spans.ts";
import { NOT_SEEN_YET, type PipeLine, type RescaleView } from "./rescale-view.ts";
import { printable } from "./text.ts";
import { roughly, stopwatch } from "./time.ts";

/** What has changed from one view to the next, a line for each thing, in the order in which one would tell it. */
export function newsOf(before: RescaleView | undefined, after: RescaleView, nowMs: number): string[] {
  return [
    ...beginning(before, after),
    ...after.lines.flatMap((line) => aboutPipe(before?.lines, line)),
    ...counted(before, after),
    ...outcome(before, after, nowMs),
  ].map((text) => printable(text).trim());
}

function beginning(before: RescaleView | undefined, { service, wanted, effective, requestId }: RescaleView) {
  if (!wanted || (before && sameSize(before.wanted, wanted) && before.requestId === requestId)) return [];
  const request = requestId === undefined ? "" : ` (request ${requestId})`;
  return [`${service}: ${sizeChange(effective, wanted)}${request}`];
}

function aboutPipe(before: readonly PipeLine[] | undefined, line: PipeLine): string[] {
  const known = before?.find(({ name }) => name === line.name);
  // What it waits for changes with each of the others.
  const isSaid = line.state === "waiting" || known?.why === line.why;
  const isOld = known && known.state === line.state && isSaid && sameSize(known.to, line.to);
  // Of what is as it should be from the start there is nothing to tell.
  if (isOld || (!known && line.state === "done")) return [];
  const change = line.to && line.state === "rolling" ? `, ${sizeChange(line.from, line.to)}` : "";
  return [`${line.name}: ${describePipeState({ ...line, progress: undefined })}${change}`];
}

function counted(before: RescaleView | undefined, { pipes, wanted }: RescaleView): string[] {
  const isOld = before?.pipes.updated === pipes.updated && before.pipes.total === pipes.total;
  if (isOld || !wanted || pipes.total === 0) return [];
  return [`${pipes.updated} of ${pipes.total} pipes run ${describeSize(wanted)}`];
}

function outcome(before: RescaleView | undefined, after: RescaleView, nowMs: number): string[] {
  const { state, reason, message, startedAt, completedAt, lines } = after;
  const isOld = before?.state === state && before.reason === reason && before.message === message;
  // While it is on its way its message says again what the lines say.
  const isTold = lines.length > 0 && reason !== NOT_SEEN_YET;
  if (isOld || (state === "propagating" && isTold)) return [];
  const took =
    state === "scaled" && startedAt && completedAt
      ? ` after ${stopwatch(completedAt.getTime() - startedAt.getTime())}`
      : "";
  return [
    [`${state}${took}`, reason, message].filter((text) => text !== "").join(": "),
    ...retried(after, nowMs),
  ];
}

/** What a person would add to a failure, if that is known. */
export function retried({ state, retryAt }: RescaleView, nowMs: number): string[] {
  if (state !== "failed" || !retryAt) return [];
  const leftMs = retryAt.getTime() - nowMs;
  return [`It is tried again by itself ${leftMs > 0 ? `in ${roughly(leftMs)}` : "now"}.`];
}
