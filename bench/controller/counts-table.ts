import { table } from "../table.ts";
import { describeCounts, type RequestCounts } from "./request-counts.ts";

/** A row: the number of requests of a kind, and its maximum. */
export interface Count {
  readonly what: string;
  readonly measured: number;
  /** Absent if the row only explains others. */
  readonly most?: number;
  /** Breakdown of the count. */
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
