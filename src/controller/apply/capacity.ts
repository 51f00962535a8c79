import { lackOfCapacity } from "../../capacity/fit.ts";
import type { RolloutProgress } from "../../capacity/rooms.ts";
import { isWithoutDryRun } from "../../kube/errors.ts";
import type { PodSpec } from "../../kube/pods.ts";
import type { Workload } from "../../kube/workloads.ts";
import type { Of } from "../actions.ts";
import { BY_PIPE } from "../observe/caches.ts";
import { isHeld, replaceablePods } from "../observe/pipe-view.ts";
import { keyOfPipe } from "../observe/workloads/kinds.ts";
import type { WriteError } from "../observe/write-record.ts";
import { type Applier, attempt } from "./applier.ts";
import { pipeDryRun, sizePatch } from "./requests.ts";
import { problemIn } from "./write-error.ts";

type CheckRoom = Of<"check-room">;

/** Returns why no node is large enough for a new pod; `undefined` if one is, or if the nodes may not be listed. */
export async function sizeProblem({ nodes }: Applier, spec: PodSpec): Promise<WriteError | undefined> {
  return unlessUnlisted("nodes", async () => {
    const listed = await nodes.list();
    const message = listed && lackOfCapacity(spec, listed);
    return message === undefined ? undefined : { reason: "NoNodeLargeEnough", message };
  });
}

/** Searches for nodes with room for the new pods of a pipe, in place of the old ones. */
export function checkRoom(applier: Applier, action: CheckRoom): Promise<WriteError | undefined> {
  const { pipe, subject, rollout } = action;
  const purpose = "check-room";
  return attempt(applier, pipe, { purpose, subject }, async () => {
    let resized: Workload;
    try {
      resized = await applier.client.json(pipeDryRun(pipe, rollout, sizePatch(action, rollout.size)));
    } catch (error) {
      const problem = problemIn(error);
      return { error: isWithoutDryRun(error) ? withoutSearch(action, problem.message) : problem };
    }
    const { spec } = resized.spec.template;
    const tooLarge = await sizeProblem(applier, spec);
    if (tooLarge) return { error: tooLarge };
    return { error: await roomProblem(applier, action, spec) };
  });
}

/** Deferred resizes keep waiting for room. If there are none, only a rollout can show whether there is room. */
function withoutSearch({ fullNodes }: CheckRoom, message: string): WriteError | undefined {
  return fullNodes.length > 0 ? { reason: "NoNodeHasRoom", message } : undefined;
}

/**
 * Returns why no node has room for the new pods of a pipe now, where the old ones stop first.
 *
 * @param spec from the response to the dry run, with the new size and the changes of webhooks
 */
async function roomProblem(
  { nodes, rooms, writes, caches }: Applier,
  action: CheckRoom,
  spec: PodSpec,
): Promise<WriteError | undefined> {
  const { pipe, stopping, fullNodes, lastsMs } = action;
  const { uid } = pipe.metadata;
  return unlessUnlisted("pods", async () => {
    const listed = await nodes.list();
    if (!listed)
      return withoutSearch(
        action,
        "the controller may not list nodes (rbac.nodes), so it cannot search for room",
      );
    // Only finished searches count. A search that failed looked at no nodes, or only at some of them.
    const attempt = writes.decidedBefore(uid, "check-room");
    const places = stopping.map(({ metadata, nodeName }) => ({ uid: metadata.uid, node: nodeName }));
    const isInTurn = pipe.inTurn !== undefined;
    const room = { uid, spec, pods: replaceablePods(pipe), stopping: places, isInTurn };
    const rollout = () => progressOf(caches, action);
    const found = await rooms.find({ ...room, fullNodes, attempt, lastsMs, rollout }, listed);
    if (found.type === "unknown") return withoutSearch(action, found.message);
    return found.type === "room" ? undefined : { reason: "NoNodeHasRoom", message: found.message };
  });
}

/** A rollback needs no room that was promised, and a workload that left the cache is not a pipe any more. */
function progressOf({ pipes, pods }: Applier["caches"], { pipe, stopping }: CheckRoom): RolloutProgress {
  const key = keyOfPipe(pipe);
  const current = pipes.get(key);
  if (current?.metadata.uid !== pipe.metadata.uid) return { isInProgress: false, placedOn: [] };
  const stopped = new Set(stopping.map(({ metadata }) => metadata.uid));
  const placed = pods
    .by(BY_PIPE, key)
    .filter((pod) => pod.isActive && pod.nodeName !== "" && !isHeld(current, pod))
    .filter(({ metadata }) => !stopped.has(metadata.uid));
  const isInProgress = !current.rollout.isComplete && !current.lastRollout?.isRollback;
  return { isInProgress, placedOn: placed.map(({ nodeName }) => nodeName) };
}

async function unlessUnlisted(
  what: string,
  check: () => Promise<WriteError | undefined>,
): Promise<WriteError | undefined> {
  try {
    return await check();
  } catch (error) {
    const { message, retryAfterMs } = problemIn(error);
    return { reason: "WriteFailed", message: `the ${what} cannot be listed: ${message}`, retryAfterMs };
  }
}
