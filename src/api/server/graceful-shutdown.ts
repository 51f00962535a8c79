import { once } from "node:events";
import type { Server } from "node:http";
import type { Connections } from "../../http/connections.ts";
import type { Clock } from "../../runtime/clock.ts";

export interface ShutdownOptions {
  readonly server: Server;
  readonly connections: Pick<Connections, "shutDown" | "closeIdle" | "closeAll">;
  readonly clock: Pick<Clock, "after">;
  /** Time for a client to send its headers: a closed server no longer enforces it. */
  readonly headersMs: number;
  /** Time for requests in flight. After it, every connection is closed. */
  readonly maxMs: number;
}

/** Stops accepting connections, and resolves when the last open one has ended, after its response or its timeout. */
export async function shutDownGracefully(options: ShutdownOptions): Promise<void> {
  const { server, connections, clock, headersMs, maxMs } = options;
  const closed = once(server, "close");
  // Node closes connections that wait for their next request, but not those that never had one.
  server.close();
  connections.shutDown();
  const cancels = [
    clock.after(headersMs, () => connections.closeIdle()),
    clock.after(maxMs, () => connections.closeAll()),
  ];
  await closed;
  for (const cancel of cancels) cancel();
}
