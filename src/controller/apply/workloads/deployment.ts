import { formatSize } from "../../../domain/size.ts";
import { isWithoutDryRun } from "../../../kube/errors.ts";
import type { Container, KubeObject } from "../../../kube/objects.ts";
import { REPLICA_SETS } from "../../../kube/paths.ts";
import { beginCommit, type CommitFacts, continueCommit as nextStep } from "../../in-place/commit.ts";
import type { Fallback } from "../../observe/last-rollout.ts";
import type { PipeView } from "../../observe/pipe-view.ts";
import { type Resources, resourcesFor, resourcesOf, sizeOf } from "../../observe/resources.ts";
import { toPipeView } from "../../observe/workloads/deployment.ts";
import type { WriteError, WrittenAnnotation } from "../../observe/write-record.ts";
import { errorOf } from "../../retry.ts";
import { type Applier, attempt, observePipe, patchPipe, readPipe } from "../applier.ts";
import { asDryRun, deleteRequest, sizePatch } from "../requests.ts";
import { fallbackOf, writeErrorOf } from "../write-error.ts";
import { endedCommit, takenBack } from "./ended-commit.ts";
import { readCommitFacts, replicaSetRequest, type WholeDeployment } from "./replica-sets.ts";
import type { Of, Workload } from "./workload.ts";

/** A commit pauses the Deployment, so that its ReplicaSet can follow before its pods are compared with the template. */
export const DEPLOYMENT: Workload = {
  pause: () => ({ paused: true }),

  commit(applier, action) {
    const { pipe, rollout } = action;
    const aim = { purpose: "commit", subject: formatSize(rollout.size), attempts: rollout.attempts } as const;
    return attempt(applier, pipe, aim, () => pause(applier, action));
  },

  continueCommit(applier, action) {
    const { pipe, isOverdue } = action;
    const aim = { purpose: isOverdue ? "resume" : "continue-commit", subject: subjectOf(pipe) } as const;
    return attempt(applier, pipe, aim, async () => {
      const whole = await readPipe<WholeDeployment>(applier, pipe);
      if (!whole) return {};
      const view = toPipeView(whole);
      observePipe(applier, view);
      return view.isPausedForCommit ? { annotation: await step(applier, action, { whole, view }) } : {};
    });
  },

  resume(applier, { pipe }) {
    const aim = { purpose: "resume", subject: subjectOf(pipe) } as const;
    return attempt(applier, pipe, aim, async () => ({ annotation: await lift(applier, pipe) }));
  },

  /** With the resources of its stale pods, the ReplicaSet is not the one of the template any more. */
  replacePods(applier, { pipe, container, resources, templateHash }) {
    const aim = { purpose: "replace-pods", subject: subjectOf(pipe) } as const;
    return attempt(applier, pipe, aim, async () => {
      const whole = await readPipe<WholeDeployment>(applier, pipe);
      const { replicaSets = [] } = whole ? await readCommitFacts(applier.client, whole, container) : {};
      const hasHash = ({ metadata }: KubeObject) => metadata.name.endsWith(`-${templateHash}`);
      const own = replicaSets.find((each) => each.pods > 0 && hasHash(each));
      if (!own) return {};
      applier.assertMayWrite();
      await applier.client.json(replicaSetRequest(own, container, resources));
      return {};
    });
  },
};

function subjectOf({ size }: PipeView): string {
  return size ? formatSize(size) : "";
}

async function pause(applier: Applier, action: Of<"commit">) {
  const { pipe, rollout } = action;
  let isPrepared = false;
  try {
    const error = await prepare(applier, action);
    if (error) return { error };
    isPrepared = true;
    applier.assertMayWrite();
    const spec = { ...sizePatch(action, rollout.size), ...DEPLOYMENT.pause(pipe) };
    return { annotation: await patchPipe(applier, pipe, rollout, spec) };
  } catch (cause) {
    const error = fallbackOf(cause);
    // A rollout needs the permission for Deployments, too, but not the one for ReplicaSets.
    if (error && !(error.reason === "Forbidden" && isPrepared)) return { error };
    throw cause;
  }
}

/** Most ReplicaSets of one pipe that have the size and no pods. */
const MAX_DUPLICATES = 10;

