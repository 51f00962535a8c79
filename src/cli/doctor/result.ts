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

export function error(message: string, remedy: string): Result {
  return { severity: "error", message, remedy };
}

export function warning(message: string, remedy: string): Result {
  return { severity: "warning", message, remedy };
}

export function note(message: string, remedy: string): Result {
  return { severity: "note", message, remedy };
}

export function ok(message: string): Result {
  return { severity: "ok", message };
}
