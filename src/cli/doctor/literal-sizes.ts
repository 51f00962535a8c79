import { keyOfPipe } from "../../controller/observe/workloads/kinds.ts";
import type { TemplateContainer } from "../../kube/pods.ts";
import type { Cluster, Pipe } from "./cluster.ts";
import { type Result, warning } from "./result.ts";

/** Options of runtimes that set an amount of memory or CPU. Those that set a percentage have other names. */
const OPTION =
  /-Xmx\d\w*|-XX:(?:MaxRAM|MaxHeapSize|ActiveProcessorCount)=\d\w*|--max[-_]old[-_]space[-_]size=\d+/g;
const VARIABLES = ["GOMEMLIMIT", "GOMAXPROCS"];

/** Finds fixed sizes in arguments and variables, which do not follow a resize. */
export async function checkLiteralSizes(cluster: Cluster): Promise<Result[]> {
  return (await cluster.pipes()).flatMap((pipe) => {
    const found = sizedContainers(pipe).flatMap(literalsOf);
    if (found.length === 0) return [];
    return [
      warning(
        `The pipe ${keyOfPipe(pipe.view)} sets a fixed size, ${found.join(", ")}: the program does not follow a resize. With a fixed memory size, it may be killed if the pipe gets less memory.`,
        "Use a share of the limit, which the program reads at each start: -XX:MaxRAMPercentage=75 (Java), --max-old-space-size-percentage=75 (Node.js), or GOMEMLIMIT from resourceFieldRef limits.memory (Go). Remove a number of CPUs. A pipe with such a share restarts for each resize.",
      ),
    ];
  });
}

function sizedContainers({ view: { container }, template }: Pipe): readonly TemplateContainer[] {
  const { containers } = template.spec;
  return "problem" in container ? containers : containers.filter(({ name }) => name === container.name);
}

/** The options only, because the rest may be secret. */
function literalsOf({ command = [], args = [], env = [] }: TemplateContainer): string[] {
  const ofCommand = [...command, ...args].flatMap((text) => text.match(OPTION) ?? []);
  const ofVariables = env.flatMap(({ name, value = "" }) => {
    if (VARIABLES.includes(name) && /^\d/.test(value)) return [`${name}=${value}`];
    return (value.match(OPTION) ?? []).map((option) => `${option} in ${name}`);
  });
  return [...ofCommand, ...ofVariables];
}
