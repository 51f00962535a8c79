import { shared } from "../../../kube/memoized.ts";
import type { PodTemplate, TemplateContainer } from "../../../kube/pods.ts";
import type { Fallback } from "../last-rollout.ts";

/** A program of the pods reads a resource of the pipe's container only when it starts, so a resize needs a restart. */
export interface StartupRead extends Fallback {
  readonly resource: "cpu" | "memory";
}

/**
 * Returns at most one for each resource. Variables from Secrets and ConfigMaps, and those that a webhook adds to pods,
 * are not seen.
 *
 * @param container to size, if it can be determined
 * @param cpuLimitFollows whether its CPU limit changes with the size
 */
export function startupReadsOf(
  template: PodTemplate,
  container: TemplateContainer | undefined,
  cpuLimitFollows: boolean,
): readonly StartupRead[] {
  if (!container) return [];
  const reads = [...ofEnvironment(template, container.name, cpuLimitFollows), ...ofPercentage(container)];
  // Thousands of pipes have the same few templates.
  return shared(
    reads.filter(({ resource }, index) => reads.findIndex((each) => each.resource === resource) === index),
  );
}

const RESOURCES: Readonly<Record<string, StartupRead["resource"]>> = {
  "requests.cpu": "cpu",
  "limits.cpu": "cpu",
  "requests.memory": "memory",
  "limits.memory": "memory",
};

/** The kubelet evaluates `resourceFieldRef` in the environment once, when it starts the container. */
function ofEnvironment(
  { spec: { containers, initContainers = [] } }: PodTemplate,
  sized: string,
  cpuLimitFollows: boolean,
): StartupRead[] {
  // Other init containers have ended.
  const sidecars = initContainers.filter(({ restartPolicy }) => restartPolicy === "Always");
  return [...containers, ...sidecars].flatMap((container) =>
    (container.env ?? []).flatMap(({ name, valueFrom }) => {
      const { containerName = container.name, resource = "" } = valueFrom?.resourceFieldRef ?? {};
      const found = RESOURCES[resource];
      if (!found || containerName !== sized) return [];
      // A CPU limit of the owner does not change. Without one, the variable has the CPU of the node.
      if (resource === "limits.cpu" && !cpuLimitFollows) return [];
      const message = `the variable ${name} of the container ${container.name} gets ${resource} only when the container starts`;
      return [{ resource: found, reason: "SizeFromEnvironment", message } as const];
    }),
  );
}

/** Options with which a program computes its memory from the limit when it starts. */
const JVM_SHARE = /-XX:(?:Initial|Max|Min)RAM(?:Percentage|Fraction)=\d+(?:\.\d+)?/;
const NODE_SHARE = /--max[-_]old[-_]space[-_]size[-_]percentage=\d+(?:\.\d+)?/;
/** With these, the maximum heap of a JVM does not depend on the limit, whatever the shares are. */
const JVM_AMOUNT = /-Xmx\d|-XX:MaxHeapSize=\d/;

function ofPercentage({ command = [], args = [], env = [] }: TemplateContainer): StartupRead[] {
  const texts = [...command, ...args, ...env.map(({ value = "" }) => value)];
  const isFixed = texts.some((text) => JVM_AMOUNT.test(text));
  for (const text of texts) {
    // The option only, because the rest may be secret.
    const [option] = (isFixed ? undefined : JVM_SHARE.exec(text)) ?? NODE_SHARE.exec(text) ?? [];
    if (option === undefined) continue;
    const message = `its program computes its memory from ${option} only when it starts`;
    return [{ resource: "memory", reason: "SizeFromPercentage", message }];
  }
  return [];
}
