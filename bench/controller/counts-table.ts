import { table } from "../table.ts";
import { describeCounts, type RequestCounts } from "./request-counts.ts";

/** One row: how often the API server was asked for something, and how often at most it may be. */
export interface Count {
  readonly what: string;
  readonly measured: number;
  /** None if it is only shown, to explain others. */
  readonly most?: number;
  /** What it consists of. */
  readonly counts: RequestCounts;
}

const HEADER = ["count", "measured", "target", "met", "requests"];

export function countsTable(rows: readonly Count[]): string {
  return table(
    HEADER,
    rows.map(({ what, measured, most, counts }) => [
      what,
      number(measured),
      ...(most === undefined ? ["", ""] : [`≤ ${number(most)}`, measured <= most ? "yes" : "no"]),
      describeCounts(counts),
    ]),
  );
}

function number(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: 2 });
}
