import { CONTAINER_ANNOTATION, SERVICE_LABEL } from "../../controller/names.ts";
import type { AutoscalerView } from "../../controller/observe/autoscaler-view.ts";
import type { DeploymentView } from "../../controller/observe/deployment-view.ts";
import type { PipeScalingView } from "../../controller/observe/pipe-scaling-view.ts";
import { KIND, PLURAL } from "../../crd/names.ts";
import type { Service } from "../../records/service.ts";
import { recordsFlag } from "../options.ts";
import { currentCondition, viewOf } from "../status/scaling-view.ts";
import { NOT_OBSERVED_YET } from "../view/rescale-view.ts";
import { error, note, type Result, warning } from "./result.ts";

/** By their ids. */
export type Services = ReadonlyMap<string, Service>;

/** Checks that a PipeScaling belongs to a service, and its state; `undefined` if there is nothing to report. */
export function checkScaling(
  scaling: PipeScalingView,
  services: Services,
  records: string,
): Result | undefined {
  const { name, namespace } = scaling.metadata;
  const remove = `kubectl delete ${PLURAL} ${name} --namespace ${namespace} (no pipe is resized)`;
  const flag = recordsFlag(records);
  const service = services.get(name);
  if (!service) {
    return warning(
      `The ${KIND} ${namespace}/${name} belongs to a service without a well-formed record: it has no effect.`,
      `Create the record (pipe-scaling admin service create --id ${name}${flag} …), or ${remove}.`,
    );
  }
  if (service.namespace !== namespace) {
    return warning(
      `The ${KIND} ${namespace}/${name} is not in ${service.namespace}, the namespace of the pipes of ${service.name}: it has no effect.`,
      `${remove}.`,
    );
  }
  const { state, reason, message } = viewOf(service.name, scaling);
  const status = `pipe-scaling status ${service.id}${flag}`;
  if (state === "failed") {
    return error(
      `The rescale of ${service.name} failed (${reason}): ${message}`,
      `${status} shows what to do.`,
    );
  }
  if (reason === NOT_OBSERVED_YET) {
    return warning(
      `${service.name}: ${message}`,
      `If this lasts, check the result for the lease, and ${status}`,
    );
  }
  if (state !== "suspended") return undefined;
  const since = currentCondition(scaling.status.conditions ?? [])?.lastTransitionTime;
  return note(`The pipes of ${service.name} are suspended since ${since}.`, `${status} shows how to resume.`);
}

/** Checks that a pipe belongs to a service, can be resized, and is not changed by others. */
export function checkPipe(
  pipe: DeploymentView,
  services: Services,
  autoscalers: readonly AutoscalerView[],
): Result[] {
  const { name, namespace } = pipe.metadata;
  const deployment = `deployment ${name} --namespace ${namespace}`;
  const subject = `The pipe ${namespace}/${name}`;
  const service = services.get(pipe.serviceId);
  if (service?.namespace !== namespace) {
    const why = service
      ? `the pipes of ${service.name} are in the namespace ${service.namespace}`
      : "this service has no well-formed record";
    return [
      warning(
        `${subject} has the label ${SERVICE_LABEL}=${pipe.serviceId}, but ${why}: it is not resized.`,
        `Correct the label (kubectl label ${deployment} --overwrite ${SERVICE_LABEL}=<id>), or the record of the service.`,
      ),
    ];
  }
  const results: Result[] = [];
  if ("problem" in pipe.container) {
    results.push(
      error(
        `${subject} cannot be resized: ${pipe.container.problem}.`,
        `kubectl annotate ${deployment} --overwrite ${CONTAINER_ANNOTATION}=<container>`,
      ),
    );
  }
  if (pipe.isPaused) {
    results.push(
      note(
        `${subject} is paused by its owner: a new size does not reach its pods.`,
        `kubectl rollout resume ${deployment}`,
      ),
    );
  }
  return [...results, ...autoscalers.map((each) => autoscalerResult(pipe, subject, each))];
}

function autoscalerResult(
  { metadata: { name, namespace }, container }: DeploymentView,
  subject: string,
  { kind, metadata }: AutoscalerView,
): Result {
  const autoscaler = `${metadata.name} --namespace ${namespace}`;
  const containerName = "problem" in container ? "<container>" : container.name;
  return kind === "VerticalPodAutoscaler"
    ? error(
        `${subject} is also resized by the ${kind} ${metadata.name}, so the controller does not resize it.`,
        `Delete it, set its updateMode to "Off", or add {containerName: ${containerName}, mode: "Off"} to its containerPolicies: kubectl edit verticalpodautoscalers ${autoscaler}`,
      )
    : note(
        `${subject} gets its replicas from the ${kind} ${metadata.name}, which measures by its requests: another size may change the number of replicas.`,
        `If that is not intended, use another metric for ${name}: kubectl edit horizontalpodautoscalers ${autoscaler}`,
      );
}

/** Services with pipes but without a PipeScaling. */
export function checkUnscaled(
  services: readonly Service[],
  scalings: readonly PipeScalingView[],
  pipes: readonly DeploymentView[],
): Result[] {
  const key = (namespace: string, id: string) => `${namespace}/${id}`;
  const scaled = new Set(scalings.map(({ metadata }) => key(metadata.namespace, metadata.name)));
  const piped = new Set(pipes.map(({ metadata, serviceId }) => key(metadata.namespace, serviceId)));
  return services
    .filter(({ id, namespace }) => piped.has(key(namespace, id)) && !scaled.has(key(namespace, id)))
    .map(({ id, name, namespace }) =>
      warning(
        `The service ${name} (${id}) has pipes in ${namespace}, but no ${KIND}: no size can be requested.`,
        "The controller creates it as soon as it runs and can read the records.",
      ),
    );
}
