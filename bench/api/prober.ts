import { request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";

export interface ProbeResult {
  readonly ms: readonly number[];
  /** Reasons of probes without a response, or with a status other than 200. */
  readonly failures: readonly string[];
}

const PATHS = ["/healthz", "/readyz"];
const INTERVAL_MS = 1000;
/** The timeout of the probes in the chart. */
const TIMEOUT_MS = 5000;

/** Probes the process each second on new connections, as the kubelet does. */
export async function runProber(opsUrl: string, durationMs: number): Promise<ProbeResult> {
  const ms: number[] = [];
  const failures: string[] = [];
  const endAt = performance.now() + durationMs;
  while (performance.now() < endAt) {
    const startedAt = performance.now();
    for (const path of PATHS) {
      const probedAt = performance.now();
      const status = await probe(`${opsUrl}${path}`);
      ms.push(performance.now() - probedAt);
      if (status !== 200) failures.push(`${path}: ${status}`);
    }
    await delay(Math.max(0, INTERVAL_MS - (performance.now() - startedAt)));
  }
  return { ms, failures };
}

/** @returns the status or the error */
function probe(url: string): Promise<number | string> {
  return new Promise((resolve) => {
    const call = request(url, { agent: false, signal: AbortSignal.timeout(TIMEOUT_MS) }, (response) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode ?? 0));
      response.once("error", (error) => resolve(error.message));
    });
    call.once("error", (error) => resolve(error.message));
    call.end();
  });
}
