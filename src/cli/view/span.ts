import { styleText } from "node:util";
import { clipped, printable, widthOf } from "./text.ts";

export type Style = "plain" | "strong" | "faint" | "good" | "busy" | "bad" | "warning";

/** A part of a line in one style. */
export interface Span {
  readonly text: string;
  readonly style: Style;
}

export interface Canvas {
  readonly columns: number;
  readonly colors: boolean;
}

const FORMATS = {
  plain: [],
  strong: ["bold"],
  faint: ["dim"],
  good: ["green"],
  busy: ["cyan"],
  bad: ["red"],
  warning: ["yellow"],
} as const;

/** Where every text of a view begins, so that none gets to the terminal that is not printable. */
export function span(text: string, style: Style = "plain"): Span {
  return { text: printable(text), style };
}

/** One line for the terminal, cut off where the terminal ends. */
export function painted(spans: readonly Span[], { columns, colors }: Canvas): string {
  let line = "";
  let left = columns;
  for (const { text, style } of spans) {
    const shown = clipped(text, left);
    line += colors && shown !== "" ? styleText([...FORMATS[style]], shown, { validateStream: false }) : shown;
    left -= widthOf(shown);
    if (shown !== text) break;
  }
  return line;
}
