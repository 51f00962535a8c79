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
  | "pipes";

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

  add(check: Check, results: readonly Result[]): void {
    this.#results.push(...results.map((each) => ({ ...each, check })));
  }

  /** Adds an `ok` if the results have no error and no warning. */
  addOrOk(check: Check, results: readonly Result[], message: string): void {
    this.add(check, results);
    const isHealthy = !results.some(({ severity }) => severity === "error" || severity === "warning");
    if (isHealthy) this.add(check, [ok(message)]);
  }
}
