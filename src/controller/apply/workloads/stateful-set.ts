import { CONTROLLER_FIELD_MANAGER } from "../../../crd/names.ts";
import type { KubeRequest } from "../../../kube/client.ts";
import { isConflict, isWithoutDryRun } from "../../../kube/errors.ts";
import { isManagedBy } from "../../../kube/managers.ts";
import { identityOf, isBeingDeleted } from "../../../kube/objects.ts";
import { PODS } from "../../../kube/paths.ts";
import type { Pod } from "../../../kube/pods.ts";
import { staleResources } from "../../in-place/fall-back.ts";
import { REVISION_HASH_LABEL } from "../../names.ts";
import type { Fallback } from "../../observe/last-rollout.ts";
import type { PipeView } from "../../observe/pipe-view.ts";
import { toPodView } from "../../observe/pod-view.ts";
import { resourcesFor, sizeOfAllotment } from "../../observe/resources.ts";
import { HOLD } from "../../observe/workloads/stateful-set.ts";
import { type Applier, listSelected, readPipe, type WholeWorkload } from "../applier.ts";
import { asDryRun, patchRequest, type Target } from "../requests.ts";
import { CONFLICT, writeErrorOf } from "../write-error.ts";
import { type CommitKind, type NextStep, recordOfHold } from "./workload.ts";

/** Kubernetes replaces a pod whose label does not name the revision of the template. A commit holds such pods. */
export const STATEFUL_SET: CommitKind = {
  hold: (pipe) => partitionPatch(pipe, HOLD),
  release: (pipe) => partitionPatch(pipe, 0),

  /** Lists the pods, and makes a dry run of a label: they are held only if they can get another label during the hold. */
  async prepare(applier, { pipe }) {
    const whole = await readPipe<WholeWorkload>(applier, pipe);
    const [pod] = whole ? await readPods(applier, whole) : [];
    // In any version, because only its label counts.
    const target = pod && { ...identityOf(pod.metadata), resourceVersion: undefined };
    try {
      if (target) await applier.client.json(asDryRun(labelRequest(target, noRevisionOf(pipe))));
    } catch (error) {
      if (!isWithoutDryRun(error)) throw error;
    }
    return { managedFields: whole && recordOfHold(pipe, whole) };
  },

  async nextStep(applier, { whole, view }, { isOverdue, fallback, mayReplacePods }, canLabel) {
    // With labels, a commit is overdue only when `commitMs` has passed since their write (in-place/commit-rules.ts).
    const { metadata } = view;
    const labels = applier.writes.get(metadata.uid, "continue-commit")?.outcome;
    const isLongLabeled = isOverdue && labels?.type === "done" && labels.generation === metadata.generation;
    const state: Omit<HeldPods, "pods" | "canLabel"> = {
      isOverdue,
      mayReplacePods,
      isLongLabeled,
      label(held, revision) {
        const outdated = held.flatMap(({ pod }) => pod ?? []);
        return label(applier, outdated, revision);
      },
    };
    let pods: readonly Pod[];
    try {
      pods = await readPods(applier, whole);
    } catch (cause) {
      const error = writeErrorOf(cause);
      if (!isOverdue || error?.reason !== "Forbidden") throw cause;
      // The pods must not stay held because a permission is missing that was there when the commit began.
      const refused = fallback ?? { reason: "Forbidden", message: error.message };
      const counted = countedPods(whole, view, labels?.type === "done");
      const step = heldStep(view, { ...state, pods: counted, canLabel: false, refused });
      if (step.type === "wait") throw cause;
      return step;
    }
    return heldStep(view, { ...state, pods: pods.map(heldPodOf), canLabel, refused: fallback });
  },

  /** Gives pods that lack the size of the template a label that names no revision, so that Kubernetes replaces them. */
  async replacePods(applier, whole, { pipe, container, kept }) {
    const target = pipe.size && resourcesFor(pipe.size, pipe.cpuLimitFollows);
    const pods = target ? await readPods(applier, whole) : [];
    const stale = pods.filter((pod) => {
      const own = toPodView(pod).containers.find(({ name }) => name === container);
      return target && staleResources(own, target) && !kept.includes(pod.metadata.uid);
    });
    if (stale.length === 0) return CONFLICT;
    await label(applier, stale, noRevisionOf(pipe));
    return undefined;
  },
};

export interface HeldPod {
  /** The revision in its label, which Kubernetes compares with that of the template. */
  readonly revision: string | undefined;
  /** True if the controller set its label, in this commit or in an earlier one. */
  readonly isLabeledByUs: boolean;
  /** Absent if it is known only from a count. */
  readonly pod?: Pod;
}

/** A commit in progress, with the pods of the StatefulSet that are not terminating. */
export interface HeldPods {
  readonly pods: readonly HeldPod[];
  /** Gives pods the label of a revision. Without pods, the time to see the labels begins now. */
  readonly label: (pods: readonly HeldPod[], revision: string) => Promise<void>;
  /** The commit took too long, or a write was refused. */
  readonly isOverdue: boolean;
  readonly canLabel: boolean;
  /** Why labels would be refused again. */
  readonly refused?: Fallback | undefined;
  /** Pods may be replaced if nothing else helps. */
  readonly mayReplacePods: boolean;
  /** All pods got their labels so long ago that Kubernetes has seen them, whatever it counts. */
  readonly isLongLabeled: boolean;
}

