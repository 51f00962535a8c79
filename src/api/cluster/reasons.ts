import { REASON_TABLE as CRD_REASONS } from "../../crd/reasons.ts";
import type { ReasonEntry } from "../../crd/state-reasons.ts";

/**
 * The reasons for the state of a rescale: those of the controller, and `Pending` until its report is current. A reason
 * of a later version becomes `Failed` if the size could not be applied, and otherwise `Scaled` or `Pending`.
 */
export const REASON_TABLE = {
  Pending: {
    sentence: "The size has been accepted, but its progress is not known yet.",
    meaning:
      "The controller has not reported on the size yet, or the API does not know the reason in its report.",
    remedy:
      "Wait a few seconds. If the reason persists, check whether a controller is running: [PipeScalingNoLeader](../runbooks/PipeScalingNoLeader.md). If one is, read the message in the conditions of the PipeScaling.",
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

/**
 * Returns the reason of the controller.
 *
 * @param unknown the reason if this version does not know it; its sentence must fit the state
 */
export function reasonOf(text: string, unknown: Reason): Reason {
  return isReason(text) ? text : unknown;
}

/** For customers. Messages from the cluster may name other tenants, nodes and quotas, so the API never returns them. */
export function sentenceOf(reason: Reason): string {
  return REASON_TABLE[reason].sentence;
}
