import { parseSize } from "../../domain/size.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import { resourcesFor } from "../observe/resources.ts";
import { podState } from "./pod-state.ts";
import type { PodView } from "./pod-view.ts";

/**
 * How the resize of a pod ended. resized: it runs the size. returned: it got its old size again, because the pipe gets a
 * rollout. unfinished: the resize was no longer wanted, a rollout replaces the pod with its new size, or the pod is gone.
 */
export const POD_OUTCOMES = ["resized", "returned", "unfinished"] as const;

export type PodOutcome = (typeof POD_OUTCOMES)[number];

interface EndedResize {
  readonly pipe: DeploymentView;
  /** In the format of `formatSize`. */
  readonly size: string;
  readonly isFallback: boolean;
}

export function podOutcome(
  pod: PodView | undefined,
  { pipe, size: text, isFallback }: EndedResize,
): PodOutcome {
  const size = parseSize(text);
  if (!pod || !size || "problem" in pipe.container) return "unfinished";
  const state = podState(pod, pipe.container.name, resourcesFor(size, pipe.cpuLimitFollows));
  if (isFallback) return state === "unchanged" ? "returned" : "unfinished";
  return state === "done" ? "resized" : "unfinished";
}
