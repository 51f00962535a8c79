import { Agent, request } from "node:http";
import { request as requestTls, Agent as TlsAgent } from "node:https";
import { setTimeout as delay } from "node:timers/promises";
import type { AttackTarget } from "./attacks.ts";

export interface HealthyResult {
  /** Response time of each request, including the time to open its connection. */
  readonly ms: readonly number[];
  /** Reasons of requests without a response, or with a status other than 200. */
  readonly failures: readonly string[];
}

/** The interval between requests, which stays below the default rate limit of a key. */
const INTERVAL_MS = 1000;
/** Every n-th request is a PATCH, or opens a new connection. */
const PATCH_EACH = 10;
const NEW_CONNECTION_EACH = 3;

/** Sends one request after the other for some time, as a normal client does. */
export async function runHealthyClient(
  url: string,
  target: AttackTarget,
  durationMs: number,
): Promise<HealthyResult> {
  const options = { keepAlive: true, maxSockets: 1 };
  const agent = url.startsWith("https:") ? new TlsAgent(options) : new Agent(options);
  const ms: number[] = [];
  const failures: string[] = [];
  const endAt = performance.now() + durationMs;
  for (let count = 0; performance.now() < endAt; count += 1) {
    const startedAt = performance.now();
    const isPatch = count % PATCH_EACH === PATCH_EACH - 1;
    const body = isPatch ? JSON.stringify({ replicaCpuMillicores: 1000 * (1 + (count % 24)) }) : undefined;
    const keptAlive = count % NEW_CONNECTION_EACH === 0 ? false : agent;
    const status = await send(url, target, keptAlive, body);
    ms.push(performance.now() - startedAt);
    if (status !== 200) failures.push(`${isPatch ? "PATCH" : "GET"}: ${status}`);
    await delay(Math.max(0, INTERVAL_MS - (performance.now() - startedAt)));
  }
  agent.destroy();
  return { ms, failures };
}

/** @returns the status or the error */
function send(
  url: string,
  { path, authorization }: AttackTarget,
  agent: Agent | false,
  body?: string,
): Promise<number | string> {
  const { protocol, hostname, port } = new URL(url);
  const connect = protocol === "https:" ? requestTls : request;
  const headers = {
    Authorization: authorization,
    ...(body === undefined ? {} : { "Content-Type": "application/json", "Content-Length": body.length }),
  };
  return new Promise((resolve) => {
    const method = body === undefined ? "GET" : "PATCH";
    const options = { host: hostname, port, method, path, agent, headers, rejectUnauthorized: false };
    const call = connect(options, (response) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode ?? 0));
      response.once("error", (error) => resolve(error.message));
    });
    call.once("error", (error) => resolve(error.message));
    call.end(body);
  });
}
