import { CONTROLLER_FIELD_MANAGER } from "../../crd/names.ts";
import { formatSize } from "../../domain/size.ts";
import type { KubeClient } from "../../kube/client.ts";
import { isCode, KubeApiError } from "../../kube/errors.ts";
import type { Deployment, ObjectMeta, Pod, ReplicaSet } from "../../kube/objects.ts";
import { collectionPath, DEPLOYMENTS, objectPath, PODS, REPLICA_SETS } from "../../kube/paths.ts";
import type { Store } from "../../runtime/store.ts";
import type { InPlaceAction } from "../decide/actions.ts";
import { type PodView, toPodView } from "../in-place/pod-view.ts";
import { toReplicaSetView } from "../in-place/replica-set-view.ts";
import type { InPlaceResizes } from "../in-place/resizes.ts";
import type { Fallback } from "../in-place/view.ts";
import { CONTAINER_ANNOTATION, DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../names.ts";
import { type DeploymentView, toDeploymentView } from "../observe/deployment-view.ts";
import type { WriteError } from "../observe/write-record.ts";
import { commitPatch, pipePatch } from "./pipe-patch.ts";
import { writeErrorOf } from "./write-error.ts";

export interface InPlaceApplier {
  readonly client: Pick<KubeClient, "json">;
  readonly caches: { readonly pipes: Store<DeploymentView> };
  readonly resizes: InPlaceResizes;
}

type Of<Type extends InPlaceAction["type"]> = Extract<InPlaceAction, { readonly type: Type }>;

/** Runs one step of a resize in place. If the API server rejects it, the pipe gets a rollout. */
export async function applyInPlace(applier: InPlaceApplier, action: InPlaceAction): Promise<void> {
  switch (action.type) {
    case "begin-in-place":
      return begin(applier, action);
    case "resize-pod":
      return resizePod(applier, action);
    case "delete-replica-set":
      return deleteReplicaSet(applier, action);
    case "update-replica-set":
      return updateReplicaSet(applier, action);
    case "resume":
      return resume(applier, action);
    case "fall-back":
      return fallBack(applier, action);
  }
}

/** A Deployment with all of its fields. */
interface WholeDeployment extends Deployment {
  readonly spec: Deployment["spec"] & {
    readonly selector: LabelSelector;
    readonly template: { readonly metadata?: Partial<ObjectMeta> };
  };
}

interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
    readonly values?: readonly string[];
  }[];
}

async function begin({ client, resizes }: InPlaceApplier, action: Of<"begin-in-place">): Promise<void> {
  const { pipe, rollout } = action;
  const size = formatSize(rollout.size);
  const { name, namespace, uid } = pipe.metadata;
  const { items } = await client.json<{ readonly items: readonly WholeDeployment[] }>({
    path: collectionPath(DEPLOYMENTS, namespace),
    query: { fieldSelector: `metadata.name=${name}` },
  });
  const current = items.find((item) => item.metadata.uid === uid);
  if (!current) return;
  const fallback = pipe.isPausedByUs
    ? undefined
    : (notRestricted(action, current) ?? (await templateProblem(client, action, current)));
  if (fallback) return resizes.fellBack(pipe, size, fallback);
  await resizes.begin(pipe, size, selectorText(current.spec.selector));
}

/**
 * The admission policies of the chart allow a resize only of pods and ReplicaSets that say themselves that they belong
 * to a pipe, and which container is to be resized.
 */
