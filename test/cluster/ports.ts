import { randomInt } from "node:crypto";
import { createServer, type Server } from "node:net";
import { ClusterError } from "./errors.ts";
import { COMMAND } from "./names.ts";

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
  /** Releases the block. Call it when the components are listening, or have failed to start. */
  release(): void;
}

const BLOCK = COMPONENT_PORTS.length + 1;
/** Below the range of ports for outgoing connections. */
const FIRST = 20_000;
const BLOCKS = Math.floor((32_768 - FIRST) / BLOCK);
const TRIES = 50;

/**
 * Reserves free ports of 127.0.0.1 for the components of a cluster.
 *
 * kwokctl would count down from the highest port, so two clusters that start at the same time would choose the same
 * ports. Here, each cluster has a block of ports. This process listens on the first port of its block until the
 * components are listening, so no other start can choose the block.
 *
 * @param apiServer port of the API server, if the user chose one
 * @throws ClusterError if that port is in use
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
    `No ${BLOCK} consecutive free ports were found between ${FIRST} and 32768 of 127.0.0.1 in ${TRIES} attempts. Remove a cluster that you do not need: "${COMMAND} list" shows them.`,
  );
}

/** @throws ClusterError if the port is in use */
export async function checkPort(port: number): Promise<void> {
  if (await isFree(port)) return;
  throw new ClusterError(
    `Port ${port} of 127.0.0.1 is in use, or you have no permission to use it. Choose another port, or none to get a free one.`,
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
    // This server must not keep the process alive.
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => resolve(server.unref()));
  });
}
