import type { Clock } from "../../runtime/clock.ts";
import type { Display } from "./live-view.ts";
import { newsOf } from "./news.ts";
import type { RescaleView } from "./rescale-view.ts";
import { printable } from "./text.ts";
import { stopwatch } from "./time.ts";

/**
 * A line for each thing that changes, behind the time since it was begun: for logs and for programs. No line has
 * a control code.
 */
export class PlainView implements Display {
  readonly #out: (text: string) => void;
  readonly #clock: Clock;
  readonly #begunAt: number;
  #view: RescaleView | undefined;
  #trouble: string | undefined;

  constructor(out: (text: string) => void, clock: Clock) {
    this.#out = out;
    this.#clock = clock;
    this.#begunAt = clock.monotonic();
  }

  show(view: RescaleView): void {
    if (this.#trouble !== undefined) this.#tell("connected again");
    this.#trouble = undefined;
    for (const line of newsOf(this.#view, view, this.#clock.now())) this.#tell(line);
    this.#view = view;
  }

  /** Told once, however often it is tried again. */
  trouble(sentence: string): void {
    if (this.#trouble === undefined) this.#tell(printable(sentence));
    this.#trouble = sentence;
  }

  end(): void {
    // Each line was whole when it was told.
  }

  #tell(text: string): void {
    this.#out(`${stopwatch(this.#clock.monotonic() - this.#begunAt)}  ${text}\n`);
  }
}
