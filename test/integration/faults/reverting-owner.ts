import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { ifPossible, type Operation, type OtherWriters, REFUSED } from "./operation.ts";
import type { ServiceUnderTest } from "./service-under-test.ts";

/** Shortest and longest time until the owner writes its template back. */
const FASTEST_MS = 3;
const SLOWEST_MS = 400;
/** Longest time for which it does that. */
const LASTS_MS = 10_000;
const LOOK_EVERY_MS = 10;

/** An operator that owns a Deployment, and writes the size of its template back at once, for a while. */
export class RevertingOwner implements OtherWriters {
  readonly operations: readonly Operation[];
  readonly #service: ServiceUnderTest;
  #isActive = false;
  #isEnding = false;
  #active: Promise<unknown> = Promise.resolve();

  constructor(service: ServiceUnderTest) {
    this.#service = service;
    const revert = this.#revertForAWhile.bind(this);
    this.operations = [revert, revert];
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    await this.#active;
  }

  async #revertForAWhile(): Promise<unknown> {
    const delayMs = FASTEST_MS + this.#service.random() * (SLOWEST_MS - FASTEST_MS);
    const lastsMs = this.#service.random() * LASTS_MS;
    if (this.#isActive || this.#isEnding) return false;
    return this.#service.withPipe(async (name) => {
      const resources = await this.#resources(name);
      this.#isActive = true;
      this.#active = this.#revert(name, { resources, delayMs, lastsMs }).finally(() => {
        this.#isActive = false;
      });
      return `${name} after ${Math.round(delayMs)} ms, for ${Math.round(lastsMs)} ms`;
    });
  }

  async #revert(
    name: string,
    { resources, delayMs, lastsMs }: { resources: object; delayMs: number; lastsMs: number },
  ): Promise<void> {
    const until = performance.now() + lastsMs;
    while (performance.now() < until && !this.#isEnding) {
      const now = await ifPossible(() => this.#resources(name));
      if (now !== REFUSED && !isDeepStrictEqual(now, resources)) {
        await delay(delayMs);
        const containers = [{ name: "pipe", resources }];
        const body = { spec: { template: { spec: { containers } } } };
        await ifPossible(() => this.#service.environment.patchPipe(name, body, "owner-operator"));
      }
      await delay(LOOK_EVERY_MS);
    }
  }

  async #resources(name: string): Promise<object> {
    const { spec } = await this.#service.environment.pipe(name);
    return spec.template.spec.containers.find((each) => each.name === "pipe")?.resources ?? {};
  }
}
