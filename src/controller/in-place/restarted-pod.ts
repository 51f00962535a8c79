import type { ContainerView, PodView } from "./pod-view.ts";
import type { Fallback } from "./view.ts";

/**
 * Returns why a resized pod was not resized in place: one of its containers has stopped since then. Its node may report
 * the size although the pod has the old limits (pod-problem.ts), and the size may be the cause.
 *
 * @param before the pod before its resize, if known
 */
export function restartProblem(pod: PodView, before: PodView | undefined): Fallback | undefined {
  const restarted = pod.containers.find((container) => {
    const known = before?.containers.find(({ name }) => name === container.name);
    return !container.isRunning || (known !== undefined && !isSame(container, known));
  });
  if (!restarted) return undefined;
  const message = `pod ${pod.metadata.name}: its container ${restarted.name} restarted during the resize`;
  return { reason: "Restarted", message };
}

/** True if it is the same run of a container. */
function isSame(a: ContainerView, b: ContainerView): boolean {
  return a.restartCount === b.restartCount && a.containerId === b.containerId;
}
