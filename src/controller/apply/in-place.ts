import { CONTROLLER_FIELD_MANAGER } from "../../crd/names.ts";
import type { KubeClient } from "../../kube/client.ts";
import { isCode, isDeniedByWebhook } from "../../kube/errors.ts";
import { type Deployment, identityOf, type Pod, type ReplicaSet } from "../../kube/objects.ts";
import { DEPLOYMENTS, objectPath, PODS, REPLICA_SETS } from "../../kube/paths.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Store } from "../../runtime/store.ts";
import type { InPlaceAction } from "../decide/actions.ts";
import { type PodView, toPodView } from "../in-place/pod-view.ts";
import { toReplicaSetView } from "../in-place/replica-set-view.ts";
import type { InPlaceResizes } from "../in-place/resizes.ts";
import { toTemplateView } from "../in-place/template-view.ts";
import type { Fallback } from "../in-place/view.ts";
import { type DeploymentView, toDeploymentView } from "../observe/deployment-view.ts";
import type { WriteError } from "../observe/write-record.ts";
import { beginInPlace } from "./begin-in-place.ts";
import type { FailedSteps } from "./failed-steps.ts";
import { WRITE_TIMEOUT_MS } from "./pipe-patch.ts";
import { readDeployment } from "./whole-deployment.ts";
import { writeErrorOf } from "./write-error.ts";
import type { WriteHistory } from "./write-history.ts";

export interface InPlaceApplier {
  readonly client: Pick<KubeClient, "json">;
  readonly caches: { readonly pipes: Store<DeploymentView> };
  readonly resizes: InPlaceResizes;
  readonly writes: WriteHistory;
  readonly failedSteps: FailedSteps;
  readonly clock: Pick<Clock, "now">;
}

type Of<Type extends InPlaceAction["type"]> = Extract<InPlaceAction, { readonly type: Type }>;

/** Runs one step of a resize in place. If the API server rejects it, the pipe falls back to a rollout. */
export async function applyInPlace(applier: InPlaceApplier, action: InPlaceAction): Promise<void> {
  switch (action.type) {
    case "begin-in-place":
      // The failures of an earlier resize say nothing about this one, unless its Deployment is still paused.
      if (!action.pipe.isPausedByUs) applier.failedSteps.forget(action.pipe.metadata.uid);
      return beginInPlace(applier, action);
    case "resize-pod":
      return resizePod(applier, action);
    case "delete-replica-set":
      return applier.failedSteps.attempt(action.pipe, action.type, () => deleteReplicaSet(applier, action));
    case "update-replica-set":
      return updateReplicaSet(applier, action);
    case "read-template":
      return readTemplate(applier, action);
    case "resume":
      return applier.failedSteps.attempt(action.pipe, action.type, () => resume(applier, action));
    case "fall-back":
      return fallBack(applier, action);
  }
}

async function resizePod(applier: InPlaceApplier, action: Of<"resize-pod">): Promise<void> {
  const { resizes } = applier;
  const { pipe, pod, size } = action;
  const { uid } = pipe.metadata;
  resizes.resizing(uid, size, pod);
  try {
    const resized = await patchResources(applier, action);
    resizes.resized(uid, size, pod.metadata.uid);
    resizes.observePod(uid, resized);
  } catch (error) {
    // The pod is gone, or changed meanwhile; its watch shows that.
    if ((isCode(error, 409) || isPodGone(error)) && !isDeniedByWebhook(error)) return;
    const refusal = () => refusalOf(`pod ${pod.metadata.name}`, writeErrorOf(error), error);
    resizes.failed(uid, size, notSupported(error) ?? refusal());
  }
}

/**
 * The pipe falls back to a rollout if the API server refuses a write.
 *
 * @throws the error if the write can succeed later
 */
function refusalOf(what: string, problem: WriteError | undefined, error: unknown): Fallback {
  if (!problem || problem.reason === "WriteFailed") throw error;
  const reason = problem.reason === "Forbidden" ? "Forbidden" : "Refused";
  return { reason, message: `${what}: ${problem.message}` };
}

function isPodGone(error: unknown): boolean {
  return isCode(error, 404) && error.message.includes("not found");
}

function notSupported(error: unknown): Fallback | undefined {
  const isMissing = isCode(error, 404) || isCode(error, 405);
  return isMissing && !isDeniedByWebhook(error)
    ? { reason: "NotSupported", message: "the API server cannot resize pods" }
    : undefined;
}

