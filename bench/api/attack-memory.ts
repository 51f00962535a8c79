import { setTimeout as delay } from "node:timers/promises";
import type { Server } from "./server.ts";

/** Interval at which RSS is read during an attack. */
const SAMPLE_MS = 250;

/** Longer than a window of the default limits, and than the header timeout. */
const SETTLE_MS = 12_000;

/** RSS of the API around an attack, in bytes. */
export interface AttackMemory {
  readonly before: number;
  readonly highest: number;
  readonly after: number;
}

/** Reads the memory of the API before, during and after an attack. */
export async function measureAttackMemory<T>(
  api: Server,
  attack: () => Promise<T>,
): Promise<{ readonly memory: AttackMemory; readonly result: T }> {
  const { rssBytes: before } = await api.memory();
  const ended = new AbortController();
  const highest = sampleHighest(api, ended.signal);
  try {
    const result = await attack();
    ended.abort();
    await delay(SETTLE_MS);
    const { rssBytes: after } = await api.memory();
    return { memory: { before, highest: await highest, after }, result };
  } finally {
    ended.abort();
  }
}

async function sampleHighest(api: Server, signal: AbortSignal): Promise<number> {
  let highest = 0;
  while (!signal.aborted) {
    highest = Math.max(highest, await api.rssBytes());
    await delay(SAMPLE_MS, undefined, { signal }).catch(() => undefined);
  }
  return highest;
}
