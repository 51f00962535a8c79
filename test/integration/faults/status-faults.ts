import type { Kinds } from "./history.ts";
import { sizeOfCores } from "./pipe-view.ts";

/**
 * Returns a sentence for each fault of a status that was just written.
 *
 * @param ran returns true if all pipes ran this size at some time since the version that the status is based on
 */
export function statusFaults(
  { metadata, spec = {}, status = {} }: Kinds["PipeScaling"],
  ran: (size: string) => boolean,
): string[] {
  const { observedGeneration, conditions = [], desired } = status;
  const is = (type: string) => conditions.some((each) => each.type === type && each.status === "True");
  const faults: string[] = [];
  if (is("Reconciling") && is("Stalled")) faults.push("its status is both Reconciling and Stalled");
  if (!is("Ready")) return faults;
  const generations = [
    observedGeneration,
    conditions.find(({ type }) => type === "Ready")?.observedGeneration,
  ];
  if (generations.some((each) => each !== metadata.generation))
    faults.push(`Ready=True is about generation ${generations.join(" or ")} of ${metadata.generation}`);
  if (!desired) return [...faults, "Ready=True without a desired size"];
  const size = sizeOfCores(desired.replicaCpuMillicores / 1000);
  if (desired.source === "Spec" && desired.replicaCpuMillicores !== spec.replicaCpuMillicores)
    faults.push(`Ready=True at ${size}, which is not the size in its spec`);
  if (!ran(size)) faults.push(`Ready=True at ${size}, but not every pipe ran it after a completed rollout`);
  return faults;
}
