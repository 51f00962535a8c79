import { setTimeout as delay } from "node:timers/promises";
import { countsBetween, type RequestCounts, requestsOf, sumOf } from "./request-counts.ts";
import type { RunningController } from "./running-controller.ts";
import { type ControllerWorld, quiet, requestCounts } from "./world.ts";

/** One watch of each resource, and two of the first: organizations and services. */
const WATCHED = ["configmaps", "deployments", "horizontalpodautoscalers", "pipescalings", "pods"];
const WATCHES = WATCHED.length + 1;

export interface IdleTimes {
  /** V8 collects the garbage of the work before, in three collections of about two minutes each; this is not measured. */
  readonly settleMinutes: number;
  readonly minutes: number;
}

export interface Idle {
  readonly minutes: number;
  readonly counts: RequestCounts;
  /** Reads and watches, by any client, of the resources that the controller watches. */
  readonly watching: RequestCounts;
  readonly callsPerHourAndWatch: number;
  /** CPU time of the controller as a share of one core, from 0 to 1. */
  readonly cpuShare: number;
}

/** Measures the requests and the CPU time of an idle controller. */
export async function measureIdle(
  world: ControllerWorld,
  { process }: RunningController,
  { settleMinutes, minutes }: IdleTimes,
): Promise<Idle> {
  await quiet(world);
  await delay(settleMinutes * 60_000);
  const before = await requestCounts(world);
  const cpuBefore = await process.cpuSeconds();
  await delay(minutes * 60_000);
  const cpuSeconds = (await process.cpuSeconds()) - cpuBefore;
  const counts = countsBetween(before, await requestCounts(world));
  const watching = requestsOf(counts, WATCHED);
  const callsPerHourAndWatch = (sumOf(watching) / WATCHES / minutes) * 60;
  return { minutes, counts, watching, callsPerHourAndWatch, cpuShare: cpuSeconds / (minutes * 60) };
}
