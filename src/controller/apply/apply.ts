import { API_VERSION, CONTROLLER_FIELD_MANAGER, KIND, PIPE_SCALINGS } from "../../crd/names.ts";
import type { PipeScaling } from "../../crd/pipe-scaling.ts";
import { formatSize } from "../../domain/size.ts";
import { KubeUnreachableError } from "../../kube/errors.ts";
import type { Deployment, KubeObject } from "../../kube/objects.ts";
import { collectionPath, DEPLOYMENTS, objectPath } from "../../kube/paths.ts";
import type { Action, PipeAction } from "../decide/actions.ts";
import { type Caches, PIPE_SELECTOR } from "../observe/caches.ts";
import { type DeploymentView, toDeploymentView } from "../observe/deployment-view.ts";
import { formatLastRollout, type LastRollout } from "../observe/last-rollout.ts";
import { toPipeScalingView } from "../observe/pipe-scaling-view.ts";
import type { WriteError } from "../observe/write-record.ts";
import { applyInPlace, type InPlaceApplier } from "./in-place.ts";
import { commitPatch, pipePatch, resourcesPatch } from "./pipe-patch.ts";
import { type Validator, validate } from "./validate.ts";
import { isOutcomeUnknown, writeErrorOf } from "./write-error.ts";

export interface Applier extends Validator, Pick<InPlaceApplier, "resizes" | "failedSteps"> {
  readonly caches: Caches;
  /** Throws when this process may no longer write (runtime/leader.ts). */
  readonly assertMayWrite: () => void;
}

/**
 * Runs one action and stores the response in the caches, so that the next reconciliation sees it. The write history
 * records the outcome of a write to a pipe.
 *
 * @throws KubeApiError if our view of an object is outdated, or if a write to an object other than a pipe fails
 */
export async function apply(applier: Applier, action: Action): Promise<void> {
  applier.assertMayWrite();
  switch (action.type) {
    case "create-pipe-scaling":
      return createPipeScaling(applier, action);
    case "resize":
      return writePipe(applier, action, sizePatch(action));
    case "roll-back":
      return writePipe(applier, action, resourcesPatch(action, action.size));
    case "adopt":
      return writePipe(applier, action, undefined);
    case "validate":
      return validate(applier, action);
    case "refresh":
      return refresh(applier, action.pipe);
    case "confirm-generation":
      return confirmGeneration(applier, action);
    case "begin-in-place":
    case "resize-pod":
    case "delete-replica-set":
    case "update-replica-set":
    case "read-template":
    case "resume":
    case "fall-back":
      return applyInPlace(applier, action);
  }
}

function sizePatch(action: Extract<Action, { type: "resize" }>): object {
  const { size } = action.rollout;
  return action.isCommit ? commitPatch(action, size) : resourcesPatch(action, size);
}

async function createPipeScaling(
  { client, caches }: Applier,
  { namespace, name, spec }: Extract<Action, { type: "create-pipe-scaling" }>,
): Promise<void> {
  const created = await client.json<KubeObject & PipeScaling>({
    method: "POST",
    path: collectionPath(PIPE_SCALINGS, namespace),
    query: { fieldManager: CONTROLLER_FIELD_MANAGER },
    body: { apiVersion: API_VERSION, kind: KIND, metadata: { name, namespace }, spec },
  });
  caches.scalings.observe(toPipeScalingView(created));
}

async function writePipe(applier: Applier, action: PipeAction, spec: object | undefined): Promise<void> {
  const { type, pipe, rollout } = action;
  const isCommit = action.type === "resize" && action.isCommit === true;
  const { writes, clock } = applier;
  const { uid, generation } = pipe.metadata;
  const takeBack = writes.begin(uid, type, rollout, clock.now());
  try {
    const written = await patchPipe(applier, pipe, rollout, spec);
    writes.done(written, rollout);
    applier.validations.forget(uid);
  } catch (error) {
    const problem = writeErrorOf(error);
    if (problem === undefined) {
      takeBack();
      throw error;
    }
    if (isOutcomeUnknown(error)) {
      writes.unknown(uid, problem);
      return;
    }
    writes.failed(uid, problem, generation, clock.now());
    if (isCommit) commitFailed(applier, uid, formatSize(rollout.size), problem, error);
  }
}

/** With the delays of the work queue, they take about 10 s. */
const MOST_COMMITS = 8;

/**
 * Other errors than a refusal may end soon, and a rollout restarts the pods, so the commit is tried again. After that,
 * the pods get their old size again. The next attempt is a rollout, after the delay of a failed write.
 *
 * @throws the error, so that the work queue delays the next attempt
 */
function commitFailed(
  { resizes }: Applier,
  uid: string,
  size: string,
  { reason, message }: WriteError,
  error: unknown,
): void {
  const commits = resizes.commitFailed(uid, size);
  if (commits === undefined) return;
  if (reason === "WriteFailed" && commits < MOST_COMMITS) throw error;
  resizes.failed(uid, size, { reason: reason === "Forbidden" ? reason : "Refused", message });
}

async function patchPipe(
  { client, caches }: Applier,
  pipe: DeploymentView,
  rollout: LastRollout,
  spec: object | undefined,
): Promise<DeploymentView> {
  const annotation = formatLastRollout(rollout, pipe.metadata.uid);
  const patched = await client.json<Deployment>(pipePatch(pipe, annotation, spec));
  const view = toDeploymentView(patched, { annotation, rollout });
  caches.pipes.observe(view);
  return view;
}

/** Reads with a list of one object, because the controller has permission to list Deployments but not to get them. */
async function refresh(applier: Applier, { metadata }: DeploymentView): Promise<void> {
  const { client, caches, writes } = applier;
  const { name, namespace, uid, generation } = metadata;
  const { items } = await client.json<{ readonly items: readonly Deployment[] }>({
    path: collectionPath(DEPLOYMENTS, namespace),
    query: { fieldSelector: `metadata.name=${name}`, labelSelector: PIPE_SELECTOR },
  });
  // The watch reports a deletion, another object with this name, and a Deployment that is no longer a pipe.
  const current = items.find((item) => item.metadata.uid === uid);
  const view = current && toDeploymentView(current);
  if (view) caches.pipes.observe(view);
  const { size = "", purpose, outcome } = writes.records.get(uid) ?? {};
  writes.resolve(uid, current?.metadata.generation ?? generation);
  const isWritten = view?.size !== undefined && formatSize(view.size) === size;
  if (purpose === "resize" && outcome?.type === "unknown" && !isWritten)
    commitFailed(applier, uid, size, outcome.error, new KubeUnreachableError(outcome.error.message));
}

/**
 * Reads the PipeScaling. If it is newer than our view, it replaces the view. If it equals our view, etcd was restored
 * from a snapshot, and the annotations of the pipes are set to its generation.
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
    if (!pipe.lastRollout) continue;
    applier.assertMayWrite();
    await patchPipe(applier, pipe, { ...pipe.lastRollout, scalingGeneration: generation }, undefined);
  }
}
