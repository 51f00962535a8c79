import { toPipeView } from "../../controller/observe/workloads/deployment.ts";
import { roughly } from "../view/time.ts";
import type { Cluster } from "./cluster.ts";
import { error, ok, type Result } from "./result.ts";

/** A controller that runs resumes a Deployment after 30 s at most. */
const LEFT_MS = 60_000;

/**
 * Finds Deployments that a controller paused for a resize in place and did not resume, because it was killed or lost its
 * permissions. They may have lost their labels, too, or be in a namespace that no controller watches any more.
 */
export async function checkPaused(cluster: Cluster): Promise<Result[]> {
  const nowMs = cluster.options.clock.now();
  const results = (await cluster.deployments()).flatMap((deployment) => {
    const { metadata, pausedForCommitAtMs, isBeingDeleted } = toPipeView(deployment);
    if (pausedForCommitAtMs === undefined || isBeingDeleted) return [];
    const pausedMs = nowMs - pausedForCommitAtMs;
    if (pausedMs <= LEFT_MS) return [];
    const { name, namespace } = metadata;
    return [
      error(
        `A controller paused the Deployment ${namespace}/${name} ${roughly(pausedMs)} ago and did not resume it, so no change of its pod template is rolled out.`,
        `Resume it, which may replace its pods: kubectl rollout resume deployment ${name} --namespace ${namespace}`,
      ),
    ];
  });
  return results.length === 0 ? [ok("The controller has left no Deployment paused.")] : results;
}
