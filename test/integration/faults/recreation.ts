import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import { ownedLeaves } from "../../e2e/demo/ownership.ts";
import type { Kinds } from "./history.ts";
import type { PipeRecord } from "./pipe-record.ts";
import { hasOurAnnotation, sizeOfCores } from "./pipe-view.ts";

type Scaling = Kinds["PipeScaling"];

/** The size that a PipeScaling requests; `undefined` for the default of the tier. */
export function requestedSize({ spec }: Scaling): string | undefined {
  const millicores = spec?.replicaCpuMillicores;
  return millicores === undefined ? undefined : sizeOfCores(millicores / 1000);
}

/**
 * Checks that a PipeScaling that the controller created resizes nothing, whatever the previous one requested: it is
 * suspended, or all pipes have its size, and no pod is on its way to another one. It has the default of the tier only if
 * no pipe shows that the controller resized it.
 *
 * @returns a sentence for each fault
 * @param pipes all pipes of the service
 */
export function recreationFaults(created: Scaling, pipes: readonly PipeRecord[]): string[] {
  const size = requestedSize(created);
  if (created.spec?.suspend) return [];
  const others = pipes.filter((pipe) =>
    size === undefined ? isVisiblyResized(pipe) : !isOfSize(pipe, size),
  );
  const names = others.map((pipe) => `${pipe.name} with ${pipe.resizingTo ?? pipe.size}`);
  return others.length === 0
    ? []
    : [
        `the controller created it with ${size ?? "the tier's default size"}, which resizes ${names.join(", ")}`,
      ];
}

function isOfSize({ size, resizingTo = size }: PipeRecord, wanted: string): boolean {
  return size === wanted && resizingTo === wanted;
}

/** False also if another writer has removed every trace of the controller. */
function isVisiblyResized({ object, newestGiven, resizingTo }: PipeRecord): boolean {
  if (resizingTo !== undefined) return true;
  if (newestGiven === -1) return false;
  return hasOurAnnotation(object) || ownedLeaves(object, CONTROLLER_FIELD_MANAGER).length > 0;
}
