import { type KubeApiError, serverMessage } from "../../kube/errors.ts";

export const SEVERITIES = ["error", "warning", "note", "ok"] as const;

/**
 * error: something does not work. warning: something will stop working, or is probably a mistake. note: worth
 * knowing, or not checked. ok: checked and healthy.
 */
export type Severity = (typeof SEVERITIES)[number];

export interface Result {
  readonly severity: Severity;
  /** One sentence. */
  readonly message: string;
  /** The next step, with the command. */
  readonly remedy?: string;
}

const of =
  (severity: Severity) =>
  (message: string, remedy: string): Result => ({ severity, message, remedy });

export const error = of("error");
export const warning = of("warning");
export const note = of("note");

export function ok(message: string): Result {
  return { severity: "ok", message };
}

/** Helm 4 overwrites the changes of another field manager only with the flag. Helm 3 always does, and has no such flag. */
export const FORCED_UPGRADE = "`helm upgrade --force-conflicts` (leave the flag out with Helm 3)";

/** @param cause the error 403 of the API server */
export function notChecked(cause: KubeApiError): Result {
  return note(
    `Not checked because a permission is missing: ${serverMessage(cause)}.`,
    "Use a kubeconfig that has this permission.",
  );
}
