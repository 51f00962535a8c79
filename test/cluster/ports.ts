import { randomInt } from "node:crypto";
import { createServer, type Server } from "node:net";
import { ClusterError } from "./errors.ts";

const COMPONENT_PORTS = [
  "etcd",
  "etcdPeer",
  "apiServer",
  "controllerManager",
  "scheduler",
  "kwokController",
] as const;
export type Ports = Readonly<Record<(typeof COMPONENT_PORTS)[number], number>>;

export interface PortReservation {
  readonly ports: Ports;
  /** Lets go of the block. Call it when the components listen, or never will. */
  release(): void;
}

const BLOCK = COMPONENT_PORTS.length + 1;
/** Below the range that systems take the ports of outgoing connections from. */
const FIRST = 20_000;
const BLOCKS = Math.floor((32_768 - FIRST) / BLOCK);
const TRIES = 50;

/**
 * Picks free loopback ports for a cluster's components.
 *
 * kwokctl's own choice counts down from the top, so that two clusters that start
 * at once choose the same. Ours are blocks whose first port is a guard which this
 * process holds until the components listen: no other start can have the block.
 *
 * @param apiServer a port that the user wants; a sentence says so if it is taken.
 */
export async function reservePorts(apiServer?: number): Promise<PortReservation> {
  if (apiServer !== undefined) await checkPort(apiServer);
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const first = FIRST + BLOCK * randomInt(BLOCKS);
    const guard = await listen(first);
    if (!guard) continue;
    const numbers = COMPONENT_PORTS.map((_, index) => first + 1 + index);
    const free = await Promise.all(numbers.map(isFree));
    if (free.every(Boolean)) {
      return { ports: assign(first, apiServer), release: () => guard.close() };
    }
    guard.close();
  }
  throw new ClusterError(
    `No ${BLOCK} free ports in a row were found between ${FIRST} and 32768 of 127.0.0.1 in ${TRIES} tries. Free some: "npm run cluster -- list" shows the clusters that run.`,
  );
}

/** @throws ClusterError if a port that the user wants cannot be had. */
export async function checkPort(port: number): Promise<void> {
  if (await isFree(port)) return;
  throw new ClusterError(
    `Port ${port} of 127.0.0.1 is in use (or not yours to use). Give another one, or none, and a free one is chosen.`,
  );
}

function assign(first: number, apiServer: number | undefined): Ports {
  return {
    etcd: first + 1,
    etcdPeer: first + 2,
    apiServer: apiServer ?? first + 3,
    controllerManager: first + 4,
    scheduler: first + 5,
    kwokController: first + 6,
  };
}

async function isFree(port: number): Promise<boolean> {
  const server = await listen(port);
  if (!server) return false;
  await new Promise<void>((closed) => server.close(() => closed()));
  return true;
}

function listen(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", () => resolve(undefined));
    // The guard must not keep alive a process that is done.
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => resolve(server.unref()));
  });
}
