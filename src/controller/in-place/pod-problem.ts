import type { Resources } from "../observe/resources.ts";
import { containerOf } from "./pod-state.ts";
import { hasResources, type PodView } from "./pod-view.ts";
import type { InPlaceContext } from "./steps.ts";
import type { Fallback } from "./view.ts";

/** Returns why a pod must not be resized in place; `undefined` if it may be. */
export function podProblem(
  pod: PodView,
  { container, target }: Pick<InPlaceContext, "container" | "target">,
): Fallback | undefined {
  const own = containerOf(pod, container);
  const { name } = pod.metadata;
  // The kubelet keeps the old limits of a container that is not running, and reports success.
  const stopped = pod.containers.find(({ isRunning }) => !isRunning);
  if (!own || stopped) {
    return { reason: "ContainerNotRunning", message: `pod ${name}: a container is not running` };
  }
  if (!own.actual) {
    return {
      reason: "NotSupported",
      message: `pod ${name}: its node does not report the resources of containers`,
    };
  }
  // Before Kubernetes 1.34, a kubelet does not report it, so nothing would show that it has finished a resize.
  if (pod.observedGeneration === 0 && pod.metadata.generation > 0) {
    return {
      reason: "NotSupported",
      message: `pod ${name}: its node does not report the generation of the pod that it has observed`,
    };
  }
  const restarting = own.restartsFor.find((resource) => changes(own.resources, target, resource));
  if (restarting === undefined) return undefined;
  return {
    reason: "ContainerRestarts",
    message: `pod ${name}: its resizePolicy restarts the container when ${restarting} changes`,
  };
}

function changes(
  resources: PodView["containers"][number]["resources"],
  target: Resources,
  resource: string,
): boolean {
  if (resource !== "cpu" && resource !== "memory") return false;
  const unchanged = {
    requests: { ...target.requests, [resource]: resources?.requests?.[resource] ?? null },
    limits: { ...target.limits, [resource]: resources?.limits?.[resource] ?? null },
  };
  return !hasResources(
    { requests: withoutNull(target.requests), limits: withoutNull(target.limits) },
    unchanged,
  );
}

function withoutNull(amounts: Readonly<Record<string, string | null | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(amounts).flatMap(([name, amount]) => (typeof amount === "string" ? [[name, amount]] : [])),
  );
}
