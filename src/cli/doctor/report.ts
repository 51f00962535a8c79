import type { Io } from "../io.ts";
import { painter, type Style } from "../style.ts";
import { padded, printable, wrapped } from "../view/text.ts";
import type { Finding, Findings, Severity } from "./finding.ts";

const STYLES: Readonly<Record<Severity, Style>> = {
  error: "red",
  warning: "yellow",
  note: "cyan",
  ok: "green",
};

/** `warning  ` */
const LABEL_COLUMNS = 9;

/** For people: each finding with its remedy below, and a count at the end. */
export function printFindings(io: Pick<Io, "out" | "terminal">, findings: Findings): void {
  const { terminal } = io;
  const columns = terminal.output ? terminal.columns() : Number.POSITIVE_INFINITY;
  const paint = painter(io);
  const lines = findings.all.flatMap(({ severity, message, remedy }: Finding) => {
    const head = paint(STYLES[severity], severity) + padded(severity, LABEL_COLUMNS).slice(severity.length);
    const told = [
      ...indented(message, columns, "  "),
      ...(remedy === undefined ? [] : indented(`→ ${remedy}`, columns, "  ")),
    ];
    return told.map((line, at) => (at === 0 ? `${head}${line}` : `${" ".repeat(LABEL_COLUMNS)}${line}`));
  });
  io.out([...lines, "", summary(findings)].map((line) => `${line}\n`).join(""));
}

function indented(text: string, columns: number, indent: string): string[] {
  const width = Math.max(20, columns - LABEL_COLUMNS - indent.length);
  return wrapped(printable(text), width).map((line, at) => (at === 0 ? line : `${indent}${line}`));
}

function summary(findings: Findings): string {
  const counted = (severity: Severity, one: string, many: string) => {
    const count = findings.count(severity);
    return count === 1 ? `1 ${one}` : `${count} ${many}`;
  };
  const [errors, warnings] = [counted("error", "error", "errors"), counted("warning", "warning", "warnings")];
  return `${errors}, ${warnings}, ${counted("note", "note", "notes")}.`;
}
