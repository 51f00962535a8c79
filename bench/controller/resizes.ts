import { PIPE_SCALINGS } from "../../src/crd/names.ts";
import type { PipeScaling } from "../../src/crd/pipe-scaling.ts";
import type { ResizeStrategy } from "../../src/domain/resize-strategy.ts";
import { collectionPath, objectPath, REPLICA_SETS } from "../../src/kube/paths.ts";
import type { ReplicaSet } from "../../src/kube/workloads.ts";
import { buildProgram } from "../bundle.ts";
import { inParallel } from "../in-parallel.ts";
import { median } from "../statistics.ts";
import {
  type ClientLimits,
  DEFAULT_LIMITS,
  RAISED_LIMITS,
  restartControllerManager,
} from "./controller-manager.ts";
import { countsBetween, describeCounts, type RequestCounts, writesOf } from "./request-counts.ts";
import { RunningController } from "./running-controller.ts";
import { type Seeded, seedServices, setTier } from "./seed.ts";
import { SizeWatch } from "./size-watch.ts";
import { measureStartWithPods, type StartAmounts, type StartsWithPods } from "./start-with-pods.ts";
import { type ControllerWorld, createWorldWithPods, PIPES, quiet } from "./world.ts";

export interface ResizesAmounts {
  /** Services that are resized, with three pipes of one pod each. */
  readonly services: number;
  readonly rounds: number;
  readonly start: StartAmounts;
}

export interface Resizes {
  readonly pipes: number;
  /** One for each strategy and limits of the controller manager. */
  readonly ways: readonly Way[];
  readonly startsWithPods: StartsWithPods;
}

export interface Way {
  readonly strategy: ResizeStrategy;
  readonly limits: ClientLimits["name"];
  readonly rounds: readonly Resized[];
}

/** A resize of all pipes by one write. Times are in seconds after that write. */
export interface Resized {
  /** Until all pods of a service run the size: the median of the services, and the last one. */
  readonly podsMedian: number;
  readonly podsLast: number;
  /** Until all templates have the size. */
  readonly templates: number;
  /** Until every PipeScaling is Ready. */
  readonly ready: number;
  /** Pods that were replaced. */
  readonly replaced: number;
  /** CPU time of the controller, in seconds, until the writes end. */
  readonly cpuSeconds: number;
  readonly rssBytes: number;
  readonly counts: RequestCounts;
}

/** The timeout of a resize is this, and `MOST_MS_PER_PIPE` for each pipe. */
const TIMEOUT_MS = 300_000;
/** With the default limits, a rollout takes half a second of the Deployment controller. */
const MOST_MS_PER_PIPE = 2000;
const CONCURRENCY = 16;

/** Resizes the same pipes in place and by rollouts, with both limits of the controller manager. */
export async function measureResizes(
  { services, rounds, start }: ResizesAmounts,
  profileDir: string | undefined,
  report: (text: string) => void,
): Promise<Resizes> {
  const world = await createWorldWithPods(profileDir);
  try {
    const program = await buildProgram(world.cluster.dir);
    report(`Creating ${services} services of three pipes with a pod`);
    const seeded = await seedServices(world, { services, replicas: 1, hasPods: true });
    const ways: Way[] = [];
    for (const limits of [DEFAULT_LIMITS, RAISED_LIMITS]) {
      await restartControllerManager(world, limits);
      const measured: Record<Strategy, Resized[]> = { InPlaceOrRollout: [], Rollout: [] };
      for (let round = 1; round <= rounds; round += 1) {
        for (const strategy of STRATEGIES) {
          report(`${limits.name} limits, ${strategy}, round ${round} of ${rounds}`);
          const resized = await resize(world, seeded, program, strategy);
          report(describe(resized));
          measured[strategy].push(resized);
        }
      }
      for (const strategy of STRATEGIES)
        ways.push({ strategy, limits: limits.name, rounds: measured[strategy] });
    }
    report(`Starting with ${start.services * 3} Deployments and pods, ${start.rounds + 1} times`);
    await seedServices(world, { services: start.services - services, replicas: 1, hasPods: true });
    const startsWithPods = await measureStartWithPods(world, program, start);
    return { pipes: seeded.pipes, ways, startsWithPods };
  } finally {
    await world.admin.close();
    await world.cluster.stop();
  }
}

const STRATEGIES = ["InPlaceOrRollout", "Rollout"] as const;

type Strategy = (typeof STRATEGIES)[number];

