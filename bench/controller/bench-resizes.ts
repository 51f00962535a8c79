import { describeMachine } from "../machine.ts";
import type { BenchOptions, Extent } from "./bench.ts";
import { measureResizes, type ResizesAmounts } from "./resizes.ts";
import { resizesTable, startsTable } from "./resizes-table.ts";

const STANDARD: ResizesAmounts = {
  services: 100,
  rounds: 3,
  start: { services: 1000, rounds: 5, idle: { settleMinutes: 5, minutes: 5 } },
};

const AMOUNTS: Readonly<Record<Extent, ResizesAmounts>> = {
  quick: {
    services: 10,
    rounds: 1,
    start: { services: 30, rounds: 2, idle: { settleMinutes: 0, minutes: 0.1 } },
  },
  standard: STANDARD,
  // With the default limits of the controller manager, this takes three quarters of an hour.
  full: { ...STANDARD, services: 1000, rounds: 1 },
};

/** Measures resizes of pipes with pods (docs/benchmarks.md), and prints a table of them and one of starts. */
export async function benchResizes({ extent, profileDir, report }: BenchOptions): Promise<void> {
  const machine = describeMachine();
  const resizes = await measureResizes(AMOUNTS[extent], profileDir, report);
  console.log(resizesTable(resizes));
  console.log(`\n${startsTable(resizes.startsWithPods)}`);
  console.log(`\n${machine}; ${new Date().toISOString()}`);
}
