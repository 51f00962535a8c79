import { API_VERSION, CONTROLLER_FIELD_MANAGER, KIND, PIPE_SCALINGS } from "../../crd/names.ts";
import type { PipeFailure, PipeScaling } from "../../crd/pipe-scaling.ts";
import { formatSize } from "../../domain/size.ts";
import type { KubeClient } from "../../kube/client.ts";
import { isCode, isReplaced, isTerminating, isWithoutRight, KubeApiError } from "../../kube/errors.ts";
import type { Deployment, KubeObject } from "../../kube/objects.ts";
import { collectionPath, DEPLOYMENTS, objectPath } from "../../kube/paths.ts";
import type { Action } from "../decide/decide.ts";
import { clipped, REFUSED } from "../decide/failure.ts";
import { ATTEMPT_ANNOTATION, COMPLETED_SIZE_ANNOTATION, GIVEN_SIZE_ANNOTATION } from "../names.ts";
import type { Caches } from "../observe/caches.ts";
import { type DeploymentView, toDeploymentView } from "../observe/deployment-view.ts";
import { formatLastRollout } from "../observe/last-rollout.ts";
import { toPipeScalingView } from "../observe/pipe-scaling-view.ts";
import { type Allotment, formatAllotment, resourcesFor } from "../observe/resources.ts";

export interface Applier {
  readonly client: Pick<KubeClient, "json">;
  readonly caches: Caches;
  /** Throws when this process may no longer write (runtime/leader.ts). */
  readonly assertMayWrite: () => void;
}

/**
 * Does one action and puts the answer into the caches, so that the next look sees it.
 *
 * @returns the refusal, if the API server will not have this size for this pipe
 * @throws whatever else went wrong; a conflict means that our view was old
 */
export async function apply(applier: Applier, action: Action): Promise<PipeFailure | undefined> {
  applier.assertMayWrite();
  switch (action.type) {
    case "create-pipe-scaling":
      await createScaling(applier, action);
      return undefined;
    case "resize":
      return giveSize(applier, action);
    case "roll-back":
      await resize(applier, action.pipe, action.container, action.size, {});
      return undefined;
    case "adopt":
      await patchPipe(applier, action.pipe, { [GIVEN_SIZE_ANNOTATION]: formatSize(action.size) });
      return undefined;
    case "confirm-generation":
      await confirmGeneration(applier, action);
      return undefined;
  }
}

async function createScaling(
  { client, caches }: Applier,
  { namespace, name, size }: Extract<Action, { type: "create-pipe-scaling" }>,
): Promise<void> {
  const spec = size ? { replicaCpuMillicores: size.cpuMillicores, replicaMemoryGb: size.memoryGib } : {};
  const created = await client.json<KubeObject & PipeScaling>({
    method: "POST",
    path: collectionPath(PIPE_SCALINGS, namespace),
    query: { fieldManager: CONTROLLER_FIELD_MANAGER },
    body: { apiVersion: API_VERSION, kind: KIND, metadata: { name, namespace }, spec },
  });
  caches.scalings.observe(toPipeScalingView(created));
}

async function giveSize(
  applier: Applier,
  { pipe, container, attempt, completed }: Extract<Action, { type: "resize" }>,
): Promise<PipeFailure | undefined> {
  const annotations = {
    [ATTEMPT_ANNOTATION]: formatLastRollout(attempt),
    ...(completed ? { [COMPLETED_SIZE_ANNOTATION]: formatAllotment(completed) } : {}),
  };
  try {
    await resize(applier, pipe, container, attempt.size, annotations);
    return undefined;
  } catch (error) {
    if (!(error instanceof KubeApiError) || !isRefusal(error)) throw error;
    return {
      pipe: pipe.metadata.name,
      size: formatSize(attempt.size),
      reason: REFUSED,
      message: refusalMessage(error),
      attempts: attempt.attempts,
      at: new Date(attempt.startedAtMs).toISOString(),
      generation: pipe.metadata.generation,
    };
  }
}

/** A strategic merge patch owns just the leaves that it sets (kubernetes-facts.md). */
async function resize(
  applier: Applier,
  pipe: DeploymentView,
  container: string,
  size: Allotment,
  annotations: Readonly<Record<string, string>>,
): Promise<void> {
  await patchPipe(
    applier,
    pipe,
    { [GIVEN_SIZE_ANNOTATION]: formatAllotment(size), ...annotations },
    { template: { spec: { containers: [{ name: container, resources: resourcesFor(size) }] } } },
  );
}

/**
 * Asks for the PipeScaling itself. If it is newer than our view, that is now our view; if it is what we see,
 * its history was taken back (etcd put back), and the pipes are told so: what they were given then counts as
 * given now.
 */
async function confirmGeneration(
  applier: Applier,
  { scaling, pipes }: Extract<Action, { type: "confirm-generation" }>,
): Promise<void> {
  const { client, caches } = applier;
  const { name, namespace, uid, generation } = scaling.metadata;
  const path = objectPath(PIPE_SCALINGS, namespace, name);
  const current = toPipeScalingView(await client.json<KubeObject & PipeScaling>({ path }));
  if (current.metadata.uid !== uid || current.metadata.generation !== generation) {
    caches.scalings.observe(current);
    return;
  }
  for (const pipe of pipes) {
    if (!pipe.attempt) continue;
    applier.assertMayWrite();
    await patchPipe(applier, pipe, {
      [ATTEMPT_ANNOTATION]: formatLastRollout({ ...pipe.attempt, generation }),
    });
  }
}

/** The uid keeps it off an object that took the pipe's name, the resourceVersion off one that has changed. */
async function patchPipe(
  { client, caches }: Applier,
  pipe: DeploymentView,
  annotations: Readonly<Record<string, string>>,
  spec?: object,
): Promise<void> {
  const { name, namespace, uid, resourceVersion } = pipe.metadata;
  const patched = await client.json<Deployment>({
    method: "PATCH",
    path: objectPath(DEPLOYMENTS, namespace, name),
    query: { fieldManager: CONTROLLER_FIELD_MANAGER },
    patchType: "application/strategic-merge-patch+json",
    body: { metadata: { uid, resourceVersion, annotations }, spec },
  });
  caches.pipes.observe(toDeploymentView(patched));
}

/** 422 of validation or an admission policy, 403 of policy: trying at once again will not help. */
function isRefusal(error: KubeApiError): boolean {
  if (isReplaced(error) || isTerminating(error) || isWithoutRight(error)) return false;
  return isCode(error, 422) || isCode(error, 403);
}

/** The server's own words, which follow on the request and the code. */
function refusalMessage({ message, code }: KubeApiError): string {
  const before = `: ${code} `;
  return clipped(message.slice(message.indexOf(before) + before.length));
}
