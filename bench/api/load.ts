import { Connection } from "./connection.ts";
import { type Callers, requestsOf } from "./requests.ts";

/**
 * The load generator, a separate process: it receives jobs, and sends back the result of each.
 */

export interface Job {
  readonly url: string;
  readonly callers: Callers;
  /** Limits of the job; it ends with the first that is reached. */
  readonly mostMs?: number;
  readonly mostRequests?: number;
}

export interface JobDone {
  readonly requests: number;
  readonly seconds: number;
  /** Number of responses by status. */
  readonly statuses: Readonly<Record<string, number>>;
}

/** Enough to keep a single-threaded server busy. */
const CONNECTIONS = 32;

async function run({ url, callers, mostMs = Infinity, mostRequests = Infinity }: Job): Promise<JobDone> {
  const next = requestsOf(callers);
  const statuses: Record<string, number> = {};
  let requests = 0;
  const connections = await Promise.all(Array.from({ length: CONNECTIONS }, () => Connection.open(url)));
  const startedAt = performance.now();

  /** Sends one request after the other until a limit is reached. */
  const send = (connection: Connection, onEnd: () => void): void => {
    if (requests >= mostRequests || performance.now() - startedAt >= mostMs) {
      connection.close();
      onEnd();
      return;
    }
    requests += 1;
    connection.send(next(), (status) => {
      statuses[status] = (statuses[status] ?? 0) + 1;
      send(connection, onEnd);
    });
  };
  await Promise.all(connections.map((connection) => new Promise<void>((end) => send(connection, end))));
  return { requests, seconds: (performance.now() - startedAt) / 1000, statuses };
}

process.on("message", (job: Job) => {
  void run(job).then((done) => process.send?.(done));
});
