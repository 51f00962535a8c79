import { CONTROLLER_FIELD_MANAGER } from "../../crd/names.ts";
import type { KubeRequest } from "../../kube/client.ts";
import type { Identity, ManagedFields } from "../../kube/objects.ts";
import { objectPath, type Resource } from "../../kube/paths.ts";
import { LAST_ROLLOUT_ANNOTATION } from "../names.ts";
import type { PipeView } from "../observe/pipe-view.ts";
import { type Allotment, resourcesFor } from "../observe/resources.ts";
import { KINDS } from "../observe/workloads/kinds.ts";

/** An admission webhook may take 30 s to respond. */
export const WRITE_TIMEOUT_MS = 35_000;

/** @param lastRollout value of the annotation (formatLastRollout); absent if something removes the annotation */
export function pipePatch(
  { kind, metadata }: PipeView,
  lastRollout: string | undefined,
  spec: object | undefined,
  managedFields?: readonly ManagedFields[],
): KubeRequest {
  const annotations = { [LAST_ROLLOUT_ANNOTATION]: lastRollout };
  return patchOf(KINDS[kind].resource, metadata, {
    metadata: { ...(lastRollout === undefined ? {} : { annotations }), managedFields },
    spec,
  });
}

/**
 * A patch of an object. The uid protects another object with its name; the resourceVersion protects changes since our
 * view.
 */
export function patchOf(
  resource: Resource,
  { name, namespace, uid, resourceVersion }: Identity,
  { metadata, spec }: { readonly metadata?: object; readonly spec: object | undefined },
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

/** A strategic merge patch owns only the leaves that it sets. */
export function resourcesPatch(
  { pipe, container }: { readonly pipe: PipeView; readonly container: string },
  size: Allotment,
): object {
  const resources = resourcesFor(size, pipe.cpuLimitFollows);
  return { template: { spec: { containers: [{ name: container, resources }] } } };
}
