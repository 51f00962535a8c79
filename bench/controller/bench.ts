import { fileURLToPath } from "node:url";
import { buildLikewise, buildProgram } from "../bundle.ts";
import { describeMachine } from "../machine.ts";
import { type Burst, measureBurst } from "./burst.ts";
import { type IdleTimes, measureIdle } from "./idle.ts";
import { describeResults } from "./report.ts";
import { measureRescale, rescaleByTier } from "./rescale.ts";
import { RunningController } from "./running-controller.ts";
import { PIPES_PER_SERVICE, seedBaseline, seedServices } from "./seed.ts";
import { measureStart } from "./start.ts";
import { createControllerWorld, quiet } from "./world.ts";
import { WritingLoop } from "./writing-loop.ts";

interface Amounts {
  readonly rescale: { readonly services: number; readonly rounds: number };
  readonly start: { readonly deployments: number; readonly rounds: number };
  readonly bursts: number;
  readonly idle: IdleTimes;
}

const SETTLE_MINUTES = 5;

const QUICK: Amounts = {
  rescale: { services: 200, rounds: 2 },
  start: { deployments: 3000, rounds: 2 },
  bursts: 1,
  idle: { settleMinutes: 0, minutes: 0.25 },
};

const STANDARD: Amounts = {
  rescale: { services: 1000, rounds: 5 },
  start: { deployments: 15_000, rounds: 5 },
  bursts: 3,
  idle: { settleMinutes: SETTLE_MINUTES, minutes: 5 },
};

const FULL: Amounts = {
  ...STANDARD,
  start: { deployments: 60_000, rounds: 3 },
  // Longer than any watch lives (src/runtime/reflector.ts), so the measurement includes a restart of each.
  idle: { settleMinutes: SETTLE_MINUTES, minutes: 20 },
};

const EXTENTS = { quick: QUICK, standard: STANDARD, full: FULL };

/** Size of the measurement. */
export type Extent = keyof typeof EXTENTS;

/** With pacing, each pipe is a separate rollout, so fewer services are enough to count the writes. */
const PACED_SERVICES = 100;

export interface BenchOptions {
  readonly extent: Extent;
  /** Folder for the CPU profile of each measured process. If absent, none are written. Profiling slows a process. */
  readonly profileDir?: string | undefined;
  /** Reports progress. */
  readonly report: (text: string) => void;
}

/** Measures the controller against its targets (docs/benchmarks.md). Prints two tables: ratios, and request counts. */
export async function benchController({ extent: name, profileDir, report }: BenchOptions): Promise<void> {
  const machine = describeMachine();
  const amounts = EXTENTS[name];
  report("Starting a cluster without pods");
  const world = await createControllerWorld(profileDir);
  try {
    const { dir } = world.cluster;
    const programs = {
      controller: await buildProgram(dir),
      writes: await buildLikewise(besideThis("writes.ts"), dir),
      lists: await buildLikewise(besideThis("../lists.ts"), dir),
    };
    const { services, rounds } = amounts.rescale;
    report(
      `Creating ${count(services)} services of ${PIPES_PER_SERVICE} pipes, and as many for the baseline`,
    );
    const idlePipes = { services, replicas: 0 };
    const rescaled = await seedServices(world, idlePipes);
    await seedBaseline(world, idlePipes);
    const paced = await seedServices(world, { services: PACED_SERVICES, replicas: 1, completeAtOnce: true });
    const single = await seedServices(world, { services: 1, replicas: 0 });

    const controller = await RunningController.start(world, programs.controller);
    const loop = await WritingLoop.start(world, programs.writes);
    await quiet(world);
    report(`Rescaling them all at once, ${rounds + 1} times`);
    const rescale = await measureRescale(world, rescaled, { controller, loop }, rounds);
    await loop.process.stop();
    const { counts: pacedCounts } = await rescaleByTier(world, paced, controller, "scale");
    report(`Sending 1,000 PATCHes of one service in 10 seconds, ${amounts.bursts} times`);
    const bursts: Burst[] = [];
    for (let burst = 0; burst < amounts.bursts; burst += 1)
      bursts.push(await measureBurst(world, controller, single.serviceIds[0] ?? ""));

    const { deployments } = amounts.start;
    report(`Creating more, up to ${count(deployments)} Deployments`);
    const made = [rescaled, paced, single].reduce((sum, { pipes }) => sum + pipes, 0);
    const more = Math.ceil((deployments - made) / PIPES_PER_SERVICE);
    const added = await seedServices(world, { services: more, replicas: 1 });
    await quiet(world);
    await controller.stop();
    report(`Starting the controller with nothing to resize, ${amounts.start.rounds + 1} times`);
    const starts = await measureStart(world, programs, amounts.start.rounds);
    report(`Leaving it idle for ${amounts.idle.settleMinutes + amounts.idle.minutes} minutes`);
    const last = await RunningController.start(world, programs.controller);
    const idle = await measureIdle(world, last, amounts.idle);
    await last.stop();

    console.log(
      describeResults({
        services,
        rescale,
        paced: { services: PACED_SERVICES, counts: pacedCounts },
        bursts,
        deployments: made + added.pipes,
        starts,
        idle,
      }),
    );
    console.log(`\n${machine}; ${new Date().toISOString()}`);
  } finally {
    await world.admin.close();
    // Also ends the processes of the benchmark (child.ts).
    await world.cluster.stop();
  }
}

function besideThis(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}

function count(value: number): string {
  return value.toLocaleString("en");
}
