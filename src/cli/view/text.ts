import { styleText } from "node:util";
import stringWidth from "string-width";
import wrapAnsi from "wrap-ansi";
import type { Io } from "../io.ts";

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** Returns a function that styles text for standard output, or leaves it unchanged if colors are off. */
export function painter({ terminal }: Pick<Io, "terminal">): (style: Style, text: string) => string {
  return (style, text) => (terminal.colors ? styleText(style, text, { validateStream: false }) : text);
}

/** Characters that move the cursor, change colors or the reading direction, or are no characters at all. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]+/gu;

/**
 * Returns a text as one line that is safe on a terminal. Names and messages come from records and from objects of
 * tenants, and could otherwise send control codes to the terminal.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, " ");
}

/** Escapes the characters that {@link printable} replaces, except line breaks, so that nothing is lost. */
export function escaped(text: string, escapeOne: (character: string) => string): string {
  return text.replace(UNPRINTABLE, (found) =>
    Array.from(found, (each) => (each === "\n" ? each : escapeOne(each))).join(""),
  );
}

export function padded(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - stringWidth(text)));
}

/** Columns of the widest text. */
export function widest(texts: readonly string[]): number {
  return Math.max(0, ...texts.map((text) => stringWidth(text)));
}

/** A line that may have colors, broken where the terminal would break it. */
export function broken(line: string, columns: number): string[] {
  return wrapAnsi(line, columns, { hard: true, trim: false }).split("\n");
}

/**
 * Width of lines that only the terminal breaks. People copy commands from them. If a copied command contained a line
 * break, its beginning would run alone, without the flags that select the cluster.
 */
export const UNBROKEN = Number.MAX_SAFE_INTEGER;

/** Width of the terminal; in a pipe lines are not broken. */
export function lineWidth({ terminal }: Pick<Io, "terminal">): number {
  return terminal.output ? terminal.columns() : UNBROKEN;
}

/** `1 pipe`, `2 pipes`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

const MIN_COLUMNS = 20;

/** Puts a text after a label, broken into lines of this width; further lines are indented by the label's width. */
export function labeled(label: string, text: string, columns: number): string[] {
  const indent = stringWidth(label);
  const width = Math.max(MIN_COLUMNS, columns - indent);
  return wrapAnsi(printable(text), width, { hard: true })
    .split("\n")
    .map((line, at) => (at === 0 ? `${label}${line}` : `${" ".repeat(indent)}${line}`).trimEnd());
}
