import { stringify } from "yaml";
import type { Io } from "./io.ts";
import { escaped, padded, painter, printable, widest } from "./view/text.ts";

/** A row of output. Its property names appear in the table, the JSON and the YAML. */
export type Row = object;

/** Columns of lists that both the platform team and customers see. */
export const MEMBER_COLUMNS = ["userId", "name", "email", "role", "joinedAt"];
export const HISTORY_COLUMNS = ["size", "source", "result", "startedAt", "completedAt", "requestId"];

export const FORMATS = ["table", "json", "yaml"] as const;
export type Format = (typeof FORMATS)[number];

/** Columns padded to their widest cell, two spaces apart. */
export function formatTable(
  rows: readonly (readonly string[])[],
  paint: (text: string, row: number, column: number) => string = (text) => text,
): string {
  const widths = (rows[0] ?? []).map((_, column) => widest(rows.map((row) => row[column] ?? "")));
  const line = (cells: readonly string[], row: number) =>
    cells
      .map((cell, column) => paint(cell, row, column) + padded(cell, widths[column] ?? 0).slice(cell.length))
      .join("  ");
  return rows.map((row, at) => `${line(row, at).trimEnd()}\n`).join("");
}

function cell(value: unknown): string {
  if (value === undefined) return "-";
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map(cell).join(",") || "-";
  return printable(typeof value === "object" ? JSON.stringify(value) : String(value));
}

/** Prints a list. @param columns the properties of the rows that the table shows; json and yaml have all */
export function printList(io: Io, output: Format, columns: readonly string[], rows: readonly Row[]): void {
  if (output !== "table") {
    printData(io, output, rows);
    return;
  }
  const paint = painter(io);
  const cells = (row: Readonly<Record<string, unknown>>) => columns.map((name) => cell(row[name]));
  const table = [columns.map(heading), ...rows.map((row) => cells({ ...row }))];
  io.out(formatTable(table, (text, row) => (row === 0 ? paint("bold", text) : text)));
}

/** A further table below other output; nothing if it is empty. */
export function printTable(io: Io, columns: readonly string[], rows: readonly Row[]): void {
  if (rows.length === 0) return;
  io.out("\n");
  printList(io, "table", columns, rows);
}

interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly Row[];
}

/** One object: in the table a line for each property, and its lists as tables below it. */
export function printOne(
  io: Io,
  output: Format,
  thing: Row,
  lists: Readonly<Record<string, Table>> = {},
): void {
  const tables = Object.entries(lists);
  if (output !== "table") {
    const arrays = Object.fromEntries(tables.map(([name, { rows }]) => [name, rows]));
    printData(io, output, { ...thing, ...arrays });
    return;
  }
  const paint = painter(io);
  const table = Object.entries(thing).map(([key, value]) => [heading(key), cell(value)]);
  io.out(formatTable(table, (text, _row, column) => (column === 0 ? paint("bold", text) : text)));
  for (const [name, { columns, rows }] of tables) {
    io.out(`\n${paint("bold", heading(name))}${rows.length === 0 ? "  none" : ""}\n`);
    if (rows.length > 0) printList(io, output, columns, rows);
  }
}

/**
 * Prints a value for programs: without undefined properties, and with dates as strings in UTC. Control characters are
 * escaped, because people look at this output, too.
 */
export function printData({ out }: Pick<Io, "out">, output: Exclude<Format, "table">, value: unknown): void {
  const json = escaped(JSON.stringify(value, undefined, 2), inJson);
  out(output === "json" ? `${json}\n` : yamlOf(json));
}

function yamlOf(json: string): string {
  // YAML has escapes only between double quotes.
  const quoting = /\\[bfru]/.test(json) ? ({ defaultStringType: "QUOTE_DOUBLE" } as const) : {};
  // Parsers of YAML 1.1 read a bare `yes` or `1:30` as something other than text.
  return escaped(stringify(JSON.parse(json), { compat: "yaml-1.1", ...quoting }), inYaml);
}

function inJson(character: string): string {
  return character.replace(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function inYaml(character: string): string {
  return `\\U${character.codePointAt(0)?.toString(16).padStart(8, "0")}`;
}

/** `createdAt` as `CREATED AT`. */
function heading(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => ` ${letter}`).toUpperCase();
}
