import { formatSize } from "../../../domain/size.ts";
import type { KubeRequest } from "../../../kube/client.ts";
import { isConflict, isWithoutDryRun } from "../../../kube/errors.ts";
import { formatLabelSelector, type LabelSelector } from "../../../kube/label-selector.ts";
import { type Identity, identityOf, type Pod, type StatefulSet } from "../../../kube/objects.ts";
import { collectionPath, PODS } from "../../../kube/paths.ts";
import { type HeldStep, heldStep } from "../../in-place/held-pods.ts";
import { REVISION_HASH_LABEL } from "../../names.ts";
import { BY_PIPE } from "../../observe/caches.ts";
import type { Fallback } from "../../observe/last-rollout.ts";
import { keyOfPipe } from "../../observe/pipe-kind.ts";
import type { PipeView } from "../../observe/pipe-view.ts";
import { hasResources, resourcesFor } from "../../observe/resources.ts";
import { HOLD, toStatefulPipeView } from "../../observe/workloads/stateful-set.ts";
import type { WriteError, WrittenAnnotation } from "../../observe/write-record.ts";
import { errorOf } from "../../retry.ts";
import { type Applier, attempt, observePipe, patchPipe, readPipe } from "../applier.ts";
import { asDryRun, patchRequest, sizePatch } from "../requests.ts";
import { fallbackOf } from "../write-error.ts";
import { endedCommit, takenBack } from "./ended-commit.ts";
import type { Of, Workload } from "./workload.ts";

/** A StatefulSet with all of its fields. */
interface WholeStatefulSet extends StatefulSet {
  readonly spec: StatefulSet["spec"] & { readonly selector: LabelSelector };
}

/** A pod is replaced if its label does not name the revision of the template. A commit holds the pods until it does. */
export const STATEFUL_SET: Workload = {
  pause: (pipe) => partitionPatch(pipe, HOLD),

  commit(applier, action) {
    const { pipe, rollout } = action;
    const aim = { purpose: "commit", subject: formatSize(rollout.size), attempts: rollout.attempts } as const;
    return attempt(applier, pipe, aim, async () => {
      let isPrepared = false;
      try {
        await tryLabel(applier, pipe);
        isPrepared = true;
        applier.assertMayWrite();
        const spec = { ...sizePatch(action, rollout.size), ...partitionPatch(pipe, HOLD) };
        return { annotation: await patchPipe(applier, pipe, rollout, spec) };
      } catch (cause) {
        const error = fallbackOf(cause);
        // A rollout needs the permission for StatefulSets, too, but not the one for labels of pods.
        if (error && !(error.reason === "Forbidden" && isPrepared)) return { error };
        throw cause;
      }
    });
  },

  continueCommit(applier, action) {
    const { pipe, isOverdue } = action;
    const aim = { purpose: isOverdue ? "resume" : "continue-commit", subject: subjectOf(pipe) } as const;
    return attempt(applier, pipe, aim, async () => {
      const whole = await readPipe<WholeStatefulSet>(applier, pipe);
      if (!whole) return {};
      const view = toStatefulPipeView(whole);
      observePipe(applier, view);
      return view.isPausedForCommit ? { annotation: await step(applier, action, { whole, view }) } : {};
    });
  },

  resume(applier, { pipe }) {
    const aim = { purpose: "resume", subject: subjectOf(pipe) } as const;
    return attempt(applier, pipe, aim, async () => ({ annotation: await release(applier, pipe) }));
  },

  /** Pods that do not have the size of the template are not of its revision, whatever their label says. */
  replacePods(applier, { pipe, container }) {
    const aim = { purpose: "replace-pods", subject: subjectOf(pipe) } as const;
    return attempt(applier, pipe, aim, async () => {
      const whole = await readPipe<WholeStatefulSet>(applier, pipe);
      const target = pipe.size && resourcesFor(pipe.size, pipe.cpuLimitFollows);
      if (!whole || !target) return {};
      const stale = (await readPods(applier, whole)).filter(({ spec }) => {
        const own = spec.containers.find(({ name }) => name === container);
        return own !== undefined && !hasResources(own.resources, target);
      });
      for (const pod of stale) await label(applier, pod, `${whole.metadata.name}-${NO_REVISION}`);
      return {};
    });
  },
};

/** Kubernetes makes names of revisions from digits and consonants, so it gives none of them this name. */
const NO_REVISION = "outdated";

function subjectOf({ size }: PipeView): string {
  return size ? formatSize(size) : "";
}

/** @param hold what is added to the partition of the owner */
function partitionPatch({ inTurn }: PipeView, hold: number): object {
  const { partition } = inTurn ?? {};
  return partition === undefined
    ? {}
    : { updateStrategy: { rollingUpdate: { partition: partition + hold } } };
}

interface Held {
  readonly whole: WholeStatefulSet;
  readonly view: PipeView;
}

