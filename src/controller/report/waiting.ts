import type { Assessment } from "../decide/assessment.ts";
import type { Sizing } from "../decide/sizing.ts";
import { formatTime, nameList } from "./text.ts";

/**
 * Returns why a pipe does not run the desired size yet, for people; `undefined` if nothing but time is needed. The most
 * important reason comes first.
 *
 * @param fallback the reason why the pods are replaced, if they were to be resized in place
 */
export function whyPending(
  { state, failure, obstacle, inPlace }: Assessment,
  sizing: Sizing,
  fallback: string | undefined,
): string | undefined {
  // A write, a rollout, another writer, or something that someone must change first (decide/assess.ts).
  if (failure) return failure.message;
  // No node has room for the new pod.
  if (obstacle !== undefined) return obstacle;
  if (state === "waiting") return `waiting${waitingFor(sizing)}`;
  if (fallback !== undefined)
    return `its pods cannot be resized in place and are being replaced: ${fallback}`;
  if (inPlace) return "its pods are being resized in place";
  return state === "paused" ? "its owner paused the Deployment: resume it" : undefined;
}

/** Returns what the waiting pipes of a service wait for, as the end of a sentence. */
export function waitingFor({ holdBack, blockedBy, window }: Sizing): string {
  const names = nameList(blockedBy);
  switch (holdBack) {
    case "suspended":
      return " while the service is suspended";
    case "confirmation":
      return " for the PipeScaling to be read, because a pipe has a later size";
    case "failure":
      return " because of the failure";
    case "window":
      return ` for the rollout window${window.open ? "" : `, which opens at ${formatTime(window.opensAtMs)}`}`;
    case "dry-runs":
      return " for the dry runs of its pipes";
    case "canary":
      return names === "" ? " for a first pipe to prove the size" : ` for ${names} to prove the size`;
    case "service-limit":
      return ` for ${names}, because the limit of concurrent rollouts is reached`;
    case "overall-limit":
      return " for rollouts of other services";
    case "in-place-pace":
      return " because at most three pipes per second are resized in place";
    case "nothing":
      return "";
  }
}
