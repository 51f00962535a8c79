import { FAILURE_REASON_TABLE } from "../../../src/crd/failure-reasons.ts";
import { FALLBACK_REASON_TABLE, FALLBACK_REASONS } from "../../../src/crd/fallback-reasons.ts";
import { code, table } from "./markdown.ts";

/** The table of docs/explanation/in-place.md: every reason. */
export function fallbackReasons(): string {
  return table(["reason", "meaning", "remedy"], rows(FALLBACK_REASONS));
}

/** The table of the runbook of that alert: the reasons that it counts. */
export function alarmingFallbackReasons(): string {
  const alarming = FALLBACK_REASONS.filter((reason) => !FALLBACK_REASON_TABLE[reason].isExpected);
  return table(["reason", "meaning", "fix"], rows(alarming));
}

/** The table of the runbook for stalled services. */
export function stalledReasons(): string {
  const stalled = Object.entries(FAILURE_REASON_TABLE).filter(([, { shows }]) => shows === "Stalled");
  return table(
    ["reason", "cause", "fix"],
    stalled.map(([reason, { meaning, remedy }]) => [code(reason), meaning, remedy]),
  );
}

function rows(reasons: typeof FALLBACK_REASONS): readonly (readonly string[])[] {
  return reasons.map((reason) => {
    const { meaning, remedy } = FALLBACK_REASON_TABLE[reason];
    return [code(reason), meaning, remedy];
  });
}
