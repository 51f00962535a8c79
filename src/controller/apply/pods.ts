import { isAboveNode, isMissingSubresource, isRefusedSize, KubeUnreachableError } from "../../kube/errors.ts";
import { PODS } from "../../kube/paths.ts";
import type { Pod } from "../../kube/pods.ts";
import { keyOf } from "../../runtime/store.ts";
import type { DeletePodAction, Judging, PodAction } from "../actions.ts";
import { runsOf } from "../in-place/resize-pods.ts";
import { DATABASE_TYPE, TYPE_LABEL } from "../names.ts";
import type { PipeView } from "../observe/pipe-view.ts";
import { type PodView, toPodView } from "../observe/pod-view.ts";
import { formatAllotment, hasResources } from "../observe/resources.ts";
import { nameOf } from "../observe/workloads/kinds.ts";
import type { WriteError } from "../observe/write-record.ts";
import {
  type Aim,
  type Applier,
  attempt,
  attemptOn,
  listSelected,
  type Result,
  readCurrent,
  readPipe,
  type WholeWorkload,
} from "./applier.ts";
import { deleteRequest, resizeRequest } from "./requests.ts";
import { CONFLICT, writeErrorOf } from "./write-error.ts";

/** The resourceVersion protects a pod that has changed since it was seen. The next leader may have resized it. */
export function resizePod(applier: Applier, action: PodAction): Promise<WriteError | undefined> {
  const { client, writes } = applier;
  const { type, pod, container, resources, isRequested = false } = action;
  const { uid } = pod.metadata;
  if (isRequested) writes.forget(uid, type);
  // This write undoes the last opposite one, which may then be needed again. One that failed still counts.
  const opposite = type === "resize-pod" ? "return-pod" : "resize-pod";
  if (writes.get(uid, opposite)?.outcome.type === "done") writes.forget(uid, opposite);
  const aim = { purpose: type, subject: formatAllotment(resources), runs: runsOf(pod) };
  /**
   * Without a response, only a read shows whether the write succeeded. The attempt stays in flight until then, so no
   * status claims the old size. It then ends with the error of the write, whatever the read shows.
   */
  const readUnanswered = async (cause: unknown): Promise<never> => {
    if (cause instanceof KubeUnreachableError) await refreshPod(applier, pod).catch(() => undefined);
    throw cause;
  };
  const write = async () => {
    const request = resizeRequest(pod.metadata, container, resources);
    const view = observePod(applier, await client.json<Pod>(request).catch(readUnanswered));
    const stored = view.containers.find(({ name }) => name === container)?.resources;
    return { error: hasResources(stored, resources) ? undefined : REVERTED };
  };
  return attemptOn(applier, pod, aim, write, {
    errorOf: resizeErrorOf,
    refresh: () => refreshPod(applier, pod),
  });
}

/** The resourceVersion protects a pod that has become ready since it was seen. */
export function deletePod(applier: Applier, { pod }: DeletePodAction): Promise<WriteError | undefined> {
  const aim = { purpose: "delete-pod", subject: pod.templateHash } as const;
  const write = async () => {
    await applier.client.json(deleteRequest(PODS, pod.metadata));
    return {};
  };
  return attemptOn(applier, pod, aim, write, {
    errorOf: writeErrorOf,
    refresh: () => refreshPod(applier, pod),
  });
}

async function refreshPod(applier: Applier, pod: PodView): Promise<void> {
  const { pods } = applier.caches;
  // The watch reports a deletion.
  const current = await readCurrent<Pod>(applier, PODS, pods, pod);
  if (current) observePod(applier, current);
}

/** Makes a write to a pipe that may be a judgment about its pods. */
export function attemptJudged(
  applier: Applier,
  { pipe, judged }: Judging & { readonly pipe: PipeView },
  aim: Aim,
  write: () => Promise<Result>,
): Promise<WriteError | undefined> {
  if (!judged) return attempt(applier, pipe, aim, write);
  return attempt(applier, pipe, aim, async () => {
    const error = await rejudge(applier, pipe, judged);
    if (error) return { error };
    applier.assertMayWrite();
    return write();
  });
}

/**
 * Reads the pods of a pipe, and stores what the watch has not shown yet. Until the permission to read them is back, the
 * view of them counts.
 *
 * @returns a conflict if they are not as they were seen
 */
async function rejudge(
  applier: Applier,
  pipe: PipeView,
  seen: readonly PodView[],
): Promise<WriteError | undefined> {
  try {
    const whole = await readPipe<WholeWorkload>(applier, pipe);
    if (!whole) return CONFLICT;
    const present = await readPods(applier, pipe, whole);
    const known = new Map(seen.map(({ metadata }) => [metadata.uid, metadata.resourceVersion]));
    const gone = seen.filter((pod) => !present.some(({ metadata }) => metadata.uid === pod.metadata.uid));
    for (const pod of present) applier.caches.pods.observe(pod);
    for (const pod of gone) applier.caches.pods.leave(pod);
    const isSame = present.every(({ metadata }) => known.get(metadata.uid) === metadata.resourceVersion);
    return isSame && gone.length === 0 ? undefined : CONFLICT;
  } catch (cause) {
    if (writeErrorOf(cause)?.reason === "Forbidden") return undefined;
    throw cause;
  }
}

/** Reads the pods that the watch would show for a pipe. */
async function readPods(
  { client }: Applier,
  pipe: PipeView,
  whole: WholeWorkload,
): Promise<readonly PodView[]> {
  const selected = await listSelected(client, PODS, whole);
  return selected
    .filter(({ metadata }) => metadata.labels?.[TYPE_LABEL] === DATABASE_TYPE)
    .map(toPodView)
    .filter(({ pipeName }) => pipeName === nameOf(pipe));
}

/** Stores a response. A pod that lost its label may have left the watch already, so no event would remove it. */
function observePod({ caches: { pods } }: Pick<Applier, "caches">, pod: Pod): PodView {
  const view = toPodView(pod);
  if (pod.metadata.labels?.[TYPE_LABEL] !== DATABASE_TYPE) pods.leave(view);
  else if (pods.get(keyOf(pod))) pods.observe(view);
  return view;
}

const REVERTED: WriteError = {
  reason: "Refused",
  message:
    "something, probably an admission webhook, changes the resources in each resize before it is stored",
  fallback: "Reverted",
};

const NOT_SUPPORTED: WriteError = {
  reason: "Refused",
  message: "the API server cannot resize pods",
  fallback: "NotSupported",
};

/**
 * If the API server refuses the size for a running pod, it would refuse it for a new one too, so there is no fallback.
 * Other refusals are only about the resize.
 */
function resizeErrorOf(cause: unknown): WriteError | undefined {
  if (isMissingSubresource(cause)) return NOT_SUPPORTED;
  const error = writeErrorOf(cause);
  if (!error || error.reason === "WriteFailed" || isRefusedSize(cause)) return error;
  // Another node may be larger. The dry run of the rollout looks for one, unless people requested a retry.
  if (isAboveNode(cause)) return { ...error, fallback: "Infeasible" };
  return { ...error, fallback: error.reason === "Forbidden" ? "Forbidden" : "Refused" };
}
