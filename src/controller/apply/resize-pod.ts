import { isAboveNode, isConflict, isMissingSubresource, isRefusedSize } from "../../kube/errors.ts";
import type { Pod } from "../../kube/objects.ts";
import { PODS } from "../../kube/paths.ts";
import type { PodAction } from "../actions.ts";
import { runsOf } from "../in-place/resize-pods.ts";
import { toPodView } from "../observe/pod-view.ts";
import { formatResources, hasResources } from "../observe/resources.ts";
import type { WriteError, WriteRecord } from "../observe/write-record.ts";
import { errorOf, isRefusal } from "../retry.ts";
import { type Applier, CONFLICT, readCurrent } from "./applier.ts";
import { patchOf } from "./pipe-patch.ts";
import { writeErrorOf } from "./write-error.ts";

/** The version protects a pod that changed since it was seen, for example a resize by the next leader. */
export async function resizePod(applier: Applier, action: PodAction): Promise<WriteError | undefined> {
  const { client, caches, writes } = applier;
  const { type, pod, container, resources, isRequested = false } = action;
  const request = patchOf(PODS, pod.metadata, { spec: { containers: [{ name: container, resources }] } });
  if (isRequested) writes.forget(pod.metadata.uid, type);
  const attempt = writes.begin(pod.metadata.uid, type, formatResources(resources), { runs: runsOf(pod) });
  const opposite = type === "resize-pod" ? "return-pod" : "resize-pod";
  // The write changes the result of the last one of these, which may then be done again.
  if (!wasRefused(writes.get(attempt.uid, opposite))) writes.forget(attempt.uid, opposite);
  try {
    const resized = await client.json<Pod>({ ...request, path: `${request.path}/resize` });
    const view = toPodView(resized);
    caches.pods.observe(view);
    writes.forget(attempt.uid, opposite);
    const stored = view.containers.find(({ name }) => name === container)?.resources;
    if (hasResources(stored, resources)) {
      writes.done(attempt);
      return undefined;
    }
    writes.failed(attempt, REVERTED, pod.metadata.generation);
    return REVERTED;
  } catch (cause) {
    // Without a response, the watch shows whether the pod has the size.
    const known = isMissingSubresource(cause) ? NOT_SUPPORTED : writeErrorOf(cause);
    const error = known ? withFallback(known, cause) : CONFLICT;
    writes.failed(attempt, error, pod.metadata.generation);
    if (known) return error;
    if (!isConflict(cause)) throw cause;
    // The watch reports a deletion.
    const current = await readCurrent<Pod>(applier, PODS, caches.pods, pod);
    if (current) caches.pods.observe(toPodView(current));
    return error;
  }
}

/** A refused write changed nothing. It is not repeated at once because its opposite is tried, and perhaps refused too. */
function wasRefused(record: WriteRecord | undefined): boolean {
  const error = errorOf(record);
  return error !== undefined && isRefusal(error.reason);
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
function withFallback(problem: WriteError, error: unknown): WriteError {
  const { reason, fallback } = problem;
  if (fallback || reason === "WriteFailed" || isRefusedSize(error)) return problem;
  // Another node may be larger, and a rollout begins only if one is.
  if (isAboveNode(error)) return { ...problem, fallback: "Infeasible" };
  return { ...problem, fallback: reason === "Forbidden" ? "Forbidden" : "Refused" };
}
