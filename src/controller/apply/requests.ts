import { CONTROLLER_FIELD_MANAGER } from "../../crd/names.ts";
import type { KubeRequest } from "../../kube/client.ts";
import type { Identity, ManagedFields } from "../../kube/objects.ts";
import { objectPath, PODS, type Resource } from "../../kube/paths.ts";
import { LAST_ROLLOUT_ANNOTATION } from "../names.ts";
import { formatLastRollout, type LastRollout } from "../observe/last-rollout.ts";
import type { PipeView } from "../observe/pipe-view.ts";
import { type Allotment, type Resources, resourcesFor, type SomeResources } from "../observe/resources.ts";
import { KINDS } from "../observe/workloads/kinds.ts";

/*
 * The requests of all actions that write. The uid protects another object with the same name; the resourceVersion
 * protects changes since our view.
 */

/** An admission webhook may take 30 s to respond. */
const WRITE_TIMEOUT_MS = 35_000;

export interface Target extends Pick<Identity, "name" | "namespace" | "uid"> {
  /** Absent if the object may be in any version. */
  readonly resourceVersion?: string | undefined;
}

/** A strategic merge patch makes its field manager the owner of only those leaves that it changes. */
export function patchRequest(
  resource: Resource,
  { name, namespace, uid, resourceVersion }: Target,
  { metadata, spec }: { readonly metadata?: object; readonly spec?: object | undefined },
): KubeRequest {
  return {
    method: "PATCH",
    path: objectPath(resource, namespace, name),
    query: { fieldManager: CONTROLLER_FIELD_MANAGER },
    patchType: "application/strategic-merge-patch+json",
    body: { metadata: { uid, resourceVersion, ...metadata }, spec },
    timeoutMs: WRITE_TIMEOUT_MS,
    message: resource.message,
  };
}

/** Resizes a container of a pod in place. */
export function resizeRequest(pod: Target, container: string, resources: SomeResources): KubeRequest {
  const request = patchRequest(PODS, pod, { spec: { containers: [{ name: container, resources }] } });
  return { ...request, path: `${request.path}/resize` };
}

/**
 * Patches a workload and its annotation.
 *
 * @param rollout absent to leave the annotation as it is
 * @param managedFields replaces those of the workload
 */
export function pipeRequest(
  { kind, metadata }: PipeView,
  rollout: LastRollout | undefined,
  spec: object | undefined,
  managedFields?: readonly ManagedFields[],
): KubeRequest {
  const annotations = rollout && { [LAST_ROLLOUT_ANNOTATION]: formatLastRollout(rollout, metadata.uid) };
  return patchRequest(KINDS[kind].resource, metadata, {
    metadata: { ...(annotations && { annotations }), managedFields },
    spec,
  });
}

/** Tries a patch of a workload. */
export function pipeDryRun(
  pipe: PipeView,
  rollout: LastRollout,
  spec: object,
  managedFields?: readonly ManagedFields[],
): KubeRequest {
  return asDryRun(pipeRequest(pipe, rollout, spec, managedFields));
}

/** Turns a write into a dry run, which has no effect. */
export function asDryRun(request: KubeRequest): KubeRequest {
  return { ...request, query: { ...request.query, dryRun: "All" } };
}

export function deleteRequest(
  resource: Resource,
  { name, namespace, uid, resourceVersion }: Identity,
): KubeRequest {
  return {
    method: "DELETE",
    path: objectPath(resource, namespace, name),
    body: { preconditions: { uid, resourceVersion }, propagationPolicy: "Background" },
    timeoutMs: WRITE_TIMEOUT_MS,
  };
}

/** The part of a spec with the size of a pipe. */
export function sizePatch(
  { pipe, container }: { readonly pipe: PipeView; readonly container: string },
  size: Allotment,
): object {
  return templatePatch(container, resourcesFor(size, pipe.cpuLimitFollows));
}

/** The part of a spec with the resources of a container. */
export function templatePatch(container: string, resources: Resources): object {
  return { template: { spec: { containers: [{ name: container, resources }] } } };
}
