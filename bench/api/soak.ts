import { MEMORY_LIMIT_MIB } from "../../deploy/chart/values.ts";
import { buildProgram } from "../bundle.ts";
import { count, mebibytes, milliseconds, yesNo } from "../format.ts";
import { describeMachine } from "../machine.ts";
import { isMet } from "../measure.ts";
import { percentile } from "../statistics.ts";
import { table } from "../table.ts";
import { type AttackMemory, measureAttackMemory } from "./attack-memory.ts";
import type { AttackDone, AttackJob } from "./attacker.ts";
import { startAttacker } from "./attacker-process.ts";
import { type HealthyResult, runHealthyClient } from "./healthy-client.ts";
import { DEFAULT_LIMITS, startApi } from "./server.ts";
import { createApiWorld } from "./world.ts";

export interface SoakOptions {
  readonly minutes: number;
  /** Reports progress. */
  readonly report: (text: string) => void;
}

const MAX_SLOWEST_MS = 250;
const MAX_RSS_RATIO = 1.2;
const MAX_RSS_MIB = MEMORY_LIMIT_MIB.api;
/** A run without the attack, which measures how busy the machine is. */
const QUIET_MS = 30_000;
/**
 * A short attack before the long one. RSS grows once with the largest number of connections and bodies. Growth during
 * the long attack would be a leak.
 */
const SHORT_MS = 60_000;

/** Runs all attacks together while a healthy client uses the API, and prints a table. */
export async function soak({ minutes, report }: SoakOptions): Promise<void> {
  const about = [describeMachine(), new Date().toISOString(), `${minutes} minutes`];
  report("Starting a cluster with records");
  const world = await createApiWorld();
  try {
    const program = await buildProgram(world.cluster.dir);
    const api = await startApi(world, program, DEFAULT_LIMITS);
    const attacker = startAttacker(world.cluster);
    const [{ path }, { path: attacked }] = world.services;
    const [authorization = "", attackersKey = ""] = world.authorizations;
    const healthy = { path, authorization };
    const job: AttackJob = {
      url: api.url,
      target: { path: attacked, authorization: attackersKey },
      attacks: ["chunks", "idle", "bodies", "patches", "syntax", "pipelining"],
      ms: minutes * 60_000,
    };
    report("Measuring the healthy client without an attack");
    const quiet = await runHealthyClient(api.url, healthy, QUIET_MS);
    report("Attacking the API for a minute");
    const { memory: short } = await measureAttackMemory(api, () => attacker.run({ ...job, ms: SHORT_MS }));
    report(`Attacking the API for ${minutes} minutes`);
    const dropsBefore = await api.metric("pipe_scaling_connections_dropped_total");
    const { memory, result } = await measureAttackMemory(api, () =>
      Promise.all([runHealthyClient(api.url, healthy, job.ms), attacker.run(job)]),
    );
    const drops = (await api.metric("pipe_scaling_connections_dropped_total")) - dropsBefore;
    await api.stop();
    const [client, attack] = result;
    console.log(`${soakTable({ quiet, client, short, memory, drops, attack })}\n\n${about.join("; ")}`);
  } finally {
    // Also ends the processes of the benchmark (child.ts).
    await world.cluster.stop();
  }
}

interface SoakResult {
  readonly quiet: HealthyResult;
  readonly client: HealthyResult;
  readonly short: AttackMemory;
  readonly memory: AttackMemory;
  readonly drops: number;
  readonly attack: AttackDone;
}

function soakTable({ quiet, client, short, memory, drops, attack }: SoakResult): string {
  const slowest = Math.max(...client.ms);
  const highest = Math.max(short.highest, memory.highest);
  const growth = memory.after / short.before;
  const growthAfterMinute = memory.after / short.after;
  const failures = [...new Set(client.failures)].join(", ");
  const rows = [
    ["healthy client: requests", count(client.ms.length)],
    [
      "healthy client: failed requests",
      `${count(client.failures.length)}${failures && ` (${failures})`}`,
      "0",
      yesNo(client.failures.length === 0),
    ],
    [
      "healthy client: slowest response",
      milliseconds(slowest),
      `≤ ${MAX_SLOWEST_MS} ms`,
      yesNo(slowest <= MAX_SLOWEST_MS),
    ],
    ["healthy client: 99th percentile", milliseconds(percentile(client.ms, 0.99))],
    ["healthy client: median", milliseconds(percentile(client.ms, 0.5))],
    ["before the attack: slowest response", milliseconds(Math.max(...quiet.ms))],
    ["before the attack: median", milliseconds(percentile(quiet.ms, 0.5))],
    ["RSS before", mebibytes(short.before)],
    ["RSS after a minute of the attack", mebibytes(short.after)],
    ["RSS, highest", mebibytes(highest), `≤ ${MAX_RSS_MIB} MiB`, yesNo(highest <= MAX_RSS_MIB * 2 ** 20)],
    ["RSS after", mebibytes(memory.after)],
    ["RSS after, against before", growth.toFixed(2), ...growthTarget(growth)],
    ["RSS after, against after a minute", growthAfterMinute.toFixed(2), ...growthTarget(growthAfterMinute)],
    ["connections dropped at the limits", count(drops)],
    ...Object.entries(attack.connections).map(([name, made]) => [`attack: ${name}`, count(made)]),
    ...Object.entries(attack.unexpected).map(([what, times]) => [`unexpected: ${what}`, count(times)]),
  ];
  return table(["measure", "measured", "target", "met"], rows);
}

function growthTarget(growth: number): string[] {
  return [`≤ ${MAX_RSS_RATIO.toFixed(2)}`, yesNo(isMet({ relation: "≤", ratio: MAX_RSS_RATIO }, growth))];
}
