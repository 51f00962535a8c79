import { type Measure, measuresTable } from "../measure.ts";
import { compare, type Pair } from "../statistics.ts";
import type { Burst } from "./burst.ts";
import { type Count, countsTable } from "./counts-table.ts";
import type { Idle } from "./idle.ts";
import { type RequestCounts, requestsOf, sumOf, writesOf } from "./request-counts.ts";
import type { RescaleRounds } from "./rescale.ts";
import { PIPES_PER_SERVICE } from "./seed.ts";
import type { Starts } from "./start.ts";

export interface Results {
  /** Services that are rescaled together, without pacing. */
  readonly services: number;
  readonly rescale: RescaleRounds;
  /** Services that are rescaled with pacing. */
  readonly paced: { readonly services: number; readonly counts: RequestCounts };
  readonly bursts: readonly Burst[];
  /** Deployments that the controller watches in the measurements of its start. */
  readonly deployments: number;
  readonly starts: Starts;
  readonly idle: Idle;
}

/** Formats two tables: ratios to the baselines, and counts of requests. */
export function describeResults(results: Results): string {
  return [
    measuresTable(measuresOf(results)),
    countsTable(countsOf(results)),
    ...results.bursts.map(describeBurst),
  ].join("\n\n");
}

function measuresOf({ services, rescale, deployments, starts, idle }: Results): Measure[] {
  const all = `${grouped(services)} services of ${PIPES_PER_SERVICE} pipes at once`;
  const memoryBar = 100e6 + 1500 * deployments;
  return [
    {
      what: `${all}, time until every pipe has its size`,
      comparison: compare(rescale.seconds),
      bar: { relation: "≤", ratio: 1.05 },
      format: seconds,
    },
    {
      what: `${all}, CPU time`,
      comparison: compare(rescale.cpuSeconds),
      bar: { relation: "≤", ratio: 1 },
      format: seconds,
    },
    {
      what: `${all}, CPU time of 1,000 writes`,
      comparison: compare(per1000Writes(rescale)),
      format: seconds,
    },
    {
      what: `startup with ${grouped(deployments)} Deployments, from spawn to synced`,
      comparison: compare(starts.ms),
      bar: { relation: "≤", ratio: 0.7 },
      format: (ms) => `${grouped(Math.round(ms))} ms`,
    },
    {
      what: `RSS with ${grouped(deployments)} Deployments, against 100 MB + 1.5 KB each`,
      comparison: compare(starts.rssBytes.map((ours) => ({ ours, baseline: memoryBar }))),
      bar: { relation: "≤", ratio: 1 },
      format: megabytes,
    },
    {
      what: `CPU of a controller that is idle for ${idle.minutes} minutes, with its Lease, against 0.3 % of a core`,
      comparison: compare([{ ours: idle.cpuShare, baseline: IDLE_CPU_SHARE }]),
      bar: { relation: "≤", ratio: 1 },
      format: percent,
    },
  ];
}

const IDLE_CPU_SHARE = 0.003;

/** Returns the CPU time of 1,000 writes, which is comparable between runs with different numbers of services. */
function per1000Writes({ cpuSeconds, ours, baseline }: RescaleRounds): Pair[] {
  const writesIn = (counts: RequestCounts | undefined) => sumOf(writesOf(counts ?? new Map()));
  return cpuSeconds.map((pair, round) => ({
    ours: (pair.ours / writesIn(ours[round])) * 1000,
    baseline: (pair.baseline / writesIn(baseline[round])) * 1000,
  }));
}

/** Returns the rows of the counts. With several rounds, the one with the most writes counts. */
function countsOf({ services, rescale, paced, bursts, starts, idle }: Results): Count[] {
  const ours = most(rescale.ours);
  const [burst] = bursts.toSorted((a, b) => writesIn10Seconds(b) - writesIn10Seconds(a));
  const started = writesOf(most(starts.counts));
  const idleWrites = writesOf(idle.counts);
  return [
    {
      what: "writes per service, without pacing",
      measured: sumOf(scalingWrites(ours)) / services,
      most: PIPES_PER_SERVICE + 1,
      counts: scalingWrites(ours),
    },
    {
      what: "writes per service, baseline",
      measured: sumOf(scalingWrites(most(rescale.baseline))) / services,
      counts: scalingWrites(most(rescale.baseline)),
    },
    {
      what: "writes per service, with pacing, without its Event",
      measured: sumOf(requestsOf(scalingWrites(paced.counts), WITHOUT_EVENTS)) / paced.services,
      most: PIPES_PER_SERVICE + 2,
      counts: scalingWrites(paced.counts),
    },
    {
      what: "writes for 1,000 PATCHes of a service, per 10 s",
      measured: burst ? writesIn10Seconds(burst) : Number.NaN,
      most: 450,
      counts: burst ? writesOfController(burst) : new Map(),
    },
    { what: "writes at startup with nothing to do", measured: sumOf(started), most: 0, counts: started },
    {
      what: `writes in ${idle.minutes} idle minutes`,
      measured: sumOf(idleWrites),
      most: 0,
      counts: idleWrites,
    },
    {
      what: `other calls per idle hour and watch, extrapolated from ${idle.minutes} minutes`,
      measured: idle.callsPerHourAndWatch,
      most: 8,
      counts: idle.watching,
    },
  ];
}

const WITHOUT_EVENTS = ["deployments", "pipescalings"];
const CONTROLLERS = [...WITHOUT_EVENTS, "events"];

function most(rounds: readonly RequestCounts[]): RequestCounts {
  const [first = new Map<string, number>()] = rounds.toSorted(
    (a, b) => sumOf(writesOf(b)) - sumOf(writesOf(a)),
  );
  return first;
}

/** Without the change of the tier, which the benchmark itself makes. */
function scalingWrites(counts: RequestCounts): RequestCounts {
  return requestsOf(writesOf(counts), CONTROLLERS);
}

/** Without the PATCHes of the benchmark. */
function writesOfController({ counts }: Burst): RequestCounts {
  return new Map([...scalingWrites(counts)].filter(([request]) => request !== "APPLY pipescalings"));
}

/** On a busy machine, 1,000 PATCHes take more than 10 s, in which the controller also writes more. */
function writesIn10Seconds(burst: Burst): number {
  return Math.round((sumOf(writesOfController(burst)) / Math.max(10, burst.seconds)) * 10);
}

function describeBurst({ firstMs, seconds: took, lastWon }: Burst): string {
  const won = lastWon ? "the last one won" : "the last one did NOT win";
  return `Burst: sent in ${took.toFixed(1)} s; the first size was applied after ${firstMs} ms; ${won}.`;
}

function seconds(value: number): string {
  return `${value.toFixed(2)} s`;
}

function grouped(value: number): string {
  return value.toLocaleString("en");
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(0)} MB`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`;
}
