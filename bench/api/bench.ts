import { buildProgram } from "../bundle.ts";
import { describeMachine } from "../machine.ts";
import { type Measure, measuresTable } from "../measure.ts";
import { compare } from "../statistics.ts";
import { LoadGenerator } from "./load-generator.ts";
import { measureMemory } from "./memory.ts";
import { measurePatch } from "./patch.ts";
import { type Server, startApi, startBaseline } from "./server.ts";
import { measureThroughput } from "./throughput.ts";
import { type ApiWorld, createApiWorld } from "./world.ts";

interface Extent {
  readonly throughput: { readonly rounds: number; readonly roundMs: number };
  readonly patch: { readonly rounds: number; readonly calls: number };
  readonly memory: { readonly early: number; readonly late: number };
}

const FULL: Extent = {
  throughput: { rounds: 7, roundMs: 4000 },
  patch: { rounds: 5, calls: 300 },
  memory: { early: 10_000, late: 1_000_000 },
};

const QUICK: Extent = {
  throughput: { rounds: 3, roundMs: 1000 },
  patch: { rounds: 3, calls: 100 },
  memory: { early: 10_000, late: 50_000 },
};

export interface BenchOptions {
  readonly quick: boolean;
  /** Hears what is being done. */
  readonly tell: (text: string) => void;
}

/** Measures the API against the bars of the design, and prints the table. */
export async function benchApi({ quick, tell }: BenchOptions): Promise<void> {
  const about = [
    describeMachine(),
    new Date().toISOString(),
    ...(quick ? ["a quick run, not to quote"] : []),
  ];
  const extent = quick ? QUICK : FULL;
  tell("Starting a cluster with what the API reads");
  const world = await createApiWorld();
  try {
    const program = await buildProgram(world.cluster.dir);
    const load = new LoadGenerator(world.cluster);
    const api = await startApi(world, program);
    tell("Measuring a cached GET");
    const get = await cachedGet(world, api, load, extent);
    tell("Measuring a PATCH");
    const patch = await patchTime(world, api, extent);
    await api.stop();
    tell(`Measuring the memory of a fresh API, for ${count(extent.memory.late)} requests`);
    const memory = await memoryGrowth(world, await startApi(world, program), load, extent);
    console.log(`${measuresTable([...get, ...patch, ...memory])}\n\n${about.join("; ")}`);
  } finally {
    // Takes along what runs beside it (child.ts).
    await world.cluster.stop();
  }
}

/** The GET that clients poll until it shows what they asked for. */
async function cachedGet(
  world: ApiWorld,
  ours: Server,
  load: LoadGenerator,
  extent: Extent,
): Promise<Measure[]> {
  const [{ path }] = world.services;
  const { authorizations } = world;
  const [authorization = ""] = authorizations;
  const constant = await (await fetch(ours.url + path, { headers: { authorization } })).text();
  const baseline = await startBaseline(world, path, constant);
  const callers = { authorizations, paths: [path], strangerEach: 0 };
  const measured = await measureThroughput({ ours, baseline }, callers, load, extent.throughput);
  await baseline.stop();
  return [
    {
      what: "cached GET, requests per second",
      comparison: compare(measured.requestsPerSecond),
      bar: { relation: "≥", ratio: 0.9 },
      format: count,
    },
    {
      what: "cached GET, CPU time of a request",
      comparison: compare(measured.cpuSecondsPerRequest),
      format: (seconds) => `${(seconds * 1e6).toFixed(1)} µs`,
    },
  ];
}

async function patchTime(world: ApiWorld, api: Server, { patch }: Extent): Promise<Measure[]> {
  return [
    {
      what: "PATCH p50, one at a time",
      comparison: compare(await measurePatch(world, api, patch)),
      bar: { relation: "≤", ratio: 1.2 },
      format: (ms) => `${ms.toFixed(2)} ms`,
    },
  ];
}

async function memoryGrowth(
  { authorizations, paths }: ApiWorld,
  api: Server,
  load: LoadGenerator,
  extent: Extent,
): Promise<Measure[]> {
  const callers = { authorizations, paths, strangerEach: 10 };
  const { early, late } = await measureMemory(api, callers, load, extent.memory);
  const requests = `after ${count(extent.memory.late)} requests, against ${count(extent.memory.early)}`;
  const grown = { bar: { relation: "≤", ratio: 1.1 }, format: mebibytes } as const;
  return [
    {
      what: `live heap ${requests}`,
      comparison: compare([{ ours: late.heapBytes, baseline: early.heapBytes }]),
      ...grown,
    },
    {
      what: `RSS ${requests}`,
      comparison: compare([{ ours: late.rssBytes, baseline: early.rssBytes }]),
      ...grown,
    },
  ];
}

function count(value: number): string {
  return Math.round(value).toLocaleString("en");
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
