import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { PIPE_SCALINGS } from "../../src/crd/names.ts";
import type { PipeScaling } from "../../src/crd/pipe-scaling.ts";
import type { ResizeStrategy } from "../../src/domain/resize-strategy.ts";
import { collectionPath } from "../../src/kube/paths.ts";
import { buildProgram } from "../bundle.ts";
import { type IdleTimes, measureIdle } from "./idle.ts";
import { countsBetween } from "./request-counts.ts";
import type { Rescaled } from "./rescale.ts";
import { RunningController } from "./running-controller.ts";
import { type Seeded, seedServices, setTier } from "./seed.ts";
import { type ControllerWorld, createWorldWithPods, openWatches, PIPES, quiet } from "./world.ts";

/** Kinds that the controller watches only while it resizes in place, and pods of pending rollouts. */
const WATCHED = ["pods", "replicasets"];
/** At most three templates follow per second. */
const MIN_MS_PER_PIPE = 1000 / 3;
/** In addition. */
const TIMEOUT_MS = 300_000;
/** How often the progress is read, which is the precision of the time. */
const LOOK_MS = 1000;

export interface InPlace {
  readonly pipes: number;
  readonly inPlace: Resized;
  readonly rollout: Resized;
  /** Watches that are open after the resizes in place and were not before. */
  readonly watches: number;
}

/** A rescale until every pod runs the size, and its controller when it is idle again. */
export interface Resized extends Rescaled {
  readonly rssBytes: number;
  /** CPU time as a share of one core, from 0 to 1. */
  readonly idleCpuShare: number;
}

/** Rescales the same pipes with one pod each: first in place, and then by rollouts. */
export async function measureInPlace(
  { services, idle }: { readonly services: number; readonly idle: IdleTimes },
  profileDir: string | undefined,
  report: (text: string) => void,
): Promise<InPlace> {
  const world = await createWorldWithPods(profileDir);
  try {
    const program = await buildProgram(world.cluster.dir);
    const seeded = await seedServices(world, { services, replicas: 1, hasPods: true });
    report(`Resizing the pods of ${seeded.pipes} pipes in place`);
    const { rescaled: inPlace, watches } = await rescale(world, seeded, program, "InPlaceOrRollout", {
      ...{ tier: "scale", cores: 2, idle },
    });
    report("Replacing the same pods in rollouts");
    const { rescaled: rollout } = await rescale(world, seeded, program, "Rollout", {
      ...{ tier: "basic", cores: 1, idle },
    });
    return { pipes: seeded.pipes, inPlace, rollout, watches };
  } finally {
    await world.admin.close();
    await world.cluster.stop();
  }
}

async function rescale(
  world: ControllerWorld,
  seeded: Seeded,
  program: string,
  strategy: ResizeStrategy,
  { tier, cores, idle }: { readonly tier: string; readonly cores: number; readonly idle: IdleTimes },
): Promise<{ readonly rescaled: Resized; readonly watches: number }> {
  const controller = await RunningController.start(world, program, strategy);
  const { process } = controller;
  await haveSize(world, seeded, cores === 1 ? 2 : 1);
  const before = await quiet(world);
  const watchesBefore = await openWatches(world, WATCHED);
  const cpuBefore = await process.cpuSeconds();
  const startedAtMs = Date.now();
  await setTier(world, seeded, tier);
  await haveSize(world, seeded, cores);
  const seconds = (Date.now() - startedAtMs) / 1000;
  const counts = countsBetween(before, await quiet(world));
  const cpuSeconds = (await process.cpuSeconds()) - cpuBefore;
  const watches = (await openWatches(world, WATCHED)) - watchesBefore;
  await checkMethod(world, seeded, strategy);
  const { cpuShare: idleCpuShare } = await measureIdle(world, controller, idle);
  const rssBytes = await process.rssBytes();
  await controller.stop();
  return { rescaled: { seconds, cpuSeconds, counts, rssBytes, idleCpuShare }, watches };
}

/** Waits until the status of each service reports that all pipes run the size. */
async function haveSize(world: ControllerWorld, { serviceIds, pipes }: Seeded, cores: number): Promise<void> {
  const areSized = async () => {
    const scalings = await scalingsOf(world);
    const sized = scalings.filter(({ status }) => {
      const isReady = status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True");
      return isReady && status?.effective?.replicaCpuMillicores === cores * 1000;
    });
    return sized.length === serviceIds.length || Promise.reject(new Error(`${sized.length} services`));
  };
  const what = `${serviceIds.length} services to run ${cores} cores`;
  const timeoutMs = TIMEOUT_MS + pipes * MIN_MS_PER_PIPE;
  await waitFor(areSized, { what, timeoutMs, intervalMs: LOOK_MS });
}

/** @throws Error if a pipe was resized by another method, because then the figures mean something else */
async function checkMethod(
  world: ControllerWorld,
  { pipes }: Seeded,
  strategy: ResizeStrategy,
): Promise<void> {
  const scalings = await scalingsOf(world);
  const inPlace = scalings.reduce((sum, { status }) => sum + (status?.pipes?.inPlace ?? 0), 0);
  const expected = strategy === "Rollout" ? 0 : pipes;
  const fallbacks = scalings.flatMap(({ status }) => status?.pipes?.fallbacks ?? []);
  if (inPlace !== expected)
    throw new Error(`${inPlace} of ${pipes} pipes were resized in place: ${JSON.stringify(fallbacks[0])}`);
}

async function scalingsOf({ admin }: ControllerWorld): Promise<readonly PipeScaling[]> {
  const { items } = await admin.json<{ readonly items: readonly PipeScaling[] }>({
    path: collectionPath(PIPE_SCALINGS, PIPES),
  });
  return items;
}