function notRestricted(
  { pipe, container }: Of<"begin-in-place">,
  { spec: { template } }: WholeDeployment,
): Fallback | undefined {
  const { labels = {}, annotations = {} } = template.metadata ?? {};
  const required = { [SERVICE_LABEL]: pipe.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
  const missing = Object.entries(required).filter(([key, value]) => labels[key] !== value);
  if (missing.length > 0) {
    const names = missing.map(([key, value]) => `${key}=${value}`).join(" and ");
    return { reason: "PodsNotLabeled", message: `its pod template does not have the label ${names}` };
  }
  const { containers } = template.spec;
  const named =
    annotations[CONTAINER_ANNOTATION] ?? (containers.length === 1 ? containers[0]?.name : undefined);
  if (named === container) return undefined;
  const message = `its pod template does not have the annotation ${CONTAINER_ANNOTATION}=${container}`;
  return { reason: "ContainerNotNamed", message };
}

/** If a webhook changes the template, it would not equal that of the ReplicaSet, and a rollout would start. */
async function templateProblem(
  client: InPlaceApplier["client"],
  { pipe, container, rollout }: Of<"begin-in-place">,
  current: WholeDeployment,
): Promise<Fallback | undefined> {
  const {
    message: _,
    query,
    ...request
  } = pipePatch(pipe, rollout, commitPatch({ pipe, container }, rollout.size));
  let committed: WholeDeployment;
  try {
    committed = await client.json({ ...request, query: { ...query, dryRun: "All" } });
  } catch (error) {
    const problem = writeErrorOf(error);
    if (!problem) throw error;
    return { reason: "Refused", message: problem.message };
  }
  const text = ({ spec }: WholeDeployment) => JSON.stringify(withoutSize(spec, container));
  if (text(committed) === text(current)) return undefined;
  return { reason: "TemplateChanged", message: "something changes the pod template at each write" };
}

function withoutSize({ paused: _, template, ...spec }: Deployment["spec"], name: string): object {
  const containers = template.spec.containers.map((container) =>
    container.name === name ? { ...container, resources: withoutAmounts(container.resources) } : container,
  );
  return { ...spec, template: { ...template, spec: { ...template.spec, containers } } };
}

function withoutAmounts(
  resources: Deployment["spec"]["template"]["spec"]["containers"][number]["resources"],
): object {
  const { cpu: _c, memory: _m, ...requests } = resources?.requests ?? {};
  const { cpu: _l, memory: _n, ...limits } = resources?.limits ?? {};
  return { requests, limits };
}

async function resizePod({ client, resizes }: InPlaceApplier, action: Of<"resize-pod">): Promise<void> {
  const { pipe, pod } = action;
  const { uid } = pipe.metadata;
  try {
    const resized = await patchResources(client, action);
    resizes.resized(uid, pod.metadata.uid);
    resizes.observePod(uid, resized);
  } catch (error) {
    // The pod is gone, or changed meanwhile; its watch shows that.
    if (isCode(error, 409) || isPodGone(error)) return;
    const what = `pod ${pod.metadata.name}`;
    rollOutIf(resizes, action, what, writeErrorOf(error) ?? notSupported(error), error);
  }
}

/**
 * The pipe gets a rollout if the API server refuses a write.
 *
 * @throws the error if the write can succeed later
 */
function rollOutIf(
  resizes: InPlaceResizes,
  { pipe, size }: Of<"resize-pod" | "delete-replica-set" | "update-replica-set">,
  what: string,
  problem: WriteError | undefined,
  error: unknown,
): void {
  if (!problem || problem.reason === "WriteFailed") throw error;
  const reason = problem.reason === "Forbidden" ? "Forbidden" : "Refused";
  resizes.fellBack(pipe, size, { reason, message: `${what}: ${problem.message}` });
}

function isPodGone(error: unknown): boolean {
  return isCode(error, 404) && error.message.includes("not found");
}

function notSupported(error: unknown): { readonly reason: "Refused"; readonly message: string } | undefined {
  const isMissing = error instanceof KubeApiError && (error.code === 404 || error.code === 405);
  return isMissing ? { reason: "Refused", message: "the API server cannot resize pods" } : undefined;
}

async function patchResources(
  client: InPlaceApplier["client"],
  { pod, container, resources }: Pick<Of<"resize-pod">, "pod" | "container" | "resources">,
): Promise<PodView> {
  const { name, namespace, uid } = pod.metadata;
  const resized = await client.json<Pod>({
    method: "PATCH",
    path: `${objectPath(PODS, namespace, name)}/resize`,
    query: { fieldManager: CONTROLLER_FIELD_MANAGER },
    patchType: "application/strategic-merge-patch+json",
    body: { metadata: { uid }, spec: { containers: [{ name: container, resources }] } },
    message: PODS.message,
  });
  return toPodView(resized);
}

async function deleteReplicaSet(
  { client, resizes }: InPlaceApplier,
  action: Of<"delete-replica-set">,
): Promise<void> {
  const { name, namespace, uid, resourceVersion } = action.replicaSet.metadata;
  try {
    await client.json({
      method: "DELETE",
      path: objectPath(REPLICA_SETS, namespace, name),
      body: { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid, resourceVersion } },
    });
  } catch (error) {
    rollOutIf(resizes, action, `ReplicaSet ${name}`, writeErrorOf(error), error);
  }
}

async function updateReplicaSet(
  { client, resizes }: InPlaceApplier,
  action: Of<"update-replica-set">,
): Promise<void> {
  const { pipe, replicaSet, container, resources } = action;
  const { name, namespace, uid, resourceVersion } = replicaSet.metadata;
  try {
    const updated = await client.json<ReplicaSet>({
      method: "PATCH",
      path: objectPath(REPLICA_SETS, namespace, name),
      query: { fieldManager: CONTROLLER_FIELD_MANAGER },
      patchType: "application/strategic-merge-patch+json",
      body: {
        metadata: { uid, resourceVersion },
        spec: { template: { spec: { containers: [{ name: container, resources }] } } },
      },
    });
    resizes.observeReplicaSet(pipe.metadata.uid, toReplicaSetView(updated));
  } catch (error) {
    rollOutIf(resizes, action, `ReplicaSet ${name}`, writeErrorOf(error), error);
  }
}

async function resume({ client, caches }: InPlaceApplier, { pipe }: Of<"resume">): Promise<void> {
  const { name, namespace, uid, resourceVersion } = pipe.metadata;
  const resumed = await client.json<Deployment>({
    method: "PATCH",
    path: objectPath(DEPLOYMENTS, namespace, name),
    query: { fieldManager: CONTROLLER_FIELD_MANAGER },
    patchType: "application/strategic-merge-patch+json",
    body: { metadata: { uid, resourceVersion }, spec: { paused: null } },
    message: DEPLOYMENTS.message,
  });
  caches.pipes.observe(toDeploymentView(resumed));
}

/** A pod that cannot be restored is replaced by the rollout. */
async function fallBack({ client, resizes }: InPlaceApplier, action: Of<"fall-back">): Promise<void> {
  const { pipe, container, size, fallback, restore, resources } = action;
  const restored = await Promise.allSettled(
    restore.map((pod) => patchResources(client, { pod, container, resources })),
  );
  resizes.fellBack(pipe, size, fallback);
  const failed = restored.find((each) => each.status === "rejected");
  if (failed) throw failed.reason;
}

/** As in the query of a list. */
function selectorText({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  const labels = Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`);
  const expressions = matchExpressions.map(({ key, operator, values = [] }) => {
    const texts = {
      In: `${key} in (${values.join(",")})`,
      NotIn: `${key} notin (${values.join(",")})`,
      Exists: key,
      DoesNotExist: `!${key}`,
    };
    return texts[operator];
  });
  return [...labels, ...expressions].join(",");
}
