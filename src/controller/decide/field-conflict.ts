import type { PipeFailure } from "../../crd/pipe-scaling.ts";
import { sameSize } from "../../domain/size.ts";
import type { AutoscalerView } from "../observe/autoscaler-view.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import { isSize } from "../observe/resources.ts";
import type { AssessContext } from "./assessment.ts";
import { failureOf, knownFailure, type Reason } from "./failure.ts";

/** Another writer sets the size too. */
export const CONTEST = "FieldConflict";

/** How long after giving a size it is given again when another writer has taken it back; then never. */
const PAUSES_MS = [0, 10_000, 60_000];

/** A size that stayed for so long was not contested: what takes it then is counted anew. */
const TRUCE_MS = 7 * 24 * 3_600_000;

/** The desired size was given, and is not there. */
export function contest(pipe: DeploymentView, context: AssessContext): PipeFailure | undefined {
  const { desired, nowMs } = context;
  const { attempt, given } = pipe;
  if (!attempt || !sameSize(attempt.size, desired) || !isSize(given) || !sameSize(given, desired))
    return undefined;
  const message = `${otherWriter(pipe)} has changed the container's resources: leave requests.cpu, requests.memory and limits.memory out of what deploys this pipe`;
  const isNew = knownFailure(pipe, context)?.reason !== CONTEST;
  const attempts = isNew && nowMs - attempt.startedAtMs > TRUCE_MS ? 1 : attempt.attempts;
  return failureOf(pipe, { reason: CONTEST, message }, attempts, attempt.startedAtMs, context);
}

export function contestDelayMs(attempts: number): number {
  return PAUSES_MS[attempts - 1] ?? Number.POSITIVE_INFINITY;
}

/** Its pods would not have what the Deployment says, however often that is written. */
export function contestWith({ metadata }: AutoscalerView): Reason {
  const name = JSON.stringify(metadata.name);
  return {
    reason: CONTEST,
    message: `the VerticalPodAutoscaler ${name} sets the size of its pods too: delete it, set its updateMode to "Off", or exempt the container from it`,
  };
}

function otherWriter({ otherWriters }: DeploymentView): string {
  const names = otherWriters.map((name) => JSON.stringify(name));
  return names.length === 0 ? "another writer" : `another writer, ${names.join(" and ")},`;
}
