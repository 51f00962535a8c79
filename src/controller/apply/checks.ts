import { lackOfCapacity } from "../../capacity/fit.ts";
import type { RolloutProgress } from "../../capacity/rooms.ts";
import { isRefusedSize, isWithoutDryRun } from "../../kube/errors.ts";
import type { Pod, PodSpec } from "../../kube/pods.ts";
import type { Workload } from "../../kube/workloads.ts";
import type { Of } from "../actions.ts";
import { LAST_ROLLOUT_ANNOTATION } from "../names.ts";
import { BY_PIPE } from "../observe/caches.ts";
import { isHeld, type PipeView, replaceablePods } from "../observe/pipe-view.ts";
import { resourcesFor } from "../observe/resources.ts";
import { KINDS, keyOfPipe } from "../observe/workloads/kinds.ts";
import type { WriteError } from "../observe/write-record.ts";
import { type Applier, attempt, readPipe } from "./applier.ts";
import { commitPatch } from "./commit.ts";
import { asDryRun, pipeDryRun, resizeRequest, sizePatch } from "./requests.ts";
import { recordOfHold } from "./workloads/workload.ts";
import { fallbackOf, problemIn, writeErrorOf } from "./write-error.ts";

type DryRunAction = Of<"dry-run">;

/** Tries a resize without an effect. A problem holds the pipe back like a failed write, or leads to a rollout. */
export function dryRun(applier: Applier, action: DryRunAction): Promise<WriteError | undefined> {
  const { pipe, subject, isCommit, isRequested } = action;
  const purpose = isCommit ? "dry-run-commit" : "dry-run";
  return attempt(applier, pipe, { purpose, subject, isRequested }, async () => ({
    error: isCommit ? await commitProblem(applier, action) : await rolloutProblem(applier, action),
  }));
}

/**
 * If a webhook changes the template at each write, it would differ from that of the ReplicaSet, and a rollout would
 * start. The hold must be recognizable as one of the controller, with all that its end depends on.
 */
async function commitProblem(applier: Applier, action: DryRunAction): Promise<WriteError | undefined> {
  const { pipe, container, rollout } = action;
  const current = await readPipe<Workload>(applier, pipe);
  if (!current) return undefined;
  // Without the protobuf message, the response is JSON with all fields.
  const { message: _, ...request } = pipeDryRun(
    pipe,
    rollout,
    commitPatch(action),
    recordOfHold(pipe, current),
  );
  let committed: Workload;
  try {
    committed = await applier.client.json<Workload>(request);
  } catch (error) {
    // A rollout needs no pause, so it may be accepted.
    const problem = fallbackOf(error);
    if (problem) return problem;
    throw error;
  }
  const problem = holdProblem(KINDS[pipe.kind].toView(committed));
  if (problem !== undefined) return { reason: "Refused", message: problem, fallback: "NotSupported" };
  const text = ({ spec }: Workload) => JSON.stringify(withoutSize(spec, container));
  if (text(committed) === text(current)) return undefined;
  const message =
    "something, probably a mutating admission webhook, changes the pod template at each write: exempt pipes from it";
  return { reason: "Refused", message, fallback: "TemplateChanged" };
}

/**
 * The ReplicaSet of a Deployment shows which template its pods have. For a StatefulSet, only the annotation does: without
 * it, the pods would be released as if their owner had changed the template, and Kubernetes would replace all of them.
 */
function holdProblem({ kind, lastRollout, isPausedForCommit }: PipeView): string | undefined {
  if (kind === "StatefulSet" && !lastRollout)
    return `its pods could not be held: something, probably a mutating admission webhook, removes the annotation ${LAST_ROLLOUT_ANNOTATION}: exempt pipes from it`;
  if (isPausedForCommit) return undefined;
  return "a pause by the controller would not be recognizable: something removes managedFields";
}

/** The parts of the spec that neither the size nor the pause changes. */
function withoutSize({ template, ...spec }: Workload["spec"], name: string): object {
  const containers = template.spec.containers.map((container) =>
    container.name === name ? { ...container, resources: withoutAmounts(container.resources) } : container,
  );
  const { paused: _, updateStrategy: _s, ...others }: Readonly<Record<string, unknown>> = spec;
  return { ...others, template: { ...template, spec: { ...template.spec, containers } } };
}

function withoutAmounts(resources: PodSpec["containers"][number]["resources"]): object {
  const { cpu: _c, memory: _m, ...requests } = resources?.requests ?? {};
  const { cpu: _l, memory: _n, ...limits } = resources?.limits ?? {};
  return { requests, limits };
}

/**
 * Only a rejection counts. Another error, such as that of a webhook that does not support dry runs or does not respond,
 * predicts nothing. The dry run of a resize of a running pod may still show a problem.
 */
async function rolloutProblem(applier: Applier, action: DryRunAction): Promise<WriteError | undefined> {
  const { pipe, rollout } = action;
  let resized: Workload | undefined;
  try {
    resized = await applier.client.json<Workload>(pipeDryRun(pipe, rollout, sizePatch(action, rollout.size)));
  } catch (error) {
    const problem = problemIn(error);
    if (problem.reason === "Refused" && !isWithoutDryRun(error)) return problem;
  }
  const refused = await podProblem(applier, action);
  if (refused || !resized || !action.checksNodes) return refused;
  return sizeProblem(applier, resized.spec.template.spec);
}

/**
 * A quota or a LimitRange that refuses the size for a running pod refuses it for a new one. Any other result says
 * nothing about new pods.
 */
async function podProblem(
  { client }: Applier,
  { triedPod, pipe, container, rollout }: DryRunAction,
): Promise<WriteError | undefined> {
  if (!triedPod) return undefined;
  const resources = resourcesFor(rollout.size, pipe.cpuLimitFollows);
  // In any version, because only its size counts.
  const pod = { ...triedPod.metadata, resourceVersion: undefined };
  try {
    await client.json<Pod>(asDryRun(resizeRequest(pod, container, resources)));
    return undefined;
  } catch (error) {
    return isRefusedSize(error) ? writeErrorOf(error) : undefined;
  }
}

type CheckRoom = Of<"check-room">;

/** Returns why no node is large enough for a new pod; `undefined` if one is, or if the nodes may not be listed. */
async function sizeProblem({ nodes }: Applier, spec: PodSpec): Promise<WriteError | undefined> {
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
