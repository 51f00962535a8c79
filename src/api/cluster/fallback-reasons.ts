import { FALLBACK_REASON_TABLE, FALLBACK_REASONS, type FallbackReason } from "../../crd/fallback-reasons.ts";

/** `Other` for a reason of a later version. */
export type ApiFallbackReason = FallbackReason | "Other";

export const API_FALLBACK_REASONS = [...FALLBACK_REASONS, "Other"] as const;

export function fallbackReasonOf(text: string): ApiFallbackReason {
  return FALLBACK_REASONS.find((reason) => reason === text) ?? "Other";
}

/** Returns the sentence for customers, who must not see the messages of the cluster (docs/adr/0030). */
export function fallbackSentence(reason: ApiFallbackReason): string {
  if (reason === "Other") return "The pipe could not be resized without a restart.";
  return FALLBACK_REASON_TABLE[reason].sentence;
}
