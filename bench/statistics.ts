/** The middle value; of an even number of them, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)];
  const lower = sorted[Math.ceil(sorted.length / 2) - 1];
  if (upper === undefined || lower === undefined) throw new Error("there is no median of nothing");
  return (lower + upper) / 2;
}

/** The smallest value that a share of all values, from 0 to 1, does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
  if (value === undefined) throw new Error("there is no percentile of nothing");
  return value;
}

/** A quantity by rounds: its median, and how far the rounds lay apart. */
export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

export function spread(values: readonly number[]): Spread {
  return { median: median(values), least: Math.min(...values), most: Math.max(...values) };
}

/** What was measured of ours and of the baseline in the same round, close to each other in time. */
export interface Pair {
  readonly ours: number;
  readonly baseline: number;
}

export interface Comparison {
  readonly ours: Spread;
  readonly baseline: Spread;
  /** Of each round's own ratio, so that what slows the machine for a while slows both sides of it. */
  readonly ratio: Spread;
}

export function compare(rounds: readonly Pair[]): Comparison {
  return {
    ours: spread(rounds.map(({ ours }) => ours)),
    baseline: spread(rounds.map(({ baseline }) => baseline)),
    ratio: spread(rounds.map(({ ours, baseline }) => ours / baseline)),
  };
}
