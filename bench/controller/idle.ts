import { setTimeout as delay } from "node:timers/promises";
import { countsBetween, type RequestCounts, requestsOf, sumOf } from "./request-counts.ts";
import type { RunningController } from "./running-controller.ts";
import { type ControllerWorld, quiet, requestCounts } from "./world.ts";

/** A watch of each of them but the first, of which there are two: organizations and services. */
const WATCHED = ["configmaps", "deployments", "pipescalings", "pods"];
const WATCHES = WATCHED.length + 1;

export interface Idle {
  readonly minutes: number;
  readonly counts: RequestCounts;
  /** Reads and watches of what the controller watches, by whomever. */
  readonly watching: RequestCounts;
  readonly callsPerHourAndWatch: number;
  /** CPU time of the controller as a share of one core, from 0 to 1. */
  readonly cpuShare: number;
}

/** The requests and the CPU time of a controller that has nothing to do. */
export async function measureIdle(
  world: ControllerWorld,
  { process }: RunningController,
  minutes: number,
): Promise<Idle> {
  const before = await quiet(world);
  const cpuBefore = await process.cpuSeconds();
  await delay(minutes * 60_000);
  const cpuSeconds = (await process.cpuSeconds()) - cpuBefore;
  const counts = countsBetween(before, await requestCounts(world));
  const watching = requestsOf(counts, WATCHED);
  const callsPerHourAndWatch = (sumOf(watching) / WATCHES / minutes) * 60;
  return { minutes, counts, watching, callsPerHourAndWatch, cpuShare: cpuSeconds / (minutes * 60) };
}