/** Decides one step of a commit from what was read just before it. */
export function heldStep(pipe: PipeView, held: HeldPods): NextStep {
  const { rollout, inTurn, lastRollout } = pipe;
  const { pods, isOverdue, refused, mayReplacePods } = held;
  const { template, templateHash: revision = "", needsHold = true } = inTurn ?? {};
  // With the label of the newest revision, a pod of another template would never be replaced.
  if (lastRollout?.template !== template) return { type: "release", fallback: CHANGED };
  const next = rollout.isSeen ? stepToRevision(revision, pipe, held) : undefined;
  if (next) return next;
  if (!isOverdue) return { type: "wait" };
  // Nothing replaces the pods, so the template can stay. When their owner lets rollouts replace them, those without the
  // label are replaced.
  if (!needsHold && refused) return { type: "release" };
  // All pods still have the revision of the old template, so none is replaced if the template returns to it.
  if (pods.every((pod) => pod.revision === lastRollout?.committedRevision)) return takeBack(pipe, refused);
  if (!rollout.isSeen || !refused || !mayReplacePods) return { type: "wait" };
  return { type: "release", fallback: refused };
}

function takeBack({ lastRollout, cpuLimitFollows }: PipeView, refused: Fallback | undefined): NextStep {
  const old = lastRollout?.lastGoodSize;
  // Nothing shows the old size, so the pods are replaced.
  if (!old) return { type: "release", fallback: refused ?? UNKNOWN_SIZE };
  const resources = resourcesFor(old, cpuLimitFollows);
  return { type: "take-back", resources, old: sizeOfAllotment(old) ?? old };
}

/**
 * The pods as Kubernetes counts them. It may not have seen the last labels yet.
 *
 * @param isLabeled the last write of labels succeeded, so at least one pod has the newest revision
 */
function countedPods(
  { status }: WholeWorkload,
  { inTurn, lastRollout, rollout }: PipeView,
  isLabeled: boolean,
): readonly HeldPod[] {
  const updated = Math.max(isLabeled ? 1 : 0, status?.updatedReplicas ?? 0);
  return Array.from({ length: Math.max(rollout.replicas, updated) }, (_, at) => ({
    revision: at < updated ? inTurn?.templateHash : lastRollout?.committedRevision,
    isLabeledByUs: false,
  }));
}

/** @returns `undefined` if pods need the label and may not get it */
function stepToRevision(
  revision: string,
  { rollout, lastRollout }: PipeView,
  { pods, label, canLabel, isLongLabeled }: HeldPods,
): NextStep | undefined {
  const others = pods.filter((pod) => pod.revision !== revision);
  // Pods of the committed revision, and pods that were labeled before the owner changed the size again, belong to this
  // template. A pod of any other revision has another template, so it must not get the label.
  const outdated = others.filter(
    (pod) => pod.revision === lastRollout?.committedRevision || pod.isLabeledByUs,
  );
  const relabel: NextStep = { type: "relabel", write: () => label(outdated, revision) };
  if (outdated.length > 0) return canLabel ? relabel : undefined;
  // Kubernetes replaces a pod whose label it has not seen yet: it watches pods and StatefulSets apart from each other.
  if (!rollout.isUpdated && !isLongLabeled) return relabel;
  return { type: "release", ...(others.length > 0 ? { fallback: CHANGED } : {}) };
}

/** Kubernetes makes names of revisions from digits and consonants, so it gives none of them this name. */
function noRevisionOf({ metadata }: PipeView): string {
  return `${metadata.name}-outdated`;
}

const CHANGED: Fallback = {
  reason: "NotSettled",
  message: "its owner changed the pod template meanwhile",
};

const UNKNOWN_SIZE: Fallback = {
  reason: "NotSettled",
  message: "something removed the old size from the annotation of the StatefulSet during the commit",
};

/** @param hold what is added to the partition of the owner */
function partitionPatch({ inTurn }: PipeView, hold: number): object {
  const { partition = 0, needsHold = false } = inTurn ?? {};
  return needsHold ? { updateStrategy: { rollingUpdate: { partition: partition + hold } } } : {};
}

const REVISION_HASH = [["f:metadata", "f:labels", `f:${REVISION_HASH_LABEL}`]];

function heldPodOf(pod: Pod): HeldPod {
  const { labels, managedFields } = pod.metadata;
  const isLabeledByUs = isManagedBy(CONTROLLER_FIELD_MANAGER, managedFields, REVISION_HASH);
  return { revision: labels?.[REVISION_HASH_LABEL], isLabeledByUs, pod };
}

/** Reads the pods that are not terminating. */
async function readPods({ client }: Applier, whole: WholeWorkload): Promise<readonly Pod[]> {
  const selected = await listSelected(client, PODS, whole);
  return selected.filter(
    ({ metadata }) =>
      !isBeingDeleted(metadata) && metadata.ownerReferences?.some(({ uid }) => uid === whole.metadata.uid),
  );
}

/** Labels written at a time after the first, which shows whether they are refused. A shutdown leaves little time. */
const MAX_CONCURRENT_LABELS = 10;

/** Writes to the pods in the versions that were read, because another controller may have labeled one since then. */
async function label(applier: Applier, [first, ...others]: readonly Pod[], revision: string): Promise<void> {
  if (!first) return;
  const write = ({ metadata }: Pod) => {
    applier.assertMayWrite();
    return applier.client.json(labelRequest(identityOf(metadata), revision));
  };
  await write(first);
  const left = [...others];
  const results = await Promise.allSettled(
    Array.from({ length: MAX_CONCURRENT_LABELS }, async () => {
      for (let pod = left.shift(); pod; pod = left.shift()) await write(pod);
    }),
  );
  const errors = results.flatMap((each): unknown[] => (each.status === "rejected" ? [each.reason] : []));
  // After a conflict, the label may still be accepted, so a conflict is thrown before a refusal, which ends the commit.
  if (errors.length > 0) throw errors.find(isConflict) ?? errors[0];
}

function labelRequest(pod: Target, revision: string): KubeRequest {
  return patchRequest(PODS, pod, { metadata: { labels: { [REVISION_HASH_LABEL]: revision } } });
}
