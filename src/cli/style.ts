import { styleText } from "node:util";
import type { Io } from "./io.ts";

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** Styles a text of standard output, where that has colours; elsewhere it is left as it is. */
export function painter({ terminal }: Pick<Io, "terminal">): (style: Style, text: string) => string {
  return (style, text) => (terminal.colors ? styleText(style, text, { validateStream: false }) : text);
}
