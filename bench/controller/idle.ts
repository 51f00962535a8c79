import { setTimeout as delay } from "node:timers/promises";
import { countsBetween, type RequestCounts, requestsOf, sumOf } from "./request-counts.ts";
import type { RunningController } from "./running-controller.ts";
import { type ControllerWorld, quiet, requestCounts } from "./world.ts";

/** The controller has two watches of the first, and one of each other. */
const WATCHED = [
  "configmaps",
  "deployments",
  "horizontalpodautoscalers",
  "pipescalings",
  "pods",
  "statefulsets",
];
const WATCHES = WATCHED.length + 1;

export interface IdleTimes {
  /** Time before the measurement, in which V8 collects earlier garbage: three collections of about two minutes each. */
  readonly settleMinutes: number;
  readonly minutes: number;
}

export interface Idle {
  readonly minutes: number;
  readonly counts: RequestCounts;
  /** Requests, by any client and with any verb, for the resources in `WATCHED`. */
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
