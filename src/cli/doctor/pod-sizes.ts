import type { PodView } from "../../controller/observe/pod-view.ts";
import { isSameQuantity } from "../../controller/observe/resources.ts";
import { toPipeView } from "../../controller/observe/workloads/deployment.ts";
import { PLURAL } from "../../crd/names.ts";
import type { Container, Deployment } from "../../kube/objects.ts";
import type { Cluster, Scaling } from "./cluster.ts";
import { type Result, warning } from "./result.ts";

/** Finds pods that do not have the size of their pipe, although nothing will change that. */
export async function checkPodSizes(cluster: Cluster): Promise<Result[]> {
  const scalings = new Map(
    (await cluster.scalings()).map((each) => [`${each.metadata.namespace}/${each.metadata.name}`, each]),
  );
  const pods = await cluster.pods();
  return (await cluster.pipes()).flatMap((pipe) => {
    const { metadata, serviceId, container, isPaused, rollout } = toPipeView(pipe);
    const { namespace, name } = metadata;
    if ("problem" in container || isPaused || !rollout.isComplete) return [];
    const scaling = scalings.get(`${namespace}/${serviceId}`);
    if (isInProgress(scaling)) return [];
    const active = (pods.get(`${namespace}/${name}`) ?? []).filter(({ isActive }) => isActive);
    const [first, ...others] = active.flatMap((pod) => differenceOf(pipe, pod, container.name));
    if (first === undefined) return [];
    const more = others.length === 0 ? "" : ` (and ${others.length} more pods)`;
    return [
      warning(
        `The pod ${first}${more}: it differs from the pod template of the pipe ${namespace}/${name}, although no rescale is in progress.`,
        scaling?.spec?.suspend === true
          ? `Resume the service, and the controller repairs the pods: kubectl patch ${PLURAL} ${serviceId} --namespace ${namespace} --type merge --patch '{"spec":{"suspend":false}}'`
          : `Replace the pods, which restarts the pipe: kubectl rollout restart deployment ${name} --namespace ${namespace}. If new pods differ, too, an admission webhook or an autoscaler changes them: exempt the pipe there.`,
      ),
    ];
  });
}

/** Pods come first, and templates follow while Ready is False. */
function isInProgress(scaling: Scaling | undefined): boolean {
  if (!scaling) return false;
  const { observedGeneration, conditions = [] } = scaling.status ?? {};
  return (
    observedGeneration !== scaling.metadata.generation ||
    conditions.some(({ type, status }) => type === "Ready" && status === "False")
  );
}

/** Only amounts of the template count, because Kubernetes adds defaults of the namespace to pods. */
function differenceOf(pipe: Deployment, pod: PodView, name: string): string[] {
  const wanted = amountsOf(pipe.spec.template.spec.containers.find((each) => each.name === name));
  const actual = amountsOf(pod.containers.find((each) => each.name === name));
  const different = Object.entries(wanted).filter(
    ([key, amount]) => amount !== undefined && !isSameQuantity(actual[key], amount),
  );
  if (different.length === 0) return [];
  const texts = different.map(
    ([key, amount]) => `a ${key} of ${actual[key] ?? "nothing"} instead of ${amount}`,
  );
  return [`${pod.metadata.namespace}/${pod.metadata.name} has ${texts.join(" and ")}`];
}

function amountsOf(
  container: { readonly resources?: Container["resources"] } | undefined,
): Readonly<Record<string, string | undefined>> {
  const { requests = {}, limits = {} } = container?.resources ?? {};
  return {
    // Kubernetes sets an absent request of a pod to the limit.
    "cpu request": requests["cpu"] ?? limits["cpu"],
    "memory request": requests["memory"] ?? limits["memory"],
    "cpu limit": limits["cpu"],
    "memory limit": limits["memory"],
  };
}
