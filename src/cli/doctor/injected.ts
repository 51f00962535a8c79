import { CONTAINER_ANNOTATION } from "../../controller/names.ts";
import { keyOfPipe } from "../../controller/observe/workloads/kinds.ts";
import type { Cluster } from "./cluster.ts";
import { pipesInPlace } from "./in-place.ts";
import { type Result, warning } from "./result.ts";

/**
 * Finds containers that an admission webhook added to pods. A pod template with one container needs no annotation with
 * the container to resize, but a pod with several containers does.
 */
export async function checkInjected(cluster: Cluster): Promise<Result[]> {
  const pods = await cluster.pods();
  return (await pipesInPlace(cluster)).flatMap(({ view, template }) => {
    const { kind, metadata, container } = view;
    const { namespace, name } = metadata;
    if ("problem" in container || template.metadata?.annotations?.[CONTAINER_ANNOTATION] !== undefined) {
      return [];
    }
    const known = new Set(template.spec.containers.map((each) => each.name));
    const active = (pods.get(keyOfPipe(view)) ?? []).filter(({ isActive }) => isActive);
    const names = active.flatMap(({ containers }) => containers.map((each) => each.name));
    const added = [...new Set(names)].filter((each) => !known.has(each));
    if (added.length === 0) return [];
    const annotations = { [CONTAINER_ANNOTATION]: container.name };
    const patch = JSON.stringify({ spec: { template: { metadata: { annotations } } } });
    const add = cluster.kubectl(
      `patch ${kind.toLowerCase()} ${name} --namespace ${namespace} --patch '${patch}'`,
    );
    return [
      warning(
        `Pods of the pipe ${keyOfPipe(view)} have containers that are not in its pod template (${added.join(", ")}), but no annotation ${CONTAINER_ANNOTATION}, so they cannot be resized in place.`,
        `Add the annotation to the pod template, which is a rollout: ${add}`,
      ),
    ];
  });
}