async function patchResources(
  { client, resizes }: InPlaceApplier,
  { pipe, pod, container, resources }: Pick<Of<"resize-pod">, "pipe" | "pod" | "container" | "resources">,
): Promise<PodView> {
  const { name, namespace, uid } = pod.metadata;
  const write = () =>
    client.json<Pod>({
      method: "PATCH",
      path: `${objectPath(PODS, namespace, name)}/resize`,
      query: { fieldManager: CONTROLLER_FIELD_MANAGER },
      patchType: "application/strategic-merge-patch+json",
      body: { metadata: { uid }, spec: { containers: [{ name: container, resources }] } },
      timeoutMs: WRITE_TIMEOUT_MS,
      message: PODS.message,
    });
  return toPodView(await resizes.write(pipe.metadata.uid, write));
}

async function deleteReplicaSet(
  { client, resizes }: InPlaceApplier,
  { pipe, replicaSet, size }: Of<"delete-replica-set">,
): Promise<void> {
  const { name, namespace, uid, resourceVersion } = replicaSet.metadata;
  try {
    await client.json({
      method: "DELETE",
      path: objectPath(REPLICA_SETS, namespace, name),
      body: { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid, resourceVersion } },
      timeoutMs: WRITE_TIMEOUT_MS,
    });
  } catch (error) {
    resizes.failed(pipe.metadata.uid, size, refusalOf(`ReplicaSet ${name}`, writeErrorOf(error), error));
  }
}

async function updateReplicaSet(applier: InPlaceApplier, action: Of<"update-replica-set">): Promise<void> {
  const { pipe, replicaSet, size } = action;
  try {
    await patchReplicaSet(applier, action);
  } catch (error) {
    const { name } = replicaSet.metadata;
    // The template has the size, and the ReplicaSet has not, so a rollout begins when the Deployment is resumed.
    applier.resizes.fellBack(pipe, size, refusalOf(`ReplicaSet ${name}`, writeErrorOf(error), error));
  }
}

async function patchReplicaSet(
  { client, resizes }: InPlaceApplier,
  {
    pipe,
    replicaSet,
    container,
    resources,
  }: Pick<Of<"update-replica-set">, "pipe" | "replicaSet" | "container" | "resources">,
): Promise<void> {
  const { name, namespace, uid, resourceVersion } = replicaSet.metadata;
  const updated = await client.json<ReplicaSet>({
    method: "PATCH",
    path: objectPath(REPLICA_SETS, namespace, name),
    query: { fieldManager: CONTROLLER_FIELD_MANAGER },
    patchType: "application/strategic-merge-patch+json",
    body: {
      metadata: { uid, resourceVersion },
      spec: { template: { spec: { containers: [{ name: container, resources }] } } },
    },
    timeoutMs: WRITE_TIMEOUT_MS,
  });
  resizes.observeReplicaSet(pipe.metadata.uid, toReplicaSetView(updated));
}

async function readTemplate(
  { client, resizes }: InPlaceApplier,
  { pipe }: Of<"read-template">,
): Promise<void> {
  const current = await readDeployment(client, pipe);
  // The watch reports a deletion.
  if (!current) return;
  const { metadata, spec } = current;
  const { generation } = identityOf(metadata);
  resizes.observeTemplate(metadata.uid, { generation, ...toTemplateView(spec.template) });
}

async function resume(
  { client, caches, resizes }: InPlaceApplier,
  { pipe, fallback }: Of<"resume">,
): Promise<void> {
  const { name, namespace, uid, resourceVersion } = pipe.metadata;
  // Before the write, so that a later attempt resumes it in any case.
  if (fallback) resizes.fellBack(pipe, fallback.size, fallback);
  const resumed = await client.json<Deployment>({
    method: "PATCH",
    path: objectPath(DEPLOYMENTS, namespace, name),
    query: { fieldManager: CONTROLLER_FIELD_MANAGER },
    patchType: "application/strategic-merge-patch+json",
    body: { metadata: { uid, resourceVersion }, spec: { paused: null } },
    timeoutMs: WRITE_TIMEOUT_MS,
    message: DEPLOYMENTS.message,
  });
  caches.pipes.observe(toDeploymentView(resumed));
}

/** A pod that cannot be restored is replaced by the rollout. */
async function fallBack(applier: InPlaceApplier, action: Of<"fall-back">): Promise<void> {
  const { resizes } = applier;
  const { pipe, container, size, fallback, restore, restoreReplicaSet } = action;
  const { uid } = pipe.metadata;
  const restored = await Promise.allSettled(
    restore.map(async (each) =>
      resizes.observePod(uid, await patchResources(applier, { pipe, container, ...each })),
    ),
  );
  if (restoreReplicaSet) {
    // The pipe is resized in place until the Deployment controller begins the rollout.
    resizes.failed(uid, size, fallback);
    const write = () => patchReplicaSet(applier, { pipe, container, ...restoreReplicaSet });
    await applier.failedSteps.attempt(pipe, "restore-replica-set", write);
  } else {
    resizes.fellBack(pipe, size, fallback);
  }
  const failed = restored.find((each) => each.status === "rejected");
  if (failed) throw failed.reason;
}
