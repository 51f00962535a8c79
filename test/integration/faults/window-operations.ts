import { ifPossible, nameOf, type Operation, REFUSED } from "./operation.ts";
import { inResizeWindow } from "./resize-window.ts";
import type { ServiceUnderTest } from "./service-under-test.ts";

/** Operations in the middle of a resize in place: after one of its writes. */
export class WindowOperations {
  readonly operations: readonly Operation[];
  readonly #service: ServiceUnderTest;
  readonly #all: readonly Operation[];

  constructor(service: ServiceUnderTest, all: readonly Operation[]) {
    this.#service = service;
    this.#all = all;
    const requestAgain = this.#requestAgain.bind(this);
    const requestSecond = this.#requestSecond.bind(this);
    // Most faults of a resize in place need one of these.
    this.operations = [
      ...Array.from({ length: 10 }, () => requestAgain),
      ...Array.from({ length: 4 }, () => requestSecond),
    ];
  }

  /** Any operation, and then the request of the first size. */
  async #requestAgain(): Promise<unknown> {
    const first = this.#service.requested;
    const operation = this.#all[this.#service.below(this.#all.length)];
    if (!operation || !(await inResizeWindow(this.#service))) return false;
    const result = await ifPossible(operation);
    await this.#service.request(first);
    return `${nameOf(operation)}${result === REFUSED ? " (refused)" : ""}`;
  }

  /** A second size, without an end of the first one. */
  async #requestSecond(): Promise<unknown> {
    const cores = this.#service.anySize();
    if (!(await inResizeWindow(this.#service))) return false;
    await this.#service.request(cores);
    return `${cores} cores`;
  }
}
