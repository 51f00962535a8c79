export const SEVERITIES = ["error", "warning", "note", "ok"] as const;

/**
 * error: something does not work. warning: something will stop working, or is probably a mistake. note: worth
 * knowing, or not checked. ok: checked and healthy.
 */
export type Severity = (typeof SEVERITIES)[number];

export type Check =
  | "server"
  | "clock"
  | "crd"
  | "installation"
  | "permissions"
  | "lease"
  | "records"
  | "services"
  | "scalings"
  | "pipes"
  | "in-place";

export interface Result {
  readonly severity: Severity;
  /** One sentence. */
  readonly message: string;
  /** The next step, with the command. */
  readonly remedy?: string;
}

export interface CheckResult extends Result {
  readonly check: Check;
}

export function error(message: string, remedy: string): Result {
  return { severity: "error", message, remedy };
}

export function warning(message: string, remedy: string): Result {
  return { severity: "warning", message, remedy };
}

export function note(message: string, remedy?: string): Result {
  return { severity: "note", message, ...(remedy === undefined ? {} : { remedy }) };
}

export function ok(message: string): Result {
  return { severity: "ok", message };
}

export class Report {
  readonly #results: CheckResult[] = [];

  /** By severity, then in the order in which they were added. */
  get all(): readonly CheckResult[] {
    return SEVERITIES.flatMap((severity) => this.#results.filter((each) => each.severity === severity));
  }

  count(severity: Severity): number {
    return this.#results.filter((each) => each.severity === severity).length;
  }

  /** @param healthy message of an `ok`, which is added if the results have no error and no warning */
  add(check: Check, results: readonly Result[], healthy?: string): void {
    const isHealthy = !results.some(({ severity }) => severity === "error" || severity === "warning");
    const all = healthy !== undefined && isHealthy ? [...results, ok(healthy)] : results;
    this.#results.push(...all.map((each) => ({ ...each, check })));
  }
}
