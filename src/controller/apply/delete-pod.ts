import { isConflict } from "../../kube/errors.ts";
import type { Pod } from "../../kube/objects.ts";
import { objectPath, PODS } from "../../kube/paths.ts";
import type { DeletePodAction } from "../actions.ts";
import { toPodView } from "../observe/pod-view.ts";
import type { WriteError } from "../observe/write-record.ts";
import { type Applier, CONFLICT, readCurrent } from "./applier.ts";
import { WRITE_TIMEOUT_MS } from "./pipe-patch.ts";
import { writeErrorOf } from "./write-error.ts";

/** The version protects a pod that became ready since it was seen. */
export async function deletePod(applier: Applier, { pod }: DeletePodAction): Promise<WriteError | undefined> {
  const { client, caches, writes } = applier;
  const { name, namespace, uid, resourceVersion, generation } = pod.metadata;
  const attempt = writes.begin(uid, "delete-pod", pod.templateHash);
  try {
    await client.json({
      method: "DELETE",
      path: objectPath(PODS, namespace, name),
      body: { preconditions: { uid, resourceVersion } },
      timeoutMs: WRITE_TIMEOUT_MS,
    });
    writes.done(attempt);
    return undefined;
  } catch (cause) {
    const error = isConflict(cause) ? CONFLICT : writeErrorOf(cause);
    writes.failed(attempt, error ?? CONFLICT, generation);
    if (!error) throw cause;
    if (error !== CONFLICT) return error;
    // The watch reports a deletion.
    const current = await readCurrent<Pod>(applier, PODS, caches.pods, pod);
    if (current) caches.pods.observe(toPodView(current));
    return error;
  }
}
