import { REASON_TABLE as CRD_REASONS } from "../../crd/reasons.ts";
import type { ReasonEntry } from "../../crd/state-reasons.ts";

/**
 * The reasons for the state of a rescale: those of the controller, `Pending` until its report is current, and
 * `Failed` for a reason of a later version.
 */
export const REASON_TABLE = {
  Pending: {
    sentence: "The size has been accepted, but its progress is not known yet.",
    meaning: "The controller has not reported on the size yet.",
    remedy:
      "Wait a few seconds. If the reason persists, check whether a controller is running: [PipeScalingNoLeader](../runbooks/PipeScalingNoLeader.md).",
  },
  ...CRD_REASONS,
  Failed: {
    sentence: "The size could not be applied to the pipe.",
    meaning: "A pipe failed for a reason that the API does not know.",
    remedy: "Read the message in the conditions of the PipeScaling.",
  },
} as const satisfies Readonly<Record<string, Omit<ReasonEntry, "shows">>>;

export type Reason = keyof typeof REASON_TABLE;

export const REASONS = Object.keys(REASON_TABLE).filter(isReason);

function isReason(text: string): text is Reason {
  return Object.hasOwn(REASON_TABLE, text);
}

/** Returns the reason, or `Failed` if this version does not know it. */
export function reasonOf(text: string): Reason {
  return isReason(text) ? text : "Failed";
}

/** For customers. Messages from the cluster may name other tenants, nodes and quotas, so the API never returns them. */
export function sentenceOf(reason: Reason): string {
  return REASON_TABLE[reason].sentence;
}
