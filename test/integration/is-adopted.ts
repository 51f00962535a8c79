import { LAST_ROLLOUT_ANNOTATION } from "../../src/controller/names.ts";
import { parseLastRollout } from "../../src/controller/observe/last-rollout.ts";
import { ownsSize } from "../../src/controller/observe/workloads/field-owners.ts";
import type { Workload } from "../../src/kube/workloads.ts";

/**
 * True if the controller owns the size of the pipe, and its annotation says that pods have run with it. One of them can
 * follow after Ready=True, in a write of its own.
 */
export function isAdopted({ metadata, spec }: Workload): boolean {
  const container = spec.template.spec.containers.find(({ name }) => name === "pipe");
  const lastRollout = parseLastRollout(metadata.annotations?.[LAST_ROLLOUT_ANNOTATION], metadata.uid);
  return lastRollout?.cameUp === true && ownsSize(container, metadata.managedFields, false);
}
