import { styleText } from "node:util";

export interface Terminal extends NodeJS.WritableStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
}

type Style = Parameters<typeof styleText>[0];

/** Where the text of a line begins, after its time and its mark. */
const INDENT = " ".repeat(13);

/**
 * Tells the story: a line for each step, with the time since the beginning. On a terminal the line of what
 * is under way is rewritten, and there are colours (unless NO_COLOR is set); elsewhere only whole lines.
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

  /** Does one step and tells its outcome; `what` says in the meantime what is under way. */
  async step<T>(what: string, act: () => Promise<Outcome<T>>): Promise<T> {
    this.underWay(what);
    try {
      const { told, result, details = [] } = await act();
      this.#line(`${this.#clock()}  ${this.#style("green", "✓")} ${told}`);
      for (const detail of details) this.#detail(detail);
      return result;
    } catch (error) {
      this.#line(`${this.#clock()}  ${this.#style("red", "✗")} ${what}`);
      throw error;
    }
  }

  /** Something seen on the way, worth a line of its own. */
  seen(text: string, details: readonly string[] = []): void {
    this.#line(`${this.#clock()}  ${this.#style("cyan", "·")} ${text}`);
    for (const detail of details) this.#detail(detail);
  }

  /** What is going on right now; only a terminal shows it. */
  underWay(text: string): void {
    if (!this.#out.isTTY) return;
    const line = `${this.#elapsed()}  … ${text}`;
    // A line that wraps could not be rewritten. A terminal that does not know its width says 0.
    this.#out.write(`\r\x1b[2K${this.#style("dim", line.slice(0, (this.#out.columns || 80) - 1))}`);
    this.#open = true;
  }

  /** Text as it is, on lines of its own. */
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
    // Of a terminal styleText asks NO_COLOR and the like; elsewhere FORCE_COLOR would have its way.
    return this.#out.isTTY ? styleText(style, text, { stream: this.#out }) : text;
  }
}

export interface Outcome<T> {
  /** The step, as it went. */
  readonly told: string;
  readonly details?: readonly string[];
  readonly result: T;
}
