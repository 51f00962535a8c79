import type { Pair } from "../statistics.ts";
import type { LoadGenerator } from "./load-generator.ts";
import type { Callers } from "./requests.ts";
import type { Server } from "./server.ts";

export interface ThroughputOptions {
  readonly rounds: number;
  readonly roundMs: number;
}

/** Results by round. */
export interface Throughput {
  readonly requestsPerSecond: readonly Pair[];
  readonly cpuSecondsPerRequest: readonly Pair[];
}

/** Sends the same requests to both servers in turns, as fast as they respond. The first round is a warm-up. */
export async function measureThroughput(
  servers: { readonly ours: Server; readonly baseline: Server },
  callers: Callers,
  load: LoadGenerator,
  { rounds, roundMs }: ThroughputOptions,
): Promise<Throughput> {
  const send = async (server: Server) => {
    const before = await server.cpuSeconds();
    const { requests, seconds, statuses } = await load.run({ url: server.url, callers, mostMs: roundMs });
    if (statuses[200] !== requests) throw new Error(`not all was answered 200: ${JSON.stringify(statuses)}`);
    return { perSecond: requests / seconds, cpu: ((await server.cpuSeconds()) - before) / requests };
  };
  const requestsPerSecond: Pair[] = [];
  const cpuSecondsPerRequest: Pair[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    // The order alternates, so that a drift over time favors neither.
    const oursFirst = round % 2 === 0;
    const first = await send(oursFirst ? servers.ours : servers.baseline);
    const second = await send(oursFirst ? servers.baseline : servers.ours);
    if (round === 0) continue;
    const [ours, baseline] = oursFirst ? [first, second] : [second, first];
    requestsPerSecond.push({ ours: ours.perSecond, baseline: baseline.perSecond });
    cpuSecondsPerRequest.push({ ours: ours.cpu, baseline: baseline.cpu });
  }
  return { requestsPerSecond, cpuSecondsPerRequest };
}
