/** Returns the median. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)];
  const lower = sorted[Math.ceil(sorted.length / 2) - 1];
  if (upper === undefined || lower === undefined) throw new Error("the median needs at least one value");
  return (lower + upper) / 2;
}

/** Returns the smallest value that at least this fraction (0 to 1) of the values does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
  if (value === undefined) throw new Error("the percentile needs at least one value");
  return value;
}

/** A quantity measured in rounds: its median, and the spread of the rounds. */
export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

export function spread(values: readonly number[]): Spread {
  return { median: median(values), least: Math.min(...values), most: Math.max(...values) };
}

/** Values of this program and of the baseline in the same round, measured shortly after each other. */
export interface Pair {
  readonly ours: number;
  readonly baseline: number;
}

export interface Comparison {
  readonly ours: Spread;
  readonly baseline: Spread;
  /** The ratio is computed per round, so a temporary slowdown of the machine affects both sides. */
  readonly ratio: Spread;
}

export function compare(rounds: readonly Pair[]): Comparison {
  return {
    ours: spread(rounds.map(({ ours }) => ours)),
    baseline: spread(rounds.map(({ baseline }) => baseline)),
    ratio: spread(rounds.map(({ ours, baseline }) => ours / baseline)),
  };
}
