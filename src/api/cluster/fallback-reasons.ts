import { FALLBACK_REASONS, type FallbackReason } from "../../crd/fallback-reasons.ts";

/**
 * The reasons why a pipe restarted although it should have been resized in place, each with the sentence that the API
 * returns. As for reasons.ts, the messages of the cluster stay there (docs/adr/0030).
 */

const NOT_SET_UP = "Resizes without a restart are not set up for this pipe: ask the operator of this API.";
const READ_ONCE = "The program in the pipe reads its size only when it starts.";
const NO_ROOM = "The machine of the pipe had no room for this size, so the pipe moved.";
const NOT_IN_TIME = "The machine of the pipe did not apply this size in time.";

const SENTENCES: Readonly<Record<ApiFallbackReason, string>> = {
  ContainerNotNamed: NOT_SET_UP,
  ContainerNotRunning: "The pipe was not running when it was to be resized.",
  ContainerRestarts: "The pipe is configured to restart when its size changes.",
  Deferred: NO_ROOM,
  Forbidden: NOT_SET_UP,
  Infeasible: "The machine of the pipe cannot apply this size without a restart.",
  NotSettled: "The pipe was changing for another reason.",
  NotSupported: "The cluster cannot apply a size without a restart.",
  PodsNotLabeled: NOT_SET_UP,
  Refused: "This size is not allowed without a restart of the pipe.",
  ResizeError: NOT_IN_TIME,
  ResizeTimeout: NOT_IN_TIME,
  Restarted: "The pipe restarted while it was being resized.",
  Reverted: "Another program also sets the size of this pipe.",
  SizeFromEnvironment: READ_ONCE,
  SizeFromPercentage: READ_ONCE,
  SizeNotRequested: "No size was requested for this pipe, so it is not restarted.",
  TemplateChanged: NOT_SET_UP,
  Other: "The pipe could not be resized without a restart.",
};

/** `Other` for a reason of a later version. */
export type ApiFallbackReason = FallbackReason | "Other";

export const API_FALLBACK_REASONS = [...FALLBACK_REASONS, "Other"] as const;

export function fallbackReasonOf(text: string): ApiFallbackReason {
  return FALLBACK_REASONS.find((reason) => reason === text) ?? "Other";
}

export function fallbackSentence(reason: ApiFallbackReason): string {
  return SENTENCES[reason];
}
