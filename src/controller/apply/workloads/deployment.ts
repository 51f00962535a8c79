import type { KubeRequest } from "../../../kube/client.ts";
import { isWithoutDryRun } from "../../../kube/errors.ts";
import { REPLICA_SETS } from "../../../kube/paths.ts";
import {
  beginCommit,
  type CommitFacts,
  continueCommit,
  type ReplicaSetView,
  toReplicaSetView,
  toTemplateView,
} from "../../in-place/commit.ts";
import { type Resources, resourcesFor, resourcesOf, sizeOf } from "../../observe/resources.ts";
import { PAUSED } from "../../observe/workloads/field-owners.ts";
import { KINDS } from "../../observe/workloads/kinds.ts";
import type { WriteError } from "../../observe/write-record.ts";
import { errorOf } from "../../retry.ts";
import { type Applier, observePipe, readPipe } from "../applier.ts";
import { asDryRun, deleteRequest, patchRequest, templatePatch } from "../requests.ts";
import { writeErrorOf } from "../write-error.ts";
import { type CommitKind, listSelected, type Of, recordOfHold, type WholeWorkload } from "./workload.ts";

/** A commit pauses the Deployment, so that its ReplicaSet can follow before its pods are compared with the template. */
export const DEPLOYMENT: CommitKind = {
  hold: () => ({ paused: true }),
  release: () => ({ paused: null }),

  /** Checks the ReplicaSets, and removes those that Kubernetes would use instead of the current one. */
  async prepare(applier, action) {
    const { client } = applier;
    const { pipe, container, rollout } = action;
    const target = resourcesFor(rollout.size, pipe.cpuLimitFollows);
    const whole = await readPipe<WholeWorkload>(applier, pipe);
    if (!whole) return { error: UNSETTLED };
    if (whole.metadata.resourceVersion !== pipe.metadata.resourceVersion) {
      observePipe(applier, KINDS[pipe.kind].toView(whole));
      return { error: { ...UNSETTLED, isConflict: true } };
    }
    let facts = await readCommitFacts(applier, whole, container);
    for (let deleted = 0; deleted <= MAX_DUPLICATES; deleted += 1) {
      const step = beginCommit(facts, target);
      if (step.type === "pause") {
        await tryReplicaSet(applier, action, facts, target);
        return { managedFields: recordOfHold(whole, PAUSED) };
      }
      if (step.type === "wait") return { error: UNSETTLED };
      const { replicaSet } = step;
      applier.assertMayWrite();
      await client.json(
        deleteRequest(REPLICA_SETS, replicaSet.metadata, { propagationPolicy: "Background" }),
      );
      facts = { ...facts, replicaSets: facts.replicaSets.filter((each) => each !== replicaSet) };
    }
    return { error: UNSETTLED };
  },

  async nextStep(applier, { whole, view }, { container, isOverdue }) {
    const { isSeen, isUpdated } = view.rollout;
    if (isSeen && isUpdated) return { type: "release" };
    let facts: CommitFacts;
    try {
      facts = await readCommitFacts(applier, whole, container);
    } catch (cause) {
      const error = writeErrorOf(cause);
      if (!isOverdue || error?.reason !== "Forbidden") throw cause;
      // The Deployment must not stay paused because a permission is missing that was there when it was paused.
      return { type: "release", fallback: { reason: "Forbidden", message: error.message } };
    }
    const next = continueCommit(facts, view.size && resourcesFor(view.size, view.cpuLimitFollows), isOverdue);
    switch (next.type) {
      case "wait":
        return next;
      case "resume":
        return { type: "release", fallback: next.fallback };
      case "update-replica-set":
        return {
          type: "relabel",
          async write() {
            await applier.client.json(replicaSetRequest(next.replicaSet, container, next.resources));
          },
        };
      case "take-back": {
        const old = { name: container, resources: next.resources.get(container) ?? {} };
        const resources = resourcesOf(old);
        return { type: "take-back", resources, old: sizeOf(old) ?? resources };
      }
    }
  },

  /** With the resources of its stale pods, the ReplicaSet is not the one of the template any more. */
  async replacePods(applier, whole, { container, resources, templateHash }) {
    const { replicaSets } = await readCommitFacts(applier, whole, container);
    const own = replicaSets.find(
      ({ pods, metadata }) => pods > 0 && metadata.name.endsWith(`-${templateHash}`),
    );
    if (!own) return;
    applier.assertMayWrite();
    await applier.client.json(replicaSetRequest(own, container, resources));
  },
};

/** Most ReplicaSets of one pipe that have the size and no pods. */
const MAX_DUPLICATES = 10;

const UNSETTLED: WriteError = {
  reason: "WriteFailed",
  message: "the Deployment and its ReplicaSets are not settled",
};

/** If the last write to the ReplicaSet failed, the next one is tried before the Deployment is paused again. */
async function tryReplicaSet(
  { client, writes }: Applier,
  { pipe, container }: Of<"commit">,
  { replicaSets }: CommitFacts,
  target: Resources,
): Promise<void> {
  const current = replicaSets.find(({ pods }) => pods > 0);
  if (!current || !errorOf(writes.get(pipe.metadata.uid, "continue-commit"))) return;
  try {
    await client.json(asDryRun(replicaSetRequest(current, container, target)));
  } catch (error) {
    if (!isWithoutDryRun(error)) throw error;
  }
}

async function readCommitFacts(
  { client }: Applier,
  whole: WholeWorkload,
  container: string,
): Promise<CommitFacts> {
  const selected = await listSelected(client, REPLICA_SETS, whole);
  const own = selected
    .map(toReplicaSetView)
    .filter(({ deploymentUid }) => deploymentUid === whole.metadata.uid);
  return { container, template: toTemplateView(whole.spec.template), replicaSets: own };
}

function replicaSetRequest(
  { metadata }: ReplicaSetView,
  container: string,
  resources: Resources,
): KubeRequest {
  return patchRequest(REPLICA_SETS, metadata, { spec: templatePatch(container, resources) });
}
