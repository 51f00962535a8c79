import type { Comparison, Spread } from "./statistics.ts";
import { table } from "./table.ts";

/** What a ratio of ours to the baseline must be. */
export interface Bar {
  readonly relation: "≥" | "≤";
  readonly ratio: number;
}

/** One row: something that was measured of ours and of a baseline in the same run. */
export interface Measure {
  readonly what: string;
  readonly comparison: Comparison;
  /** None if it is only shown, to explain others. */
  readonly bar?: Bar;
  /** A value with its unit. */
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

/** By the ratio itself, not by the two digits of it that are shown. */
export function isMet({ relation, ratio }: Bar, measured: number): boolean {
  return relation === "≥" ? measured >= ratio : measured <= ratio;
}

function describeSpread({ least, most }: Spread): string {
  return `${least.toFixed(2)} to ${most.toFixed(2)}`;
}
