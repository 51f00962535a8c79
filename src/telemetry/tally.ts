import { Counter, type Registry } from "prom-client";

export interface TallyOptions<Label extends string> {
  readonly registry: Registry;
  readonly name: string;
  readonly help: string;
  readonly labels: readonly Label[];
}

/** Counts one more. */
export type Count = () => void;

/**
 * A counter for the hot path: to count is to add one to a number, and the registry is told when it is asked.
 * prom-client's own hashes the labels each time, also when they are bound.
 */
export class Tally<Label extends string> {
  readonly #series: { readonly labels: Record<Label, string>; total: number }[] = [];

  constructor({ registry, name, help, labels }: TallyOptions<Label>) {
    const series = this.#series;
    new Counter({
      name,
      help,
      labelNames: labels,
      registers: [registry],
      collect() {
        this.reset();
        for (const each of series) this.inc(each.labels, each.total);
      },
    });
  }

  /** To be kept: each call makes a series. It shows as 0 until it counts, so that its first rise is seen too. */
  series(labels: Record<Label, string>): Count {
    const series = { labels, total: 0 };
    this.#series.push(series);
    return () => {
      series.total += 1;
    };
  }
}