/** Pipes grow in place and shrink by rollouts: in place, other pipes wait half a minute after the first smaller one. */
const TURNS = {
  InPlaceOrRollout: { tier: "scale", from: 1, to: 2 },
  Rollout: { tier: "basic", from: 2, to: 1 },
} as const;

async function resize(
  world: ControllerWorld,
  seeded: Seeded,
  program: string,
  strategy: Strategy,
): Promise<Resized> {
  const { tier, from, to } = TURNS[strategy];
  const services = seeded.serviceIds.length;
  const watch = await SizeWatch.start(world);
  const controller = await RunningController.start(world, program, strategy);
  const { process } = controller;
  try {
    const timeoutMs = TIMEOUT_MS + seeded.pipes * MOST_MS_PER_PIPE;
    const all = (kind: Pick<SizeWatch["pods"], "haveSize">) =>
      kind.haveSize(services, timeoutMs, process.signal);
    watch.expect(from);
    await Promise.all([all(watch.pods), all(watch.templates), all(watch.ready)]);
    await deleteEmptyReplicaSets(world);
    const before = await quiet(world);
    const podsBefore = watch.pods.uids();
    const cpuBefore = await process.cpuSeconds();
    watch.expect(to);
    const startedAtMs = Date.now();
    await setTier(world, seeded, tier);
    const [pods, templates, ready] = await Promise.all([
      all(watch.pods),
      all(watch.templates),
      all(watch.ready),
    ]);
    const counts = countsBetween(before, await quiet(world));
    const cpuSeconds = (await process.cpuSeconds()) - cpuBefore;
    const seconds = (atMs: number | undefined) => ((atMs ?? Number.NaN) - startedAtMs) / 1000;
    const podsAfter = watch.pods.uids();
    await checkMethod(world, seeded, strategy);
    return {
      podsMedian: seconds(median(pods)),
      podsLast: seconds(pods.at(-1)),
      templates: seconds(templates.at(-1)),
      ready: seconds(ready.at(-1)),
      replaced: [...podsBefore].filter((uid) => !podsAfter.has(uid)).length,
      cpuSeconds,
      rssBytes: await process.rssBytes(),
      counts,
    };
  } finally {
    watch.stop();
    await controller.stop();
  }
}

function describe(resized: Resized): string {
  const { podsMedian, podsLast, templates, ready, replaced, cpuSeconds, rssBytes, counts } = resized;
  return [
    `  pods ${podsMedian.toFixed(2)} s, ${podsLast.toFixed(2)} s; templates ${templates.toFixed(1)} s; Ready ${ready.toFixed(1)} s`,
    `  ${replaced} pods replaced; CPU ${cpuSeconds.toFixed(2)} s; RSS ${(rssBytes / 1e6).toFixed(0)} MB`,
    `  ${describeCounts(writesOf(counts))}`,
  ].join("\n");
}

/** Deletes ReplicaSets without pods. A later resize in place would have to delete those with its size first. */
async function deleteEmptyReplicaSets({ admin }: ControllerWorld): Promise<void> {
  const path = collectionPath(REPLICA_SETS, PIPES);
  const { items } = await admin.json<{ readonly items: readonly ReplicaSet[] }>({
    path,
    timeoutMs: TIMEOUT_MS,
  });
  const empty = items.filter(({ spec, status }) => spec.replicas === 0 && status?.replicas === 0);
  await inParallel(CONCURRENCY, empty, ({ metadata: { name } }) =>
    admin.json({ method: "DELETE", path: objectPath(REPLICA_SETS, PIPES, name) }),
  );
}

/** @throws Error if a pipe was resized by another method, because then the figures mean something else */
async function checkMethod({ admin }: ControllerWorld, { pipes }: Seeded, strategy: Strategy): Promise<void> {
  const path = collectionPath(PIPE_SCALINGS, PIPES);
  const { items } = await admin.json<{ readonly items: readonly PipeScaling[] }>({
    path,
    timeoutMs: TIMEOUT_MS,
  });
  const inPlace = items.reduce((sum, { status }) => sum + (status?.pipes?.inPlace ?? 0), 0);
  const expected = strategy === "Rollout" ? 0 : pipes;
  if (inPlace === expected) return;
  const fallbacks = items.flatMap(({ status }) => status?.pipes?.fallbacks ?? []);
  throw new Error(`${inPlace} of ${pipes} pipes were resized in place: ${JSON.stringify(fallbacks[0])}`);
}
