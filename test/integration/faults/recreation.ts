import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import { ownedLeaves } from "../../e2e/demo/ownership.ts";
import type { Kinds } from "./history.ts";
import type { PipeRecord } from "./pipe-record.ts";
import { hasOurAnnotation, sizeOfCores } from "./pipe-view.ts";

type Scaling = Kinds["PipeScaling"];

/** The size that a PipeScaling asks for; `undefined` for the tier's default. */
export function requestedSize({ spec }: Scaling): string | undefined {
  const millicores = spec?.replicaCpuMillicores;
  return millicores === undefined ? undefined : sizeOfCores(millicores / 1000);
}

/**
 * Checks a PipeScaling that the controller created, by the rule that a deletion resizes nothing. It is as it was before
 * the deletion, or suspended, or all pipes have its size. The tier's default is only for a service of which no pipe shows
 * that the controller resized it.
 *
 * @returns sentences, none if all is well
 * @param deleted the PipeScaling of the service before, if there was one
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

/** Another writer may have removed every trace of the controller. */
function isVisiblyResized({ object, newestGiven }: PipeRecord): boolean {
  if (newestGiven === -1) return false;
  return hasOurAnnotation(object) || ownedLeaves(object, CONTROLLER_FIELD_MANAGER).length > 0;
}