/** Checks the ReplicaSets, and removes those that Kubernetes would use instead of the current one. */
async function prepare(applier: Applier, action: Of<"commit">): Promise<WriteError | undefined> {
  const { client } = applier;
  const { pipe, container, rollout } = action;
  const target = resourcesFor(rollout.size, pipe.cpuLimitFollows);
  const whole = await readPipe<WholeDeployment>(applier, pipe);
  if (!whole) return UNSETTLED;
  if (whole.metadata.resourceVersion !== pipe.metadata.resourceVersion) {
    observePipe(applier, toPipeView(whole));
    return { ...UNSETTLED, isConflict: true };
  }
  let facts = await readCommitFacts(client, whole, container);
  for (let deleted = 0; deleted <= MAX_DUPLICATES; deleted += 1) {
    const step = beginCommit(facts, target);
    if (step.type === "pause") {
      await tryReplicaSet(applier, action, facts, target);
      return undefined;
    }
    if (step.type === "wait") return UNSETTLED;
    applier.assertMayWrite();
    await client.json(
      deleteRequest(REPLICA_SETS, step.replicaSet.metadata, { propagationPolicy: "Background" }),
    );
    facts = { ...facts, replicaSets: facts.replicaSets.filter((each) => each !== step.replicaSet) };
  }
  return UNSETTLED;
}

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

const UNSETTLED: WriteError = {
  reason: "WriteFailed",
  message: "the Deployment and its ReplicaSets are not settled",
};

interface Paused {
  readonly whole: WholeDeployment;
  readonly view: PipeView;
}

async function step(
  applier: Applier,
  { container, isOverdue, fallback }: Of<"continue-commit">,
  { whole, view }: Paused,
): Promise<WrittenAnnotation | undefined> {
  const { isSeen, isUpdated } = view.rollout;
  if (isSeen && isUpdated) return lift(applier, view);
  let facts: CommitFacts;
  try {
    facts = await readCommitFacts(applier.client, whole, container);
  } catch (cause) {
    const error = writeErrorOf(cause);
    if (!isOverdue || error?.reason !== "Forbidden") throw cause;
    // The Deployment must not stay paused because a permission is missing that was there when it was paused.
    return lift(applier, view, { reason: "Forbidden", message: error.message });
  }
  const resources = view.size && resourcesFor(view.size, view.cpuLimitFollows);
  const next = nextStep(facts, resources, isOverdue);
  applier.assertMayWrite();
  switch (next.type) {
    case "wait":
      return undefined;
    case "resume":
      return lift(applier, view, next.fallback);
    case "update-replica-set":
      await applier.client.json(replicaSetRequest(next.replicaSet, container, next.resources));
      return undefined;
    case "take-back": {
      const old = { name: container, resources: next.resources.get(container) ?? {} };
      const written = await takeBack(applier, view, old, fallback);
      const { uid, generation } = view.metadata;
      const error = errorOf(applier.writes.get(uid, "continue-commit"));
      applier.writes.failed({ uid, purpose: "commit" }, error ?? NO_RESPONSE, generation);
      return written;
    }
  }
}

/** The Deployment controller rolls out the template if its ReplicaSet does not have it. */
function lift(applier: Applier, pipe: PipeView, fallback?: Fallback): Promise<WrittenAnnotation | undefined> {
  const { lastRollout } = pipe;
  return patchPipe(applier, pipe, lastRollout && endedCommit(lastRollout, fallback), { paused: null });
}

/** The template gets its old size again, in the write that resumes. It equals that of the ReplicaSet, so no pod ends. */
function takeBack(
  applier: Applier,
  pipe: PipeView,
  old: Container,
  fallback: Fallback | undefined,
): Promise<WrittenAnnotation | undefined> {
  const { lastRollout } = pipe;
  const resources = resourcesOf(old);
  const spec = { paused: null, template: { spec: { containers: [{ name: old.name, resources }] } } };
  const before = sizeOf(old) ?? resources;
  return patchPipe(applier, pipe, lastRollout && takenBack(pipe, lastRollout, before, fallback), spec);
}

const NO_RESPONSE: WriteError = {
  reason: "WriteFailed",
  message:
    "the Deployment controller did not respond, so the template was not changed: see the kube-controller-manager",
};
