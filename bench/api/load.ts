import { Connection } from "./connection.ts";
import { type Callers, requestsOf } from "./requests.ts";

/**
 * The load generator, a process of its own: it is sent jobs, and answers each with what came of it.
 */

export interface Job {
  readonly url: string;
  readonly callers: Callers;
  /** When it is enough: whichever comes first. */
  readonly mostMs?: number;
  readonly mostRequests?: number;
}

export interface JobDone {
  readonly requests: number;
  readonly seconds: number;
  /** How often each status came. */
  readonly statuses: Readonly<Record<string, number>>;
}

/** More than enough to keep a server of one thread busy. */
const CONNECTIONS = 32;

async function run({ url, callers, mostMs = Infinity, mostRequests = Infinity }: Job): Promise<JobDone> {
  const next = requestsOf(callers);
  const statuses: Record<string, number> = {};
  let requests = 0;
  const connections = await Promise.all(Array.from({ length: CONNECTIONS }, () => Connection.open(url)));
  const startedAt = performance.now();

  /** Request after request, until it is enough. */
  const ask = (connection: Connection, onEnd: () => void): void => {
    if (requests >= mostRequests || performance.now() - startedAt >= mostMs) {
      connection.close();
      onEnd();
      return;
    }
    requests += 1;
    connection.send(next(), (status) => {
      statuses[status] = (statuses[status] ?? 0) + 1;
      ask(connection, onEnd);
    });
  };
  await Promise.all(connections.map((connection) => new Promise<void>((end) => ask(connection, end))));
  return { requests, seconds: (performance.now() - startedAt) / 1000, statuses };
}

process.on("message", (job: Job) => {
  void run(job).then((done) => process.send?.(done));
});
