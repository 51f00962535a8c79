import { fileURLToPath } from "node:url";
import { buildLikewise, buildProgram } from "../bundle.ts";
import { count, mebibytes } from "../format.ts";
import { describeMachine } from "../machine.ts";
import { type Measure, measuresTable } from "../measure.ts";
import { compare } from "../statistics.ts";
import { measureAttackMemory } from "./attack-memory.ts";
import { type Attacker, startAttacker } from "./attacker-process.ts";
import type { AttackName } from "./attacks.ts";
import { type LoadGenerator, startLoadGenerator } from "./load-generator.ts";
import { measureMemory } from "./memory.ts";
import { measurePatch } from "./patch.ts";
import { type Api, DEFAULT_LIMITS, type Server, startApi, startBaseline } from "./server.ts";
import { measureApiStart, seedRecords } from "./start.ts";
import { measureThroughput } from "./throughput.ts";
import { type ApiWorld, createApiWorld } from "./world.ts";

interface Extent {
  readonly throughput: { readonly rounds: number; readonly roundMs: number };
  readonly patch: { readonly rounds: number; readonly calls: number };
  readonly memory: { readonly early: number; readonly late: number };
  readonly attackMs: number;
  readonly start: { readonly records: number; readonly rounds: number };
}

const FULL: Extent = {
  throughput: { rounds: 7, roundMs: 4000 },
  patch: { rounds: 5, calls: 300 },
  memory: { early: 10_000, late: 1_000_000 },
  attackMs: 30_000,
  start: { records: 20_000, rounds: 3 },
};

const QUICK: Extent = {
  throughput: { rounds: 3, roundMs: 1000 },
  patch: { rounds: 3, calls: 100 },
  memory: { early: 10_000, late: 50_000 },
  attackMs: 5000,
  start: { records: 1000, rounds: 1 },
};

export interface BenchOptions {
  readonly quick: boolean;
  /** Reports progress. */
  readonly report: (text: string) => void;
}

/** Measures the API against its targets (docs/benchmarks.md), and prints the table. */
export async function benchApi({ quick, report }: BenchOptions): Promise<void> {
  const about = [
    describeMachine(),
    new Date().toISOString(),
    ...(quick ? ["a quick run, not to quote"] : []),
  ];
  const extent = quick ? QUICK : FULL;
  report("Starting a cluster with records");
  const world = await createApiWorld();
  try {
    const program = await buildProgram(world.cluster.dir);
    const load = startLoadGenerator(world.cluster);
    const api = await startApi(world, program);
    report("Measuring a cached GET");
    const get = await cachedGet(world, api, load, extent);
    report("Measuring a PATCH");
    const patch = await patchTime(world, api, extent);
    await api.stop();
    report(`Measuring the memory of a new API process over ${count(extent.memory.late)} requests`);
    const memory = await memoryGrowth(world, await startApi(world, program), load, extent);
    const attacker = startAttacker(world.cluster);
    const attacks: Measure[] = [];
    for (const name of ["chunks", "idle"] as const) {
      report(`Measuring the memory of a new API process during an attack: ${ATTACKS[name]}`);
      attacks.push(
        ...(await attackMemory(
          name,
          world,
          await startApi(world, program, DEFAULT_LIMITS),
          attacker,
          extent,
        )),
      );
    }
    const { records } = extent.start;
    report(`Creating ${count(records)} keys and ${count(records)} services`);
    await seedRecords(world, records);
    report("Starting the API");
    const starts = await apiStart(world, program, extent);
    console.log(
      `${measuresTable([...get, ...patch, ...memory, ...attacks, ...starts])}\n\n${about.join("; ")}`,
    );
  } finally {
    // Also ends the processes of the benchmark (child.ts).
    await world.cluster.stop();
  }
}

const BASELINES = [
  { name: "bare", what: "bare express", ratio: 0.8 },
  { name: "libraries", what: "express with the same features from libraries", ratio: 1.5 },
] as const;

/** The GET that clients poll until the rescale completes. */
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
  const callers = { authorizations, paths: [path], strangerEach: 0 };
  const measures: Measure[] = [];
  for (const { name, what, ratio } of BASELINES) {
    const baseline = await startBaseline(world, name, path, constant);
    const measured = await measureThroughput({ ours, baseline }, callers, load, extent.throughput);
    await baseline.stop();
    measures.push(
      {
        what: `cached GET, requests per second, against ${what}`,
        comparison: compare(measured.requestsPerSecond),
        bar: { relation: "≥", ratio },
        format: count,
      },
      {
        what: `cached GET, CPU time of a request, against ${what}`,
        comparison: compare(measured.cpuSecondsPerRequest),
        format: (seconds) => `${(seconds * 1e6).toFixed(1)} µs`,
      },
    );
  }
  return measures;
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

async function apiStart(
  world: ApiWorld,
  api: string,
  { start: { records, rounds } }: Extent,
): Promise<Measure[]> {
  const lists = await buildLikewise(
    fileURLToPath(new URL("../lists.ts", import.meta.url)),
    world.cluster.dir,
  );
  const { ms, rssBytes } = await measureApiStart(world, { api, lists }, rounds);
  const what = `${count(records)} keys and as many services`;
  const memoryBar = 100e6 + 3000 * records;
  return [
    {
      what: `start with ${what}, from spawn to ready`,
      comparison: compare(ms),
      bar: { relation: "≤", ratio: 0.7 },
      format: (value) => `${count(Math.round(value))} ms`,
    },
    {
      what: `RSS with ${what}, against 100 MB + 1.5 KB for each of both`,
      comparison: compare(rssBytes.map((ours) => ({ ours, baseline: memoryBar }))),
      bar: { relation: "≤", ratio: 1 },
      format: mebibytes,
    },
  ];
}

/** Label in the table for the attacks during which memory is measured. */
const ATTACKS = {
  chunks: "10 bodies at a time in chunks of one byte",
  idle: "1,250 connections without credentials",
} as const satisfies Partial<Record<AttackName, string>>;

async function attackMemory(
  name: keyof typeof ATTACKS,
  { services: [, { path }], authorizations: [authorization = ""] }: ApiWorld,
  api: Api,
  attacker: Attacker,
  { attackMs }: Extent,
): Promise<Measure[]> {
  const { url, opsUrl } = api;
  const job = { url, opsUrl, target: { path, authorization }, attacks: [name], ms: attackMs };
  const { memory } = await measureAttackMemory(api, () => attacker.run(job));
  await api.stop();
  const against = `RSS against before: ${ATTACKS[name]}`;
  return [
    {
      what: `${against}, highest`,
      comparison: compare([{ ours: memory.highest, baseline: memory.before }]),
      format: mebibytes,
    },
    {
      what: `${against}, after`,
      comparison: compare([{ ours: memory.after, baseline: memory.before }]),
      bar: { relation: "≤", ratio: 1.2 },
      format: mebibytes,
    },
  ];
}
