import { setTimeout as delay } from "node:timers/promises";
import { PipeScalingWriter } from "../../src/api/cluster/pipe-scaling-writer.ts";
import { type PipeScalingResource, toPipeScalingView } from "../../src/api/cluster/views.ts";
import { SERVICE_LABEL } from "../../src/controller/names.ts";
import { sizeOf } from "../../src/controller/observe/resources.ts";
import { PIPE_SCALINGS } from "../../src/crd/names.ts";
import { type Size, sameSize, sizeOfCores } from "../../src/domain/size.ts";
import { collectionPath, DEPLOYMENTS, objectPath } from "../../src/kube/paths.ts";
import type { Deployment } from "../../src/kube/workloads.ts";
import { countsBetween, type RequestCounts } from "./request-counts.ts";
import type { RunningController } from "./running-controller.ts";
import { type ControllerWorld, PIPES, quiet } from "./world.ts";

const PATCHES = 1000;
const BURST_MS = 10_000;
/** Sizes that are requested in turn. `LAST` is requested only once, at the end. */
const SIZES = [2, 3, 4, 5, 6, 7].map(sizeOfCores);
const LAST = sizeOfCores(8);

export interface Burst {
  /** Time from the first PATCH until the first resize. */
  readonly firstMs: number;
  /** Time to send all PATCHes. */
  readonly seconds: number;
  /** Requests to the API server, including the PATCHes. */
  readonly counts: RequestCounts;
  readonly lastWon: boolean;
}

/** Sends 1,000 PATCHes for one service as the API does, one after the other, evenly over 10 seconds. */
export async function measureBurst(
  world: ControllerWorld,
  controller: RunningController,
  serviceId: string,
): Promise<Burst> {
  const writer = new PipeScalingWriter(world.admin);
  const path = objectPath(PIPE_SCALINGS, PIPES, serviceId);
  const scaling = toPipeScalingView(await world.admin.json<PipeScalingResource>({ path }));
  const before = await quiet(world);
  const given = controller.given;
  const startedAtMs = Date.now();
  for (let sent = 0; sent < PATCHES; sent += 1) {
    await delay(Math.max(0, startedAtMs + (sent * BURST_MS) / PATCHES - Date.now()));
    const size = sent === PATCHES - 1 ? LAST : (SIZES[sent % SIZES.length] ?? LAST);
    const requestedAt = new Date().toISOString();
    await writer.write(scaling, size, { requestId: `bench-${sent}`, apiKey: "bench", requestedAt });
  }
  const seconds = (Date.now() - startedAtMs) / 1000;
  const after = await quiet(world);
  return {
    firstMs: (await controller.givenAtMs(given + 1)) - startedAtMs,
    seconds,
    counts: countsBetween(before, after),
    lastWon: await haveSize(world, serviceId, LAST),
  };
}

async function haveSize({ admin }: ControllerWorld, serviceId: string, size: Size): Promise<boolean> {
  const { items } = await admin.json<{ readonly items: readonly Deployment[] }>({
    path: collectionPath(DEPLOYMENTS, PIPES),
    query: { labelSelector: `${SERVICE_LABEL}=${serviceId}` },
  });
  return items.every(({ spec }) =>
    spec.template.spec.containers.every((container) => sameSize(sizeOf(container), size)),
  );
}
