import { styleText } from "node:util";

export interface Terminal extends NodeJS.WritableStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
}

type Style = Parameters<typeof styleText>[0];

/** Indentation of the text of a line, after its time and its mark. */
const INDENT = " ".repeat(13);

/**
 * Prints a line for each step, with the time since the start. On a terminal, a line with the current activity is
 * rewritten, and there are colors unless NO_COLOR is set; elsewhere only complete lines are printed.
 */
export class Narration {
  readonly #out: Terminal;
  readonly #start = performance.now();
  #open = false;

  constructor(out: Terminal) {
    this.#out = out;
  }

  title(text: string): void {
    this.#line(`${this.#style("bold", text)}\n`);
  }

  /** Runs a step and prints its outcome. @param what activity to show meanwhile */
  async step<T>(what: string, act: () => Promise<Outcome<T>>): Promise<T> {
    this.underWay(what);
    try {
      const { outcome, result, details = [] } = await act();
      this.#line(`${this.#clock()}  ${this.#style("green", "✓")} ${outcome}`);
      for (const detail of details) this.#detail(detail);
      return result;
    } catch (error) {
      this.#line(`${this.#clock()}  ${this.#style("red", "✗")} ${what}`);
      throw error;
    }
  }

  /** Prints an observation during a step. */
  seen(text: string, details: readonly string[] = []): void {
    this.#line(`${this.#clock()}  ${this.#style("cyan", "·")} ${text}`);
    for (const detail of details) this.#detail(detail);
  }

  /** Shows the current activity, only on a terminal. */
  underWay(text: string): void {
    if (!this.#out.isTTY) return;
    const line = `${this.#elapsed()}  … ${text}`;
    // A wrapped line cannot be rewritten. The width is 0 if the terminal does not know it.
    this.#out.write(`\r\x1b[2K${this.#style("dim", line.slice(0, (this.#out.columns || 80) - 1))}`);
    this.#open = true;
  }

  /** Prints text on separate lines. */
  plain(text: string): void {
    this.#line(text);
  }

  #detail(text: string): void {
    for (const line of text.trimEnd().split("\n")) this.#line(INDENT + this.#style("dim", line));
  }

  #line(text: string): void {
    this.#out.write(`${this.#open ? "\r\x1b[2K" : ""}${text}\n`);
    this.#open = false;
  }

  #clock(): string {
    return this.#style("dim", this.#elapsed());
  }

  #elapsed(): string {
    return `${((performance.now() - this.#start) / 1000).toFixed(1).padStart(6)} s`;
  }

  #style(style: Style, text: string): string {
    // On a terminal, styleText respects NO_COLOR; elsewhere FORCE_COLOR would add colors.
    return this.#out.isTTY ? styleText(style, text, { stream: this.#out }) : text;
  }
}

export interface Outcome<T> {
  /** Prints the result of a step. */
  readonly outcome: string;
  readonly details?: readonly string[];
  readonly result: T;
}
