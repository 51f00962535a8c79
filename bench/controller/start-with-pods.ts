import { type Idle, type IdleTimes, measureIdle } from "./idle.ts";
import { RunningController } from "./running-controller.ts";
import { PIPES_PER_SERVICE, type Seeded, seedServices, setTier } from "./seed.ts";
import { type ControllerWorld, quiet } from "./world.ts";

export interface StartAmounts {
  readonly services: number;
  readonly rounds: number;
  readonly idle: IdleTimes;
}

export interface StartsWithPods {
  /** Deployments and, as many, pods. */
  readonly deployments: number;
  /** Milliseconds from spawn to the first write to a pod, by round. */
  readonly firstWriteMs: readonly number[];
  /** Milliseconds from spawn until the caches were filled and the lease was acquired, by round. */
  readonly ledMs: readonly number[];
  /** RSS of the controller by round: the maximum at the first write and after all reconciliations. */
  readonly rssBytes: readonly number[];
  /** CPU time until it is idle, in seconds, by round. */
  readonly cpuSeconds: readonly number[];
  readonly idle: Idle;
  /** RSS of the idle controller. */
  readonly idleRssBytes: number;
}

/** Starts the controller with one service to resize, whose tier was changed while no controller ran. */
export async function measureStartWithPods(
  world: ControllerWorld,
  program: string,
  { services, rounds, idle: times }: StartAmounts,
): Promise<StartsWithPods> {
  // Each round has a service of its own, because only a larger size is applied at once. The first round is a warm-up.
  const changed: Seeded[] = [];
  for (let round = 0; round <= rounds; round += 1)
    changed.push(await seedServices(world, { services: 1, replicas: 1, hasPods: true }));
  const first = await RunningController.start(world, program, "InPlaceOrRollout");
  await quiet(world);
  await first.stop();
  const starts: Start[] = [];
  for (const service of changed) starts.push(await startWithWork(world, program, service));
  const measured = starts.slice(1);
  const last = await RunningController.start(world, program, "InPlaceOrRollout");
  const idle = await measureIdle(world, last, times);
  const idleRssBytes = await last.process.rssBytes();
  await last.stop();
  return {
    deployments: (services + changed.length) * PIPES_PER_SERVICE,
    firstWriteMs: measured.map(({ firstWriteMs }) => firstWriteMs),
    ledMs: measured.map(({ ledMs }) => ledMs),
    rssBytes: measured.map(({ rssBytes }) => rssBytes),
    cpuSeconds: measured.map(({ cpuSeconds }) => cpuSeconds),
    idle,
    idleRssBytes,
  };
}

interface Start {
  readonly firstWriteMs: number;
  readonly ledMs: number;
  readonly rssBytes: number;
  readonly cpuSeconds: number;
}

async function startWithWork(world: ControllerWorld, program: string, service: Seeded): Promise<Start> {
  await setTier(world, service, "scale");
  await quiet(world);
  const controller = await RunningController.start(world, program, "InPlaceOrRollout");
  const { process } = controller;
  const firstWriteMs = (await controller.firstPodAtMs()) - process.spawnedAtMs;
  const rssThen = await process.rssBytes();
  await quiet(world);
  const rssBytes = Math.max(rssThen, await process.rssBytes());
  const cpuSeconds = await process.cpuSeconds();
  await controller.stop();
  return { firstWriteMs, ledMs: controller.startMs, rssBytes, cpuSeconds };
}
