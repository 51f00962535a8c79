import type { Pair } from "../statistics.ts";
import { countsBetween, type RequestCounts } from "./request-counts.ts";
import type { RunningController } from "./running-controller.ts";
import { type Seeded, setTier } from "./seed.ts";
import { type ControllerWorld, quiet } from "./world.ts";
import type { WritingLoop } from "./writing-loop.ts";

/** Tiers in turn, with default sizes of 2 cores and 1 core. */
const TURNS = [
  { tier: "scale", cores: 2 },
  { tier: "basic", cores: 1 },
] as const;

export interface Rescaled {
  /** Time until the last Deployment had its size. */
  readonly seconds: number;
  /** CPU time of the process until it was idle again. */
  readonly cpuSeconds: number;
  /** Requests to the API server meanwhile. */
  readonly counts: RequestCounts;
}

export interface RescaleRounds {
  readonly seconds: readonly Pair[];
  readonly cpuSeconds: readonly Pair[];
  readonly ours: readonly RequestCounts[];
  readonly baseline: readonly RequestCounts[];
}

/** The controller and the baseline rescale the same number of services, in turns. The first round is a warm-up. */
export async function measureRescale(
  world: ControllerWorld,
  seeded: Seeded,
  { controller, loop }: { readonly controller: RunningController; readonly loop: WritingLoop },
  rounds: number,
): Promise<RescaleRounds> {
  const measured: { readonly ours: Rescaled; readonly baseline: Rescaled }[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const turn = TURNS[round % 2] ?? TURNS[0];
    const byController = () => rescaleByTier(world, seeded, controller, turn.tier);
    const byLoop = () => rescaleByLoop(world, loop, turn.cores);
    // The order alternates, so that a drift over time favors neither.
    const oursFirst = round % 2 === 0;
    const first = await (oursFirst ? byController : byLoop)();
    const second = await (oursFirst ? byLoop : byController)();
    if (round > 0)
      measured.push(oursFirst ? { ours: first, baseline: second } : { ours: second, baseline: first });
  }
  const pairs = (value: (rescaled: Rescaled) => number) =>
    measured.map(({ ours, baseline }) => ({ ours: value(ours), baseline: value(baseline) }));
  return {
    seconds: pairs((each) => each.seconds),
    cpuSeconds: pairs((each) => each.cpuSeconds),
    ours: measured.map(({ ours }) => ours.counts),
    baseline: measured.map(({ baseline }) => baseline.counts),
  };
}

/** Changes the size of all services with one write: the tier of their organization. */
export async function rescaleByTier(
  world: ControllerWorld,
  seeded: Seeded,
  controller: RunningController,
  tier: string,
): Promise<Rescaled> {
  const before = await quiet(world);
  const cpuBefore = await controller.process.cpuSeconds();
  const given = controller.given;
  const startedAtMs = Date.now();
  await setTier(world, seeded, tier);
  const endedAtMs = await controller.givenAtMs(given + seeded.pipes);
  const after = await quiet(world);
  return {
    seconds: (endedAtMs - startedAtMs) / 1000,
    cpuSeconds: (await controller.process.cpuSeconds()) - cpuBefore,
    counts: countsBetween(before, after),
  };
}

async function rescaleByLoop(world: ControllerWorld, loop: WritingLoop, cores: number): Promise<Rescaled> {
  const before = await quiet(world);
  const cpuBefore = await loop.process.cpuSeconds();
  const startedAtMs = Date.now();
  const endedAtMs = await loop.rescale(cores);
  const after = await quiet(world);
  return {
    seconds: (endedAtMs - startedAtMs) / 1000,
    cpuSeconds: (await loop.process.cpuSeconds()) - cpuBefore,
    counts: countsBetween(before, after),
  };
}
