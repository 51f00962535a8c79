export const SEVERITIES = ["error", "warning", "note", "ok"] as const;

/**
 * error: something does not work. warning: something will not, or is not what was meant. note: good to know, or
 * not looked at. ok: was looked at, and is well.
 */
export type Severity = (typeof SEVERITIES)[number];

export interface Finding {
  readonly severity: Severity;
  /** What was looked at, in one word for programs. */
  readonly check: Check;
  /** One sentence. */
  readonly message: string;
  /** What to do about it, with the command. */
  readonly remedy?: string;
}

export type Check =
  | "server"
  | "clock"
  | "definition"
  | "installation"
  | "permissions"
  | "lease"
  | "records"
  | "services"
  | "scalings"
  | "pipes";

/** What has been found so far. */
export class Findings {
  readonly #all: Finding[] = [];

  /** The gravest first, otherwise as they were found. */
  get all(): readonly Finding[] {
    return SEVERITIES.flatMap((severity) => this.#all.filter((each) => each.severity === severity));
  }

  count(severity: Severity): number {
    return this.#all.filter((each) => each.severity === severity).length;
  }

  add(...findings: readonly Finding[]): void {
    this.#all.push(...findings);
  }
}

/** What was looked at, in words, unless something was found wrong with it. */
export function okUnless(findings: readonly Finding[], check: Check, message: string): Finding[] {
  const isWrong = findings.some(({ severity }) => severity === "error" || severity === "warning");
  return isWrong ? [] : [{ severity: "ok", check, message }];
}
