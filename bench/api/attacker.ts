import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { type Attack, type AttackName, type AttackTarget, attacksOf, type Blow } from "./attacks.ts";

/*
 * The attacker, a separate process: it executes jobs, and sends back the number of connections of each attack.
 */

export interface AttackJob {
  /** With TLS if its protocol is https. */
  readonly url: string;
  readonly opsUrl: string;
  readonly target: AttackTarget;
  readonly attacks: readonly AttackName[];
  readonly ms: number;
}

export interface AttackDone {
  /** Number of connections by name of the attack. */
  readonly connections: Readonly<Record<string, number>>;
  /** Number of responses with an unexpected status, by name of the attack and status. */
  readonly unexpected: Readonly<Record<string, number>>;
}

/** Loopback addresses of the attacker. One is also that of the healthy client, as if both were behind one NAT. */
const SOURCES = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"];

/** Lifetime of a connection if the server does not close it. */
const MAX_OPEN_MS = 15_000;

async function run({ url, opsUrl, target, attacks, ms }: AttackJob): Promise<AttackDone> {
  const all = attacksOf(target);
  const connections: Record<string, number> = {};
  const unexpected: Record<string, number> = {};
  const end = AbortSignal.timeout(ms);
  const repeat = async (attack: Attack, lane: number) => {
    await pause(attack.rampMs * Math.random(), end);
    for (let at = lane; !end.aborted; at += 1) {
      const blow = attack.blows[at % attack.blows.length];
      if (!blow) return;
      connections[attack.name] = (connections[attack.name] ?? 0) + 1;
      const attacked = attack.port === "operations" ? opsUrl : url;
      const status = await strike(attacked, SOURCES[lane % SOURCES.length] ?? "", blow, end);
      // The server may close any connection without a response, to make room for others.
      if (status !== 0 && blow.expected?.includes(status) === false) {
        const what = `${attack.name}: ${status}`;
        unexpected[what] = (unexpected[what] ?? 0) + 1;
      }
      await pause(attack.pauseMs, end);
    }
  };
  await Promise.all(
    attacks.flatMap((name) =>
      Array.from({ length: all[name].connections }, (_, lane) => repeat(all[name], lane)),
    ),
  );
  return { connections, unexpected };
}

/** Opens a connection and waits until it is closed. @returns the status of the response, or 0 without one */
function strike(
  url: string,
  localAddress: string,
  { bytes, isUnread = false }: Blow,
  end: AbortSignal,
): Promise<number> {
  return new Promise((resolve) => {
    let head = "";
    const socket = open(url, localAddress);
    const destroy = () => socket.destroy();
    const timer = setTimeout(destroy, MAX_OPEN_MS);
    end.addEventListener("abort", destroy, { once: true });
    // Without this listener, the socket stops reading after a few KiB.
    if (!isUnread)
      socket.on("data", (chunk: Buffer) => {
        if (head.length < STATUS_END) head += chunk.toString("latin1").slice(0, STATUS_END);
      });
    // A reset is one way to close.
    socket.on("error", () => undefined);
    socket.once("close", () => {
      clearTimeout(timer);
      end.removeEventListener("abort", destroy);
      resolve(Number(head.slice(STATUS_BEGIN, STATUS_END)));
    });
    if (bytes !== "") socket.write(bytes);
  });
}

function open(url: string, localAddress: string): Socket {
  const { protocol, hostname, port } = new URL(url);
  const where = { host: hostname, port: Number(port), localAddress };
  return protocol === "https:" ? connectTls({ ...where, rejectUnauthorized: false }) : connect(where);
}

const STATUS_BEGIN = "HTTP/1.1 ".length;
const STATUS_END = STATUS_BEGIN + 3;

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}

process.on("message", (job: AttackJob) => {
  void run(job).then((done) => process.send?.(done));
});
