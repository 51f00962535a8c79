import fc from "fast-check";
import { beforeEach, inject } from "vitest";

declare module "vitest" {
  export interface ProvidedContext {
    /** Seed of the property tests and of the random suite (vitest.config.ts). */
    seed: number;
  }
}

// A setup file of vitest: all property tests of a run share one seed, so that the run can be repeated.
fc.configureGlobal({ seed: inject("seed") });

// A property ends before the timeout of its test, because vitest would not print the seed and the counterexample.
beforeEach(({ task }) => {
  const interruptAfterTimeLimit = 0.9 * task.timeout;
  fc.configureGlobal({ ...fc.readConfigureGlobal(), interruptAfterTimeLimit, markInterruptAsFailure: true });
});
