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
 * Checks that a PipeScaling that the controller created resizes nothing: it is the same as before its deletion, or
 * suspended, or all pipes have its size. It has the default of the tier only if no pipe shows that the controller
 * resized it.
 *
 * @returns a sentence for each fault
 * @param deleted the previous PipeScaling of the service, if there was one
 * @param pipes all pipes of the service
 */
export function recreationFaults(
  created: Scaling,
  deleted: Scaling | undefined,
  pipes: readonly PipeRecord[],
): string[] {
  const size = requestedSize(created);
  if (created.spec?.suspend) return [];
  if (deleted && !deleted.spec?.suspend && requestedSize(deleted) === size) return [];
  const others = pipes.filter((pipe) => (size === undefined ? isVisiblyResized(pipe) : pipe.size !== size));
  const names = others.map((pipe) => `${pipe.name} with ${pipe.size}`);
  return others.length === 0
    ? []
    : [
        `the controller created it with ${size ?? "the tier's default size"}, which resizes ${names.join(", ")}`,
      ];
}

/** False also if another writer has removed every trace of the controller. */
function isVisiblyResized({ object, newestGiven }: PipeRecord): boolean {
  if (newestGiven === -1) return false;
  return hasOurAnnotation(object) || ownedLeaves(object, CONTROLLER_FIELD_MANAGER).length > 0;
}
