import { FALLBACK_REASON_TABLE, FALLBACK_REASONS } from "../../../src/crd/fallback-reasons.ts";
import { code, table } from "./markdown.ts";

/** The table of docs/explanation/in-place.md: every reason. */
export function fallbackReasons(): string {
  return table(["reason", "meaning", "remedy"], rows(FALLBACK_REASONS));
}

/** The table of the runbook: the reasons that the alert counts. */
export function alarmingFallbackReasons(): string {
  const alarming = FALLBACK_REASONS.filter((reason) => !FALLBACK_REASON_TABLE[reason].isExpected);
  return table(["reason", "meaning", "fix"], rows(alarming));
}

function rows(reasons: typeof FALLBACK_REASONS): readonly (readonly string[])[] {
  return reasons.map((reason) => {
    const { meaning, remedy } = FALLBACK_REASON_TABLE[reason];
    return [code(reason), meaning, remedy];
  });
}
