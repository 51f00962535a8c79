import { waitFor } from "@pipe-scaling/local-cluster/wait";
import * as z from "zod";
import { RECORDS_NAMESPACE } from "../../deploy/chart/install.ts";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { PIPE_SCALINGS } from "../../src/crd/names.ts";
import {
  CONFIG_MAPS,
  collectionPath,
  DEPLOYMENTS,
  HORIZONTAL_AUTOSCALERS,
  PODS,
  STATEFUL_SETS,
} from "../../src/kube/paths.ts";
import { RESOURCE_LABEL } from "../../src/records/labels.ts";
import type { Listing } from "../lists.ts";
import type { Pair } from "../statistics.ts";
import { MeasuredProcess } from "./measured-process.ts";
import { countsBetween, type RequestCounts } from "./request-counts.ts";
import { RunningController } from "./running-controller.ts";
import { type ControllerWorld, PIPES, quiet } from "./world.ts";

export interface Starts {
  /** Milliseconds from spawn until all lists were complete. */
  readonly ms: readonly Pair[];
  /** RSS of the controller by round: the maximum after all lists and after all reconciliations. */
  readonly rssBytes: readonly number[];
  /** Requests of the controller to the API server, by round. */
  readonly counts: readonly RequestCounts[];
}

export interface StartPrograms {
  readonly controller: string;
  readonly lists: string;
}

/** Starts the controller without work, and the baseline that only lists, in turns. The first round is a warm-up. */
export async function measureStart(
  world: ControllerWorld,
  programs: StartPrograms,
  rounds: number,
): Promise<Starts> {
  const started: (Awaited<ReturnType<typeof startController>> & { readonly pair: Pair })[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    // The order alternates, so that a drift over time favors neither.
    const oursFirst = round % 2 === 0;
    const before = oursFirst ? undefined : await runLists(world, programs.lists);
    const ours = await startController(world, programs.controller);
    const baseline = before ?? (await runLists(world, programs.lists));
    if (round > 0) started.push({ ...ours, pair: { ours: ours.ms, baseline } });
  }
  return {
    ms: started.map(({ pair }) => pair),
    rssBytes: started.map(({ rssBytes }) => rssBytes),
    counts: started.map(({ counts }) => counts),
  };
}

async function startController(world: ControllerWorld, program: string) {
  const before = await quiet(world);
  const controller = await RunningController.start(world, program);
  const first = await controller.process.rssBytes();
  const after = await quiet(world);
  const second = await controller.process.rssBytes();
  await controller.stop();
  return {
    ms: controller.startMs,
    rssBytes: Math.max(first, second),
    counts: countsBetween(before, after),
  };
}

/** Collections that the controller lists (src/controller/observe/caches.ts). */
const LISTS: readonly Listing[] = [
  { path: collectionPath(CONFIG_MAPS, RECORDS_NAMESPACE), labelSelector: `${RESOURCE_LABEL}=organization` },
  { path: collectionPath(CONFIG_MAPS, RECORDS_NAMESPACE), labelSelector: `${RESOURCE_LABEL}=service` },
  { path: collectionPath(PIPE_SCALINGS, PIPES) },
  {
    path: collectionPath(DEPLOYMENTS, PIPES),
    labelSelector: `${TYPE_LABEL}=${DATABASE_TYPE},${SERVICE_LABEL}`,
  },
  {
    path: collectionPath(STATEFUL_SETS, PIPES),
    labelSelector: `${TYPE_LABEL}=${DATABASE_TYPE},${SERVICE_LABEL}`,
  },
  { path: collectionPath(PODS, PIPES), labelSelector: `${TYPE_LABEL}=${DATABASE_TYPE}` },
  { path: collectionPath(HORIZONTAL_AUTOSCALERS, PIPES) },
];

const lineSchema = z.object({ msg: z.literal("listed"), time: z.iso.datetime() });

async function runLists(world: ControllerWorld, program: string): Promise<number> {
  let listedAtMs: number | undefined;
  const options = { name: "lists", file: program, args: [world.kubeconfig, JSON.stringify(LISTS)] };
  const lists = new MeasuredProcess(world, options, (line) => {
    listedAtMs = Date.parse(lineSchema.parse(JSON.parse(line)).time);
  });
  const at = await waitFor(() => listedAtMs, { what: "the lists to be made", timeoutMs: 120_000 });
  await lists.stop();
  return at - lists.spawnedAtMs;
}
