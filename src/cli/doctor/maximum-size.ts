import { sizeIn } from "../../crd/size-fields.ts";
import { describeSize } from "../../domain/size.ts";
import type { Cluster } from "./cluster.ts";
import { note, type Result } from "./result.ts";

/** Finds services whose size is larger than what can be requested now. They keep it. */
export async function checkMaximumSize(cluster: Cluster): Promise<Result[]> {
  const ours = await cluster.ownInstallations();
  const api = ours.find(({ component }) => component === "api");
  const maximumCores = api?.maximumCores;
  if (maximumCores === undefined) return [];
  const larger = (await cluster.scalings()).flatMap(({ metadata, spec = {} }) => {
    const size = sizeIn(spec);
    if (!size || size.cpuMillicores <= maximumCores * 1000) return [];
    return [`${metadata.namespace}/${metadata.name} with ${describeSize(size)}`];
  });
  const [first] = larger;
  if (first === undefined) return [];
  const others = larger.length === 1 ? "" : ` (and ${larger.length - 1} more)`;
  return [
    note(
      `The API accepts at most ${maximumCores} cores, but a service has more: ${first}${others}. It keeps this size until another one is requested. The API rejects this one.`,
      `Request a smaller size (pipe-scaling scaling set <service> --cores ${maximumCores}), or raise sizes.maximumCores in the values of the chart.`,
    ),
  ];
}
