import type { PipeView } from "../../controller/observe/pipe-view.ts";
import { toPipeView } from "../../controller/observe/workloads/deployment.ts";
import { toStatefulPipeView } from "../../controller/observe/workloads/stateful-set.ts";
import { roughly } from "../view/time.ts";
import type { Cluster } from "./cluster.ts";
import { error, ok, type Result } from "./result.ts";

/** Unless its writes fail, a running controller ends a commit, and its pause, after 30 s at most. */
const LEFT_MS = 60_000;

/**
 * Finds workloads that a controller paused for a commit and did not resume, because it was killed or lost its
 * permissions. The search includes workloads that have lost their labels, or whose namespace is no longer watched.
 */
export async function checkPaused(cluster: Cluster): Promise<Result[]> {
  const nowMs = cluster.options.clock.now();
  const deployments = (await cluster.deployments()).map((each) => toPipeView(each));
  const statefulSets = (await cluster.statefulSets()).map((each) => toStatefulPipeView(each));
  const results = [...deployments, ...statefulSets].flatMap((pipe) => {
    const { pausedForCommitAtMs, isBeingDeleted } = pipe;
    if (pausedForCommitAtMs === undefined || isBeingDeleted) return [];
    const pausedMs = nowMs - pausedForCommitAtMs;
    return pausedMs > LEFT_MS ? left(cluster, pipe, roughly(pausedMs)) : [];
  });
  return results.length === 0
    ? [ok("The controller has left no Deployment or StatefulSet paused.")]
    : results;
}

function left(cluster: Cluster, { kind, metadata, inTurn }: PipeView, ago: string): Result[] {
  const { name, namespace } = metadata;
  const effect = "so no change of its pod template is rolled out";
  if (kind === "Deployment") {
    const resume = cluster.kubectl(`rollout resume deployment ${name} --namespace ${namespace}`);
    return [
      error(
        `A controller paused the Deployment ${namespace}/${name} ${ago} ago and did not resume it, ${effect}.`,
        `Resume it, which may replace its pods: ${resume}`,
      ),
    ];
  }
  // If the owner keeps all pods from rollouts, the controller holds none.
  if (!inTurn?.needsHold) return [];
  const patch = JSON.stringify({
    spec: { updateStrategy: { rollingUpdate: { partition: inTurn.partition } } },
  });
  const release = cluster.kubectl(
    `patch statefulset ${name} --namespace ${namespace} --type merge --patch '${patch}'`,
  );
  return [
    error(
      `A controller began to hold the pods of the StatefulSet ${namespace}/${name} ${ago} ago and did not release them, ${effect}.`,
      `Release them, which may replace its pods: ${release}`,
    ),
  ];
}
