import type {
  ContainerPolicy,
  HorizontalPodAutoscaler,
  ResourceMetric,
  ScaleTarget,
  StartupBoost,
  VerticalPodAutoscaler,
} from "../../kube/autoscalers.ts";
import { type Identity, identityOf, type KubeObject } from "../../kube/objects.ts";
import { PIPE_KINDS, pipeName } from "./workloads/kinds.ts";

/** A VerticalPodAutoscaler or HorizontalPodAutoscaler, which may affect the pods of a pipe. */
export interface AutoscalerView extends KubeObject {
  readonly metadata: Identity;
  /** Vertical autoscalers replace our size with their own; horizontal ones only depend on it. */
  readonly kind: "HorizontalPodAutoscaler" | "VerticalPodAutoscaler";
  /**
   * Name of the pipe; `undefined` if the target is neither a Deployment nor a StatefulSet, or if the effect on all of
   * its containers is "none".
   */
  readonly pipeName: string | undefined;
  /** The effect on each container, by name. {@link OTHER_CONTAINERS} stands for the rest, which is "size" by default. */
  readonly policies: ReadonlyMap<string, Effect>;
}

/** "size": sets the size of pods, or depends on it. "startup-cpu": sets only the CPU of pods that start. */
export type Effect = "size" | "startup-cpu" | "none";

/** Container name of the policy for containers without their own policy. */
const OTHER_CONTAINERS = "*";

/**
 * Only utilization metrics depend on the size, because they are a share of the requests: of all containers of a pod
 * (`resource`), or of one (`containerResource`).
 */
export function toHorizontalAutoscalerView({ metadata, spec }: HorizontalPodAutoscaler): AutoscalerView {
  const { metrics = [] } = spec;
  const isAboutRequests = ({ target }: ResourceMetric) => target.type === "Utilization";
  const isAboutAll = metrics.flatMap(({ resource }) => resource ?? []).some(isAboutRequests);
  const containers = metrics
    .flatMap(({ containerResource }) => containerResource ?? [])
    .filter(isAboutRequests)
    .map(({ container }) => [container, "size"] as const);
  return {
    metadata: identityOf(metadata),
    kind: "HorizontalPodAutoscaler",
    pipeName: isAboutAll || containers.length > 0 ? pipeIn(spec.scaleTargetRef) : undefined,
    policies: isAboutAll ? new Map() : new Map([[OTHER_CONTAINERS, "none"] as const, ...containers]),
  };
}

export function toVerticalAutoscalerView({ metadata, spec }: VerticalPodAutoscaler): AutoscalerView {
  const policies = toPolicies(spec);
  const isActing = [...policies.values()].some((effect) => effect !== "none");
  return {
    metadata: identityOf(metadata),
    kind: "VerticalPodAutoscaler",
    pipeName: isActing ? pipeIn(spec.targetRef) : undefined,
    policies,
  };
}

function toPolicies(spec: VerticalPodAutoscaler["spec"]): AutoscalerView["policies"] {
  const policies = spec.resourcePolicy?.containerPolicies ?? [];
  const others = effectOf({ containerName: OTHER_CONTAINERS }, spec);
  const named = policies.map((policy) => [policy.containerName ?? "", effectOf(policy, spec)] as const);
  return new Map([[OTHER_CONTAINERS, others] as const, ...named]);
}

/**
 * The autoscaler always sets the request of a controlled resource. controlledValues only determines whether the limit
 * follows, so it is irrelevant here. In update mode Off, the autoscaler only recommends, but startup boosts apply.
 */
function effectOf(policy: ContainerPolicy, spec: VerticalPodAutoscaler["spec"]): Effect {
  const { mode, controlledResources, startupBoost } = policy;
  const isOff = mode === "Off";
  const resources = controlledResources ?? ["cpu", "memory"];
  const isControlled = !isOff && (resources.includes("cpu") || resources.includes("memory"));
  if (isControlled && spec.updatePolicy?.updateMode !== "Off") return "size";
  // A container with the mode Off is boosted only if its own policy says so.
  const boost = startupBoost ?? (isOff ? undefined : spec.startupBoost);
  return isBoosting(boost) ? "startup-cpu" : "none";
}

/** A factor of 1 exempts a container from the boost of the others. */
function isBoosting({ cpu }: StartupBoost = {}): boolean {
  return cpu !== undefined && (cpu.type === "Quantity" || cpu.factor !== 1);
}

/** Returns the effect on a container: by the policy of the container, else by the policy `*`, else by the default. */
export function effectOn({ policies }: AutoscalerView, containerName: string): Effect {
  return policies.get(containerName) ?? policies.get(OTHER_CONTAINERS) ?? "size";
}

function pipeIn(target: ScaleTarget | undefined): string | undefined {
  const kind = PIPE_KINDS.find((each) => each === target?.kind);
  return kind && target && pipeName(kind, target.name);
}
