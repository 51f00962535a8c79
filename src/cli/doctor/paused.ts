import type { PipeView } from "../../controller/observe/pipe-view.ts";
import { toPipeView } from "../../controller/observe/workloads/deployment.ts";
import { KINDS } from "../../controller/observe/workloads/kinds.ts";
import { toStatefulPipeView } from "../../controller/observe/workloads/stateful-set.ts";
import type { Workload } from "../../kube/workloads.ts";
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
  const deployments = (await cluster.deployments()).map((each) => toPipeView(each));
  const statefulSets = (await cluster.statefulSets()).map((each) => toStatefulPipeView(each));
  const suspects = [...deployments, ...statefulSets].filter((pipe) => leftForMs(cluster, pipe) !== undefined);
  // The lists can be minutes old, and a running controller has ended its commits since then.
  const pipes = (await Promise.all(suspects.map((pipe) => readAgain(cluster, pipe)))).flat();
  const results = pipes.flatMap((pipe) => {
    const pausedMs = leftForMs(cluster, pipe);
    return pausedMs === undefined ? [] : left(cluster, pipe, roughly(pausedMs));
  });
  return results.length === 0
    ? [ok("The controller has left no Deployment or StatefulSet paused.")]
    : results;
}

/** Returns the time since a controller paused the pipe; `undefined` if it did not leave it so. */
function leftForMs({ options: { clock } }: Cluster, pipe: PipeView): number | undefined {
  const { pausedForCommitAtMs, isBeingDeleted } = pipe;
  if (pausedForCommitAtMs === undefined || isBeingDeleted) return undefined;
  const pausedMs = clock.now() - pausedForCommitAtMs;
  return pausedMs > LEFT_MS ? pausedMs : undefined;
}

/** A list of one object needs no other permission than the lists before. */
async function readAgain(cluster: Cluster, { kind, metadata }: PipeView): Promise<PipeView[]> {
  const { resource, toView } = KINDS[kind];
  const { name, namespace } = metadata;
  const query = { fieldSelector: `metadata.name=${name}` };
  const found = await cluster.list<Workload>({ resource, namespace, query });
  return found.map((each) => toView(each));
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
