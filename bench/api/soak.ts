import { buildProgram } from "../bundle.ts";
import { describeMachine } from "../machine.ts";
import { measureAttackMemory } from "./attack-memory.ts";
import type { AttackJob } from "./attacker.ts";
import { type Attacker, startAttacker } from "./attacker-process.ts";
import { runHealthyClient } from "./healthy-client.ts";
import { runProber } from "./prober.ts";
import { DEFAULT_LIMITS, startApi, tlsFlags } from "./server.ts";
import { type SoakResult, soakTable } from "./soak-table.ts";
import { type ApiWorld, addHostileRecord, createApiWorld } from "./world.ts";

export interface SoakOptions {
  readonly minutes: number;
  /** Reports progress. */
  readonly report: (text: string) => void;
}

/** A run without the attack, which measures how busy the machine is. */
const QUIET_MS = 30_000;
/**
 * A short attack before the long one. RSS grows once with the largest number of connections and bodies. Growth during
 * the long attack would be a leak.
 */
const SHORT_MS = 60_000;

const ALL_ATTACKS: AttackJob["attacks"] = [
  ...(["chunks", "idle", "bodies", "patches", "syntax", "pipelining"] as const),
  ...(["pages", "pipelinedPages"] as const),
  ...(["operations", "scrapes"] as const),
];

/** Runs all attacks together while a healthy client uses the API, over TLS and then plain HTTP. Prints two tables. */
export async function soak({ minutes, report }: SoakOptions): Promise<void> {
  const about = [describeMachine(), new Date().toISOString(), `${minutes} minutes each`];
  report("Starting a cluster with records");
  const world = await createApiWorld();
  try {
    await addHostileRecord(world);
    const program = await buildProgram(world.cluster.dir);
    const attacker = startAttacker(world.cluster);
    for (const protocol of ["TLS", "plain HTTP"] as const) {
      const flags = protocol === "TLS" ? tlsFlags(world) : [];
      const result = await attackApi({ world, program, flags, attacker, minutes }, (text) =>
        report(`${protocol}: ${text}`),
      );
      console.log(`${protocol}\n\n${soakTable(result)}\n`);
    }
    console.log(about.join("; "));
  } finally {
    // Also ends the processes of the benchmark (child.ts).
    await world.cluster.stop();
  }
}

interface Attacked {
  readonly world: ApiWorld;
  readonly program: string;
  readonly flags: readonly string[];
  readonly attacker: Attacker;
  readonly minutes: number;
}

async function attackApi(
  { world, program, flags, attacker, minutes }: Attacked,
  report: SoakOptions["report"],
): Promise<SoakResult> {
  const api = await startApi(world, program, [...DEFAULT_LIMITS, ...flags]);
  const { url, opsUrl } = api;
  const [{ path }, { path: attacked }] = world.services;
  const [authorization = "", attackersKey = ""] = world.authorizations;
  const healthy = { path, authorization };
  const target = { path: attacked, authorization: attackersKey };
  const job: AttackJob = { url, opsUrl, target, attacks: ALL_ATTACKS, ms: minutes * 60_000 };
  report("measuring the healthy client without an attack");
  const quiet = await runHealthyClient(url, healthy, QUIET_MS);
  report("attacking the API for a minute");
  const { memory: short } = await measureAttackMemory(api, () => attacker.run({ ...job, ms: SHORT_MS }));
  report(`attacking the API for ${minutes} minutes`);
  const dropsBefore = await api.metric("pipe_scaling_connections_dropped_total");
  const { memory, result } = await measureAttackMemory(api, () =>
    Promise.all([runHealthyClient(url, healthy, job.ms), runProber(opsUrl, job.ms), attacker.run(job)]),
  );
  const drops = (await api.metric("pipe_scaling_connections_dropped_total")) - dropsBefore;
  await api.stop();
  const [client, probes, attack] = result;
  return { quiet, client, probes, short, memory, drops, attack };
}
