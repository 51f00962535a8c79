import type { KubeClient } from "../../kube/client.ts";
import { isCode, isDeniedByWebhook } from "../../kube/errors.ts";
import type { Deployment, PodSpec } from "../../kube/objects.ts";
import type { Clock } from "../../runtime/clock.ts";
import { lackOfCapacity } from "../capacity/fit.ts";
import type { Nodes } from "../capacity/nodes.ts";
import type { ValidateAction } from "../decide/actions.ts";
import { formatLastRollout } from "../observe/last-rollout.ts";
import { validationKey } from "../observe/validation.ts";
import type { WriteError } from "../observe/write-record.ts";
import { pipePatch, resourcesPatch } from "./pipe-patch.ts";
import type { Validations } from "./validations.ts";
import { isWithoutDryRun, writeErrorOf } from "./write-error.ts";
import type { WriteHistory } from "./write-history.ts";

export interface Validator {
  readonly client: Pick<KubeClient, "json">;
  readonly clock: Pick<Clock, "now">;
  readonly writes: WriteHistory;
  readonly validations: Validations;
  readonly nodes: Pick<Nodes, "list">;
}

/**
 * Makes a dry run of a resize, and compares the new pod with the nodes if the action requires it. A problem is recorded
 * as if the resize had failed.
 */
export async function validate(validator: Validator, action: ValidateAction): Promise<void> {
  const { writes, validations, clock } = validator;
  const { pipe, rollout } = action;
  const { uid, generation } = pipe.metadata;
  const key = validationKey(pipe, rollout.size);
  const lastWrite = writes.records.get(uid);
  // Another dry run may begin meanwhile, or the Deployment be deleted.
  const isCurrent = () => validations.records.get(uid)?.key === key;
  validations.begin(uid, key);
  let problem: WriteError | undefined;
  try {
    problem = await problemOf(validator, action);
  } catch (error) {
    if (isCurrent()) validations.forget(uid);
    throw error;
  }
  if (!isCurrent()) return;
  if (!problem) {
    validations.accepted(uid, key);
    return;
  }
  validations.forget(uid);
  if (writes.records.get(uid) !== lastWrite) return;
  writes.begin(uid, "resize", rollout, clock.now());
  writes.failed(uid, problem, generation, clock.now());
}

/** Only a rejection counts: a webhook that does not support dry runs or does not respond predicts nothing. */
async function problemOf(validator: Validator, action: ValidateAction): Promise<WriteError | undefined> {
  const { pipe, rollout } = action;
  const annotation = formatLastRollout(rollout, pipe.metadata.uid);
  const request = pipePatch(pipe, annotation, resourcesPatch(action, rollout.size));
  let resized: Deployment;
  try {
    resized = await validator.client.json({ ...request, query: { ...request.query, dryRun: "All" } });
  } catch (error) {
    const problem = problemIn(error);
    return problem.reason !== "Refused" || isWithoutDryRun(error) ? undefined : problem;
  }
  return action.checksNodes ? capacityProblem(validator, resized.spec.template.spec) : undefined;
}

/** @param pod from the response to the dry run, with the new size and the changes of webhooks */
async function capacityProblem({ nodes }: Validator, pod: PodSpec): Promise<WriteError | undefined> {
  try {
    const listed = await nodes.list();
    const message = listed && lackOfCapacity(pod, listed);
    return message === undefined ? undefined : { reason: "NoNodeLargeEnough", message };
  } catch (error) {
    const { message, retryAfterMs } = problemIn(error);
    return { reason: "WriteFailed", message: `the nodes cannot be listed: ${message}`, retryAfterMs };
  }
}

/** @throws the error itself if our view is outdated, or if a busy server sent Retry-After */
function problemIn(error: unknown): WriteError {
  const isBusy = isCode(error, 429) && !isDeniedByWebhook(error);
  const problem = isBusy ? undefined : writeErrorOf(error);
  if (problem === undefined) throw error;
  return problem;
}
