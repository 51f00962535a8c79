/** Formats numbers for the tables of the benchmarks. */

export function count(value: number): string {
  return Math.round(value).toLocaleString("en");
}

export function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

export function milliseconds(ms: number): string {
  return `${ms.toFixed(ms < 10 ? 2 : 0)} ms`;
}

export function yesNo(isMet: boolean): string {
  return isMet ? "yes" : "no";
}
