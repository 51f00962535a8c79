import { setTimeout as delay } from "node:timers/promises";
import { countsBetween, type RequestCounts, requestsOf, sumOf } from "./request-counts.ts";
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
}

/** What the API server answers while a controller that has nothing to do runs. */
export async function measureIdle(world: ControllerWorld, minutes: number): Promise<Idle> {
  const before = await quiet(world);
  await delay(minutes * 60_000);
  const counts = countsBetween(before, await requestCounts(world));
  const watching = requestsOf(counts, WATCHED);
  return { minutes, counts, watching, callsPerHourAndWatch: (sumOf(watching) / WATCHES / minutes) * 60 };
}
