import { randomUUID } from "node:crypto";
import { PipeScalingWriter } from "../../src/api/cluster/pipe-scaling-writer.ts";
import { type Size, sizeOfCores } from "../../src/domain/size.ts";
import { KubeClient } from "../../src/kube/client.ts";
import { connect } from "../../src/kube/connection.ts";
import { median, type Pair } from "../statistics.ts";
import { Connection } from "./connection.ts";
import type { Server } from "./server.ts";
import type { ApiWorld, BenchService } from "./world.ts";

export interface PatchOptions {
  readonly rounds: number;
  /** Number of calls of each kind per round. */
  readonly calls: number;
}

/**
 * Measures the p50 of each round, in milliseconds, of a PATCH of the API and of the same server-side apply without
 * the API: by the same code, with the same account, to a similar object. Sends one call at a time, in turns. The first
 * round is a warm-up.
 */
export async function measurePatch(
  { services: [ours, baseline], kubeconfig, authorizations: [authorization = ""] }: ApiWorld,
  api: Server,
  { rounds, calls }: PatchOptions,
): Promise<Pair[]> {
  const client = new KubeClient(await connect(kubeconfig));
  const connection = await Connection.open(api.url);
  try {
    const pairs: Pair[] = [];
    for (let round = 0; round <= rounds; round += 1) {
      const oursMs: number[] = [];
      const baselineMs: number[] = [];
      for (let call = 0; call < calls; call += 1) {
        // The size changes with each call, because an apply without a change is cheaper.
        const size = sizeOfCores(1 + (call % 2));
        oursMs.push(await timeOf(() => patch(connection, ours, authorization, size)));
        baselineMs.push(await timeOf(() => apply(client, baseline, size)));
      }
      if (round > 0) pairs.push({ ours: median(oursMs), baseline: median(baselineMs) });
    }
    return pairs;
  } finally {
    connection.close();
    await client.close();
  }
}

/** Sends a PATCH over a keep-alive connection. */
async function patch(
  connection: Connection,
  { path }: BenchService,
  authorization: string,
  size: Size,
): Promise<void> {
  const body = JSON.stringify({
    replicaCpuMillicores: size.cpuMillicores,
    replicaMemoryGb: size.memoryGib,
  });
  const request = [
    `PATCH ${path} HTTP/1.1`,
    "Host: bench",
    `Authorization: ${authorization}`,
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
    "",
    body,
  ].join("\r\n");
  const status = await new Promise<number>((resolve) => connection.send(request, resolve));
  if (status !== 200) throw new Error(`a PATCH was answered ${status}`);
}

async function apply(client: KubeClient, { scaling }: BenchService, size: Size): Promise<void> {
  const origin = { requestId: randomUUID(), apiKey: randomUUID(), requestedAt: new Date().toISOString() };
  await new PipeScalingWriter(client).write(scaling, size, origin);
}

async function timeOf(act: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await act();
  return performance.now() - startedAt;
}
