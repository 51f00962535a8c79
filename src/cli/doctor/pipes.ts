import { CONTAINER_ANNOTATION, SERVICE_LABEL } from "../../controller/names.ts";
import type { AutoscalerView } from "../../controller/observe/autoscaler-view.ts";
import type { DeploymentView } from "../../controller/observe/deployment-view.ts";
import type { PipeScalingView } from "../../controller/observe/pipe-scaling-view.ts";
import { KIND, PLURAL } from "../../crd/names.ts";
import type { Service } from "../../records/service.ts";
import { recordsFlag } from "../common-options.ts";
import { currentCondition, viewOf } from "../status/scaling-view.ts";
import { NOT_SEEN_YET } from "../view/rescale-view.ts";
import type { Finding } from "./finding.ts";

/** By their ids. */
export type Services = ReadonlyMap<string, Service>;

/** A PipeScaling that is nobody's, one that is stuck, one that nobody has looked at. */
export function examineScaling(scaling: PipeScalingView, services: Services, records: string): Finding[] {
  const { name, namespace } = scaling.metadata;
  const check = "scalings";
  const service = services.get(name);
  if (!service) {
    return [
      {
        severity: "warning",
        check,
        message: `The ${KIND} ${namespace}/${name} is of a service of which there is no record that can be read: it does nothing.`,
        remedy: `Make the record (pipe-scaling admin service create --id ${name}${recordsFlag(records)} …), or kubectl delete ${PLURAL} ${name} --namespace ${namespace}, which resizes nothing.`,
      },
    ];
  }
  if (service.namespace !== namespace) {
    return [
      {
        severity: "warning",
        check,
        message: `The ${KIND} ${namespace}/${name} is not in the namespace of the pipes of ${service.name}, which is ${service.namespace}: it does nothing.`,
        remedy: `kubectl delete ${PLURAL} ${name} --namespace ${namespace}, which resizes nothing.`,
      },
    ];
  }
  return ofState(scaling, service, records);
}

function ofState(scaling: PipeScalingView, { id, name }: Service, records: string): Finding[] {
  const check = "scalings";
  const { state, reason, message } = viewOf(name, scaling, undefined);
  const look = `pipe-scaling status ${id}${recordsFlag(records)}`;
  if (state === "failed") {
    const about = `The pipes of ${name} cannot be given their size (${reason}): ${message}`;
    return [{ severity: "error", check, message: about, remedy: `${look} says what to do.` }];
  }
  if (reason === NOT_SEEN_YET) {
    const remedy = `If this lasts, no controller is at work; what was found about the lease says why. Else: ${look}`;
    return [{ severity: "warning", check, message: `${name}: ${message}`, remedy }];
  }
  const since = currentCondition(scaling.status.conditions ?? [])?.lastTransitionTime;
  if (state !== "suspended") return [];
  const suspended = `The pipes of ${name} are suspended since ${since}: nothing is resized.`;
  return [{ severity: "note", check, message: suspended, remedy: `${look} says how to let it go on.` }];
}

/** A pipe that is nobody's, or cannot be resized, or that something else acts on. */
export function examinePipe(
  pipe: DeploymentView,
  services: Services,
  autoscalers: readonly AutoscalerView[],
): Finding[] {
  const { name, namespace } = pipe.metadata;
  const check = "pipes";
  const about = `The pipe ${namespace}/${name}`;
  const service = services.get(pipe.serviceId);
  if (!service || service.namespace !== namespace) {
    const where = service
      ? `the pipes of ${service.name} are in the namespace ${service.namespace}`
      : "there is no record of that service that can be read";
    return [
      {
        severity: "warning",
        check,
        message: `${about} has the label ${SERVICE_LABEL}=${pipe.serviceId}, but ${where}: it is not resized.`,
        remedy: `Correct the label (kubectl label deployment ${name} --namespace ${namespace} --overwrite ${SERVICE_LABEL}=<id>), or the record of the service.`,
      },
    ];
  }
  return [
    ...("problem" in pipe.container
      ? [
          {
            severity: "error" as const,
            check: "pipes" as const,
            message: `${about} cannot be resized: ${pipe.container.problem}.`,
            remedy: `kubectl annotate deployment ${name} --namespace ${namespace} --overwrite ${CONTAINER_ANNOTATION}=<container>`,
          },
        ]
      : []),
    ...(pipe.isPaused
      ? [
          {
            severity: "note" as const,
            check: "pipes" as const,
            message: `${about} is paused by its owner: a new size does not reach its pods.`,
            remedy: `kubectl rollout resume deployment ${name} --namespace ${namespace}`,
          },
        ]
      : []),
    ...autoscalers.map((each) => ofAutoscaler(pipe, about, each)),
  ];
}

function ofAutoscaler(
  { metadata: { name, namespace }, container }: DeploymentView,
  about: string,
  { kind, metadata }: AutoscalerView,
): Finding {
  const scaler = `the ${kind} ${metadata.name}`;
  const containerName = "problem" in container ? "<container>" : container.name;
  return kind === "VerticalPodAutoscaler"
    ? {
        severity: "error",
        check: "pipes",
        message: `${about} is sized by ${scaler} too, so it is not resized.`,
        remedy: `Delete it, set its updateMode to "Off", or add {containerName: ${containerName}, mode: "Off"} to its containerPolicies: kubectl edit verticalpodautoscalers ${metadata.name} --namespace ${namespace}`,
      }
    : {
        severity: "note",
        check: "pipes",
        message: `${about} has its replicas set by ${scaler}, which measures by its requests: another size may change how many there are.`,
        remedy: `If that is not wanted, let it measure something else: kubectl edit horizontalpodautoscalers ${metadata.name} --namespace ${namespace} (it is about ${name}).`,
      };
}

/** Services that have pipes, and whose PipeScaling nobody has made. */
export function examineUnscaled(
  services: readonly Service[],
  scalings: readonly PipeScalingView[],
  pipes: readonly DeploymentView[],
): Finding[] {
  const key = (namespace: string, id: string) => `${namespace}/${id}`;
  const scaled = new Set(scalings.map(({ metadata }) => key(metadata.namespace, metadata.name)));
  const piped = new Set(pipes.map(({ metadata, serviceId }) => key(metadata.namespace, serviceId)));
  return services
    .filter(({ id, namespace }) => piped.has(key(namespace, id)) && !scaled.has(key(namespace, id)))
    .map(({ id, name, namespace }) => ({
      severity: "warning",
      check: "scalings",
      message: `The service ${name} (${id}) has pipes in ${namespace}, but no ${KIND}: nobody can ask for a size.`,
      remedy: "The controller makes it as soon as it is at work, and its records can be read.",
    }));
}
