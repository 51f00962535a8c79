import { setTimeout as delay } from "node:timers/promises";
import type { LoadGenerator } from "./load-generator.ts";
import type { Callers } from "./requests.ts";
import type { Memory, Server } from "./server.ts";

/** Longer than two windows of the limits of the API, after which a request removes the counts of other clients. */
const SETTLE_MS = 3000;

export interface MemoryOptions {
  readonly early: number;
  readonly late: number;
}

/** Measures the memory of a new API process after each of these numbers of requests. */
export async function measureMemory(
  api: Server,
  callers: Callers,
  load: LoadGenerator,
  { early, late }: MemoryOptions,
): Promise<{ readonly early: Memory; readonly late: Memory }> {
  const after = async (requests: number): Promise<Memory> => {
    await load.run({ url: api.url, callers, mostRequests: requests });
    await delay(SETTLE_MS);
    return api.memory();
  };
  const first = await after(early);
  return { early: first, late: await after(late - early) };
}
