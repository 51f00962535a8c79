import type { PipeFailure } from "../../crd/pipe-scaling.ts";
import { formatSize, sameSize } from "../../domain/size.ts";
import { elapsedMs } from "../../runtime/elapsed.ts";
import { LAST_ROLLOUT_ANNOTATION } from "../names.ts";
import type { AutoscalerView } from "../observe/autoscaler-view.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { AssessContext } from "./assessment.ts";
import { type Cause, failureOf, reportedFailure } from "./failure.ts";
import { FIELD_CONFLICT, TRUCE_MS } from "./retry.ts";

/**
 * Handles a template that does not have the desired size although it was applied. The number of attempts comes from the
 * annotation of the pipe, the writes of this process, and the status, because another writer may have removed any of
 * them.
 */
export function fieldConflict(pipe: DeploymentView, context: AssessContext): PipeFailure | undefined {
  const applied = [appliedByAnnotation(pipe, context), appliedByThisProcess(pipe, context)];
  const reported = reportedFailure(pipe, context);
  const wasConflict = reported?.reason === FIELD_CONFLICT;
  if (wasConflict) applied.push({ attempts: reported.attempts, atMs: Date.parse(reported.at) });
  const known = applied.filter((each) => each !== undefined);
  if (known.length === 0) return undefined;
  const atMs = Math.max(...known.map((each) => each.atMs));
  const isOld = !wasConflict && elapsedMs(atMs, context.nowMs) > TRUCE_MS;
  const attempts = isOld ? 1 : Math.max(...known.map((each) => each.attempts));
  const message = `${otherWriter(pipe)} has changed the container's resources: omit requests.cpu, requests.memory and limits.memory in the chart or manifest of this pipe`;
  return failureOf(pipe, { reason: FIELD_CONFLICT, message }, attempts, atMs, context);
}

interface Applied {
  readonly attempts: number;
  readonly atMs: number;
}

function appliedByAnnotation(
  { lastRollout }: DeploymentView,
  { desired }: AssessContext,
): Applied | undefined {
  if (!lastRollout || lastRollout.isRollback || !sameSize(lastRollout.size, desired)) return undefined;
  return { attempts: Math.max(1, lastRollout.attempts), atMs: lastRollout.startedAtMs };
}

function appliedByThisProcess(
  { metadata }: DeploymentView,
  { writes, desired }: AssessContext,
): Applied | undefined {
  const write = writes.get(metadata.uid);
  if (write?.purpose !== "resize" || write.size !== formatSize(desired)) return undefined;
  return write.outcome.type === "done" ? { attempts: write.attempts, atMs: write.lastAtMs } : undefined;
}

/** Something removes the annotation after each write of the controller, so a restart would lose the rollout. */
export function strippedAnnotation(pipe: DeploymentView, context: AssessContext): PipeFailure | undefined {
  const write = context.writes.get(pipe.metadata.uid);
  if (write?.outcome.type !== "done" || !write.outcome.isStripped) return undefined;
  const message = `something, probably an admission webhook, removes the annotation ${LAST_ROLLOUT_ANNOTATION} from the Deployment: configure it to keep the annotation`;
  return failureOf(pipe, { reason: FIELD_CONFLICT, message }, write.attempts, write.lastAtMs, context);
}

/** A VerticalPodAutoscaler replaces the size of the pods, regardless of the Deployment. */
export function autoscalerConflict({ metadata }: AutoscalerView): Cause {
  const name = JSON.stringify(metadata.name);
  return {
    reason: FIELD_CONFLICT,
    message: `the VerticalPodAutoscaler ${name} also sets the size of its pods: delete it, set its updateMode to "Off", or exempt the container from it`,
  };
}

function otherWriter({ otherManagers }: DeploymentView): string {
  const names = otherManagers.map((name) => JSON.stringify(name));
  return names.length === 0 ? "another writer" : `another writer, ${names.join(" and ")},`;
}
