import { CONTROLLER_FIELD_MANAGER } from "../../crd/names.ts";
import type { KubeRequest } from "../../kube/client.ts";
import { DEPLOYMENTS, objectPath } from "../../kube/paths.ts";
import { LAST_ROLLOUT_ANNOTATION } from "../names.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import { type Allotment, resourcesFor } from "../observe/resources.ts";

/** An admission webhook may take 30 s to respond. */
export const WRITE_TIMEOUT_MS = 35_000;

/**
 * The uid protects another object with the pipe's name; the resourceVersion protects changes since our view.
 *
 * @param lastRollout value of the annotation (formatLastRollout)
 */
export function pipePatch(
  { metadata }: DeploymentView,
  lastRollout: string,
  spec: object | undefined,
): KubeRequest {
  const { name, namespace, uid, resourceVersion } = metadata;
  const annotations = { [LAST_ROLLOUT_ANNOTATION]: lastRollout };
  return {
    method: "PATCH",
    path: objectPath(DEPLOYMENTS, namespace, name),
    query: { fieldManager: CONTROLLER_FIELD_MANAGER },
    patchType: "application/strategic-merge-patch+json",
    body: { metadata: { uid, resourceVersion, annotations }, spec },
    timeoutMs: WRITE_TIMEOUT_MS,
    message: DEPLOYMENTS.message,
  };
}

/** A strategic merge patch owns only the leaves that it sets. */
export function resourcesPatch(
  { pipe, container }: { readonly pipe: DeploymentView; readonly container: string },
  size: Allotment,
): object {
  const resources = resourcesFor(size, pipe.cpuLimitFollows);
  return { template: { spec: { containers: [{ name: container, resources }] } } };
}

/** Without a pause, the new template would start a rollout. */
export function commitPatch(
  pipe: { readonly pipe: DeploymentView; readonly container: string },
  size: Allotment,
): object {
  return { ...resourcesPatch(pipe, size), paused: true };
}
