import { count, mebibytes, milliseconds, yesNo } from "../format.ts";
import { isMet } from "../measure.ts";
import { percentile } from "../statistics.ts";
import { table } from "../table.ts";
import type { AttackMemory } from "./attack-memory.ts";
import type { AttackDone } from "./attacker.ts";
import type { HealthyResult } from "./healthy-client.ts";
import type { ProbeResult } from "./prober.ts";

const MAX_SLOWEST_MS = 250;
const MAX_RSS_RATIO = 1.2;
/** Less than the limit of the container, 256 MiB, which also counts the buffers of the kernel. */
const MAX_RSS_MIB = 220;

export interface SoakResult {
  readonly quiet: HealthyResult;
  readonly client: HealthyResult;
  readonly probes: ProbeResult;
  readonly short: AttackMemory;
  readonly memory: AttackMemory;
  readonly drops: number;
  readonly attack: AttackDone;
}

export function soakTable({ quiet, client, probes, short, memory, drops, attack }: SoakResult): string {
  const slowest = Math.max(...client.ms);
  const highest = Math.max(short.highest, memory.highest);
  const growthAfterMinute = memory.after / short.after;
  const rows = [
    ["healthy client: requests", count(client.ms.length)],
    ["healthy client: failed requests", ...failures(client)],
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
    ["probes", count(probes.ms.length)],
    ["probes: failed", ...failures(probes)],
    ["probes: slowest response", milliseconds(Math.max(...probes.ms))],
    ["RSS before", mebibytes(short.before)],
    ["RSS after a minute of the attack", mebibytes(short.after)],
    ["RSS, highest", mebibytes(highest), `≤ ${MAX_RSS_MIB} MiB`, yesNo(highest <= MAX_RSS_MIB * 2 ** 20)],
    ["RSS after", mebibytes(memory.after)],
    ["RSS after, against after a minute", growthAfterMinute.toFixed(2), ...growthTarget(growthAfterMinute)],
    ["connections dropped at the limits", count(drops)],
    ...Object.entries(attack.connections).map(([name, made]) => [`attack: ${name}`, count(made)]),
    ...Object.entries(attack.unexpected).map(([what, times]) => [`unexpected: ${what}`, count(times)]),
  ];
  return table(["measure", "measured", "target", "met"], rows);
}

function failures({ failures }: Pick<ProbeResult, "failures">): string[] {
  const reasons = [...new Set(failures)].join(", ");
  return [`${count(failures.length)}${reasons && ` (${reasons})`}`, "0", yesNo(failures.length === 0)];
}

function growthTarget(growth: number): string[] {
  return [`≤ ${MAX_RSS_RATIO.toFixed(2)}`, yesNo(isMet({ relation: "≤", ratio: MAX_RSS_RATIO }, growth))];
}
