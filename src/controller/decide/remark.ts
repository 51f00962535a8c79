import { formatSize } from "../../domain/size.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { AssessContext, Assessment } from "./assessment.ts";

/** Information for people that does not affect the decision; `undefined` if there is none. */
export function remarkOn(
  pipe: DeploymentView,
  state: Assessment["state"],
  context: AssessContext,
): string | undefined {
  const remarks = [
    restartRemark(pipe, state, context),
    horizontalAutoscalerRemark(pipe, context),
    qosRemark(pipe, state, context),
  ].filter((each) => each !== undefined);
  return remarks.length === 0 ? undefined : remarks.join(" ");
}

/** Only while it matters. */
function restartRemark(
  { metadata }: DeploymentView,
  state: Assessment["state"],
  { desired, inPlace }: AssessContext,
): string | undefined {
  const view = inPlace.get(metadata.uid);
  if (state === "done" || !view?.fallback || view.size !== formatSize(desired)) return undefined;
  return `The pods of ${metadata.name} are being replaced because they cannot be resized in place: ${view.fallback.message}.`;
}

function horizontalAutoscalerRemark(
  pipe: DeploymentView,
  { autoscalers }: AssessContext,
): string | undefined {
  const horizontal = autoscalers
    .get(pipe.metadata.name)
    ?.find(({ kind }) => kind === "HorizontalPodAutoscaler");
  if (!horizontal) return undefined;
  const name = JSON.stringify(horizontal.metadata.name);
  return `The HorizontalPodAutoscaler ${name} sets the replicas of ${pipe.metadata.name} by utilization of its requests, so another size may change their number.`;
}

/** A limit that follows the size is mentioned only while it changes. */
function qosRemark(
  { metadata, cpuLimitMillicores, cpuLimitFollows }: DeploymentView,
  state: Assessment["state"],
  { desired }: AssessContext,
): string | undefined {
  if (cpuLimitFollows && state !== "done")
    return `The CPU limit of ${metadata.name} follows the size, so its pods keep the QoS class Guaranteed.`;
  if (cpuLimitMillicores !== desired.cpuMillicores) return undefined;
  return `The CPU limit of ${metadata.name} equals the size, so its pods have the QoS class Guaranteed and not Burstable.`;
}
