import type { Clock } from "../../runtime/clock.ts";
import { frame } from "./frame.ts";
import type { RescaleView } from "./rescale-view.ts";
import { painted, span } from "./span.ts";
import { printable, wrapped } from "./text.ts";

/** A terminal to draw on. */
export interface DrawingTerminal {
  readonly out: (text: string) => void;
  /** As it is now: a window's size changes. */
  columns(): number;
  rows(): number;
  readonly colors: boolean;
}

/** Shows how a rescale goes on. */
export interface Display {
  show(view: RescaleView): void;
  /** What keeps us from knowing more, in a sentence; the next view takes it back. */
  trouble(sentence: string): void;
  /** Draws the last of it. */
  end(): void;
}

const LEAST_BETWEEN_MS = 100;
const TICK_MS = 1000;
const TROUBLE_ROWS = 2;

const ESCAPE = "\u001b[";
const HIDE_CURSOR = `${ESCAPE}?25l`;
const SHOW_CURSOR = `${ESCAPE}?25h`;
/** A line that is wider than we reckon is cut off, not continued on the next, where we would draw over it. */
const NO_WRAP = `${ESCAPE}?7l`;
const WRAP = `${ESCAPE}?7h`;
const CLEAR_TO_LINE_END = `${ESCAPE}K`;
const CLEAR_BELOW = `${ESCAPE}J`;

/**
 * A frame that is redrawn in its place, on news and each second for the time's sake.
 *
 * Guarantees:
 * - At most ten frames a second; the newest view is always drawn in the end.
 * - Between two calls the terminal is as it was found: whoever stops or kills the program finds a cursor.
 */
export class LiveView implements Display {
  readonly #terminal: DrawingTerminal;
  readonly #clock: Clock;
  #view: RescaleView | undefined;
  #trouble: string | undefined;
  #drawnRows = 0;
  #drawnAt = Number.NEGATIVE_INFINITY;
  #cancelNext: (() => void) | undefined;

  constructor(terminal: DrawingTerminal, clock: Clock) {
    this.#terminal = terminal;
    this.#clock = clock;
  }

  show(view: RescaleView): void {
    this.#view = view;
    this.#trouble = undefined;
    this.#drawSoon();
  }

  trouble(sentence: string): void {
    this.#trouble = sentence;
    this.#drawSoon();
  }

  end(): void {
    this.#draw();
    this.#cancelNext?.();
  }

  #drawSoon(): void {
    const waitMs = this.#drawnAt + LEAST_BETWEEN_MS - this.#clock.monotonic();
    if (waitMs <= 0) this.#draw();
    else this.#drawAfter(waitMs);
  }

  #drawAfter(delayMs: number): void {
    this.#cancelNext?.();
    this.#cancelNext = this.#clock.after(delayMs, () => this.#draw());
  }

  #draw(): void {
    this.#drawnAt = this.#clock.monotonic();
    const lines = this.#lines();
    const back = this.#drawnRows > 0 ? `${ESCAPE}${this.#drawnRows}A` : "";
    const text = lines.map((line) => `${line}${CLEAR_TO_LINE_END}\n`).join("");
    this.#terminal.out(`${HIDE_CURSOR}${back}\r${NO_WRAP}${text}${CLEAR_BELOW}${WRAP}${SHOW_CURSOR}`);
    this.#drawnRows = lines.length;
    this.#drawAfter(TICK_MS);
  }

  #lines(): string[] {
    const { colors } = this.#terminal;
    const columns = this.#terminal.columns();
    // The cursor stands on a row of its own, below.
    const rows = this.#terminal.rows() - 1;
    const trouble = wrapped(printable(this.#trouble ?? ""), columns)
      .slice(0, TROUBLE_ROWS)
      .map((line) => painted([span(line, "warning")], { columns, colors }));
    const canvas = { columns, colors, rows: rows - trouble.length };
    const drawn = this.#view ? frame(this.#view, this.#clock.now(), canvas) : [];
    return [...drawn, ...trouble].slice(0, Math.max(1, rows));
  }
}
