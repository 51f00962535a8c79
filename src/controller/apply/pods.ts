import { isAboveNode, isConflict, isMissingSubresource, isRefusedSize } from "../../kube/errors.ts";
import { PODS } from "../../kube/paths.ts";
import type { Pod } from "../../kube/pods.ts";
import { keyOf } from "../../runtime/store.ts";
import type { DeletePodAction, PodAction } from "../actions.ts";
import { runsOf } from "../in-place/resize-pods.ts";
import { type PodView, toPodView } from "../observe/pod-view.ts";
import { formatAllotment, hasResources } from "../observe/resources.ts";
import type { WriteError } from "../observe/write-record.ts";
import { type Applier, readCurrent } from "./applier.ts";
import { deleteRequest, resizeRequest } from "./requests.ts";
import { CONFLICT, writeErrorOf } from "./write-error.ts";
import type { Attempt } from "./write-memory.ts";

/** The version protects a pod that changed since it was seen, for example a resize by the next leader. */
export function resizePod(applier: Applier, action: PodAction): Promise<WriteError | undefined> {
  const { client, caches, writes } = applier;
  const { type, pod, container, resources, isRequested = false } = action;
  const { uid } = pod.metadata;
  if (isRequested) writes.forget(uid, type);
  const begun = writes.begin(uid, type, formatAllotment(resources), { runs: runsOf(pod) });
  // The write changes the result of the last one of these, which may then be done again. One that failed still counts.
  const opposite = type === "resize-pod" ? "return-pod" : "resize-pod";
  if (writes.get(uid, opposite)?.outcome.type === "done") writes.forget(uid, opposite);
  const write = async () => {
    const view = toPodView(await client.json<Pod>(resizeRequest(pod.metadata, container, resources)));
    caches.pods.observe(view);
    const stored = view.containers.find(({ name }) => name === container)?.resources;
    return hasResources(stored, resources) ? undefined : REVERTED;
  };
  return attemptPod(applier, pod, begun, write, resizeErrorOf);
}

/** The version protects a pod that became ready since it was seen. */
export function deletePod(applier: Applier, { pod }: DeletePodAction): Promise<WriteError | undefined> {
  const { client, writes } = applier;
  const begun = writes.begin(pod.metadata.uid, "delete-pod", pod.templateHash);
  const write = async () => {
    await client.json(deleteRequest(PODS, pod.metadata));
    return undefined;
  };
  return attemptPod(applier, pod, begun, write, writeErrorOf);
}

/**
 * Writes to a pod, and records the outcome. Without a response, the watch shows whether the write succeeded.
 *
 * @param errorOf returns `undefined` for a conflict, and if the error is not about this pod
 * @returns the error of a failed write
 * @throws the error if it is not about this pod
 */
async function attemptPod(
  applier: Applier,
  pod: PodView,
  begun: Attempt,
  write: () => Promise<WriteError | undefined>,
  errorOf: (cause: unknown) => WriteError | undefined,
): Promise<WriteError | undefined> {
  const { caches, writes } = applier;
  const { generation } = pod.metadata;
  try {
    const error = await write();
    if (error) writes.failed(begun, error, generation);
    else writes.done(begun);
    return error;
  } catch (cause) {
    const error = errorOf(cause);
    writes.failed(begun, error ?? CONFLICT, generation);
    if (error) return error;
    if (!isConflict(cause)) throw cause;
    // The watch reports a deletion.
    const current = await readCurrent<Pod>(applier, PODS, caches.pods, pod);
    // No event would remove a pod that has left the watch, because it lost its label.
    if (current && caches.pods.get(keyOf(pod))) caches.pods.observe(toPodView(current));
    return CONFLICT;
  }
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

/** A size that the API server refuses for a running pod, it refuses for a new one too. Other refusals are of the resize. */
function resizeErrorOf(cause: unknown): WriteError | undefined {
  if (isMissingSubresource(cause)) return NOT_SUPPORTED;
  const error = writeErrorOf(cause);
  if (!error || error.reason === "WriteFailed" || isRefusedSize(cause)) return error;
  // Another node may be larger, and a rollout begins only if one is.
  if (isAboveNode(cause)) return { ...error, fallback: "Infeasible" };
  return { ...error, fallback: error.reason === "Forbidden" ? "Forbidden" : "Refused" };
}
