import type { Io } from "./command.ts";

/** One property of a thing, as the table and the JSON name it. */
export type Row = Readonly<Record<string, unknown>>;

/** Columns padded to their widest cell, two spaces apart. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join("");
}

function cell(value: unknown): string {
  if (value === undefined) return "-";
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map(cell).join(",") || "-";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A list: an array in JSON; in the table one line each, with the keys of `columns` as headings. */
export function printList(
  io: Io,
  output: "table" | "json",
  columns: readonly string[],
  rows: readonly Row[],
): void {
  const table = () => [columns.map(heading), ...rows.map((row) => columns.map((name) => cell(row[name])))];
  io.out(output === "json" ? json(rows) : formatTable(table()));
}

/** One thing that was made: an object in JSON; in the table one line for each of its properties. */
export function printOne(io: Io, output: "table" | "json", row: Row): void {
  const table = () => Object.entries(row).map(([key, value]) => [heading(key), cell(value)]);
  io.out(output === "json" ? json(row) : formatTable(table()));
}

function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

/** `createdAt` as `CREATED AT`. */
function heading(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => ` ${letter}`).toUpperCase();
}