async function step(
  applier: Applier,
  { container, isOverdue, fallback, mayReplacePods }: Of<"continue-commit">,
  { whole, view }: Held,
): Promise<WrittenAnnotation | undefined> {
  const state = { isOverdue, mayReplacePods, refused: fallback };
  const next = async (canLabel: boolean) => {
    const pods = await readPods(applier, whole);
    return heldStep(
      view,
      { pods, revisionOf, currentRevision: whole.status?.currentRevision },
      { ...state, canLabel },
    );
  };
  const ending = { container, view, fallback };
  try {
    return await run(applier, ending, await next(fallback === undefined));
  } catch (cause) {
    if (!isOverdue || isConflict(cause)) throw cause;
    // Some pods may have got their label.
    const otherwise = await next(false);
    if (otherwise.type === "wait") throw cause;
    return run(applier, ending, otherwise);
  }
}

function revisionOf({ metadata: { labels } }: Pod): string | undefined {
  return labels?.[REVISION_HASH_LABEL];
}

interface Ending {
  readonly container: string;
  readonly view: PipeView;
  readonly fallback: Fallback | undefined;
}

async function run(
  applier: Applier,
  { container, view, fallback }: Ending,
  next: HeldStep<Pod>,
): Promise<WrittenAnnotation | undefined> {
  applier.assertMayWrite();
  switch (next.type) {
    case "wait":
      return undefined;
    case "label":
      for (const pod of next.pods) await label(applier, pod, next.revision);
      return undefined;
    case "release":
      return release(applier, view, next.fallback);
    case "take-back": {
      const written = await takeBack(applier, view, container, fallback);
      const { uid, generation } = view.metadata;
      const error = errorOf(applier.writes.get(uid, "continue-commit"));
      applier.writes.failed({ uid, purpose: "commit" }, error ?? NO_RESPONSE, generation);
      return written;
    }
  }
}

const NO_RESPONSE: WriteError = {
  reason: "WriteFailed",
  message:
    "the StatefulSet controller did not respond, so the template was not changed: see the kube-controller-manager",
};

/** The pods are held only if they can get another label then. */
async function tryLabel({ client, caches }: Applier, pipe: PipeView): Promise<void> {
  const pod = caches.pods.by(BY_PIPE, keyOfPipe(pipe)).find(({ isActive }) => isActive);
  if (!pod) return;
  // In any version, because only its label counts.
  const target = { ...pod.metadata, resourceVersion: undefined };
  try {
    await client.json(asDryRun(labelRequest(target, `${pipe.metadata.name}-${NO_REVISION}`)));
  } catch (error) {
    if (!isWithoutDryRun(error)) throw error;
  }
}

function release(
  applier: Applier,
  pipe: PipeView,
  fallback?: Fallback,
): Promise<WrittenAnnotation | undefined> {
  const { lastRollout } = pipe;
  return patchPipe(applier, pipe, lastRollout && endedCommit(lastRollout, fallback), partitionPatch(pipe, 0));
}

/** The template gets its old size again, in the write that releases the pods. It equals their revision, so no pod ends. */
function takeBack(
  applier: Applier,
  pipe: PipeView,
  container: string,
  fallback: Fallback | undefined,
): Promise<WrittenAnnotation | undefined> {
  const { lastRollout } = pipe;
  const old = lastRollout?.lastGoodSize;
  // Nothing shows the old size, so the pods are replaced.
  if (!lastRollout || !old) return release(applier, pipe, fallback ?? UNKNOWN_SIZE);
  const spec = { ...sizePatch({ pipe, container }, old), ...partitionPatch(pipe, 0) };
  return patchPipe(applier, pipe, takenBack(pipe, lastRollout, old, fallback), spec);
}

const UNKNOWN_SIZE: Fallback = {
  reason: "NotSettled",
  message: "something removed the old size from the annotation of the StatefulSet during the commit",
};

/** The pods that do not end, as they are now. */
async function readPods({ client }: Applier, { metadata, spec }: WholeStatefulSet): Promise<readonly Pod[]> {
  const { items } = await client.json<{ readonly items: readonly Pod[] }>({
    path: collectionPath(PODS, metadata.namespace),
    query: { labelSelector: formatLabelSelector(spec.selector) },
  });
  return items.filter(
    ({ metadata: { ownerReferences, deletionTimestamp } }) =>
      deletionTimestamp === undefined && ownerReferences?.some(({ uid }) => uid === metadata.uid),
  );
}

/** In this version, because another controller may have given it a label since it was read. */
async function label(applier: Applier, pod: Pod, revision: string): Promise<void> {
  applier.assertMayWrite();
  await applier.client.json(labelRequest(identityOf(pod.metadata), revision));
}

function labelRequest(
  pod: Omit<Identity, "resourceVersion" | "generation"> & { readonly resourceVersion: string | undefined },
  revision: string,
): KubeRequest {
  return patchRequest(PODS, pod, { metadata: { labels: { [REVISION_HASH_LABEL]: revision } } });
}
