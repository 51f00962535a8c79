import { API_VERSION, CONTROLLER_FIELD_MANAGER, KIND, PIPE_SCALINGS } from "../../crd/names.ts";
import type { PipeScaling } from "../../crd/pipe-scaling.ts";
import type { KubeObject } from "../../kube/objects.ts";
import { collectionPath, objectPath } from "../../kube/paths.ts";
import type { Action, Of, PipeAction } from "../actions.ts";
import { annotationSubject } from "../observe/last-rollout.ts";
import { toPipeScalingView } from "../observe/pipe-scaling-view.ts";
import type { PodView } from "../observe/pod-view.ts";
import { confirmationOf, type WriteError } from "../observe/write-record.ts";
import { adopt, leavePartition } from "./adopt.ts";
import { type Applier, attempt, patchPipe, refresh } from "./applier.ts";
import { checkRoom, dryRun } from "./checks.ts";
import { beginCommit, continueCommit, replacePods, resume } from "./commit.ts";
import { attemptJudged, deletePod, resizePod } from "./pods.ts";
import { sizePatch } from "./requests.ts";
import { writeFailed } from "./write-error.ts";

/**
 * Runs one action and stores the response in the caches, so that the next reconciliation sees it. The memory of writes
 * has the outcome of each write to a pipe.
 *
 * @returns the error of a failed write to a pipe or one of its pods, or of a creation that the server delays
 * @throws the error if it is not about such an object
 */
export async function apply(applier: Applier, action: Action): Promise<WriteError | undefined> {
  applier.assertMayWrite();
  switch (action.type) {
    case "create-pipe-scaling":
      return createPipeScaling(applier, action);
    case "resize":
      // The rollout uses up the room that was found, so the result of the search does not hold any more.
      applier.writes.forget(action.pipe.metadata.uid, "check-room");
      return writePipe(applier, action, sizePatch(action, action.rollout.size));
    case "roll-back":
      return writePipe(applier, action, sizePatch(action, action.size), action.judged);
    case "adopt":
      return adopt(applier, action);
    case "dry-run":
      return dryRun(applier, action);
    case "check-room":
      return checkRoom(applier, action);
    case "refresh":
      await refresh(applier, action.pipe);
      return undefined;
    case "confirm-generation":
      return confirmGeneration(applier, action);
    case "resize-pod":
    case "return-pod":
      return resizePod(applier, action);
    case "delete-pod":
      return deletePod(applier, action);
    case "commit":
      return beginCommit(applier, action);
    case "continue-commit":
      return continueCommit(applier, action);
    case "resume":
      return resume(applier, action);
    case "leave-partition":
      return leavePartition(applier, action);
    case "replace-pods":
      applier.writes.forget(action.pipe.metadata.uid, "check-room");
      return replacePods(applier, action);
  }
}

async function createPipeScaling(
  { client, caches, writes }: Applier,
  { namespace, name, spec }: Of<"create-pipe-scaling">,
): Promise<WriteError | undefined> {
  const attempt = writes.begin(`${namespace}/${name}`, "create", "");
  try {
    const created = await client.json<KubeObject & PipeScaling>({
      method: "POST",
      path: collectionPath(PIPE_SCALINGS, namespace),
      query: { fieldManager: CONTROLLER_FIELD_MANAGER },
      body: { apiVersion: API_VERSION, kind: KIND, metadata: { name, namespace }, spec },
    });
    writes.forget(attempt.uid, attempt.purpose);
    caches.scalings.observe(toPipeScalingView(created));
    return undefined;
  } catch (error) {
    const failure = writeFailed(error);
    writes.failed(attempt, failure, 0);
    // The service does not wait for the time in Retry-After, because its pipes may be in a commit.
    if (failure.retryAfterMs === undefined) throw error;
    return failure;
  }
}

function writePipe(
  applier: Applier,
  { type, pipe, rollout }: PipeAction,
  spec: object,
  judged?: readonly PodView[],
): Promise<WriteError | undefined> {
  const known = type === "resize" ? { attempts: rollout.attempts } : {};
  const aim = { purpose: type, subject: annotationSubject(rollout), ...known };
  return attemptJudged(applier, { pipe, judged }, aim, async () => ({
    annotation: await patchPipe(applier, pipe, rollout, spec),
  }));
}

/**
 * Reads the PipeScaling. If it is newer than our view, it replaces the view. If it equals our view, etcd was restored
 * from a snapshot, and the annotations of the pipes are set to its generation.
 */
async function confirmGeneration(
  applier: Applier,
  { scaling, pipes }: Of<"confirm-generation">,
): Promise<WriteError | undefined> {
  const { client, caches } = applier;
  const { name, namespace, uid, generation } = scaling.metadata;
  const path = objectPath(PIPE_SCALINGS, namespace, name);
  const current = toPipeScalingView(await client.json<KubeObject & PipeScaling>({ path }));
  if (current.metadata.uid !== uid || current.metadata.generation !== generation) {
    caches.scalings.observe(current);
    return undefined;
  }
  const aim = { purpose: "adopt", subject: confirmationOf(scaling) } as const;
  for (const pipe of pipes) {
    const { lastRollout } = pipe;
    if (!lastRollout) continue;
    applier.assertMayWrite();
    const rollout = { ...lastRollout, scalingGeneration: generation };
    const error = await attempt(applier, pipe, aim, async () => ({
      annotation: await patchPipe(applier, pipe, rollout, undefined),
    }));
    if (error) return error;
  }
  return undefined;
}
