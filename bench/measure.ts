import type { Comparison, Spread } from "./statistics.ts";
import { table } from "./table.ts";

/** Target for the ratio of a measured value to the baseline. */
export interface Bar {
  readonly relation: "≥" | "≤";
  readonly ratio: number;
}

/** A row: a quantity that was measured for ours and for a baseline in the same run. */
export interface Measure {
  readonly what: string;
  readonly comparison: Comparison;
  /** Absent if the row only explains others. */
  readonly bar?: Bar;
  /** Formats a value with its unit. */
  readonly format: (value: number) => string;
}

const HEADER = ["measure", "ours", "baseline", "ratio", "ratios of the rounds", "target", "met"];

export function measuresTable(measures: readonly Measure[]): string {
  return table(
    HEADER,
    measures.map(({ what, comparison: { ours, baseline, ratio }, bar, format }) => [
      what,
      format(ours.median),
      format(baseline.median),
      ratio.median.toFixed(2),
      describeSpread(ratio),
      ...(bar ? [`${bar.relation} ${bar.ratio.toFixed(2)}`, isMet(bar, ratio.median) ? "yes" : "no"] : []),
    ]),
  );
}

/** Compares the exact ratio, not its two displayed digits. */
export function isMet({ relation, ratio }: Bar, measured: number): boolean {
  return relation === "≥" ? measured >= ratio : measured <= ratio;
}

function describeSpread({ least, most }: Spread): string {
  return `${least.toFixed(2)} to ${most.toFixed(2)}`;
}
