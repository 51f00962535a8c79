import * as z from "zod";
import { RESIZE_STRATEGIES } from "../domain/resize-strategy.ts";
import {
  CPU_MAXIMUM_MILLICORES,
  CPU_MINIMUM_MILLICORES,
  CPU_STEP_MILLICORES,
  GIB_PER_CORE,
  MEMORY_MAXIMUM_GIB,
  MEMORY_MINIMUM_GIB,
  MEMORY_STEP_GIB,
} from "../domain/size.ts";
import { dateTime } from "./fields.ts";

/**
 * A rule about both size fields, which only the schema of the object around them can express. It does not apply while
 * both fields are unchanged, so that a later, stricter rule never blocks `suspend: true` on an old object.
 */
function aboutSize(rule: string, message: string) {
  // Without `orValue`, Kubernetes 1.32 estimates that the comparison costs too much, and refuses the CRD.
  const isSame = (field: string) => `oldSelf.value().?${field}.orValue(0) == self.?${field}.orValue(0)`;
  const unchanged = `oldSelf.hasValue() && ${isSame("replicaCpuMillicores")} && ${isSame("replicaMemoryGb")}`;
  return { rule: `(${unchanged}) || (${rule})`, message, optionalOldSelf: true };
}

const cpu = z.int().min(CPU_MINIMUM_MILLICORES).max(CPU_MAXIMUM_MILLICORES).multipleOf(CPU_STEP_MILLICORES);
const memory = z.int().min(MEMORY_MINIMUM_GIB).max(MEMORY_MAXIMUM_GIB).multipleOf(MEMORY_STEP_GIB);
const CPU = `CPU of each replica of each database pipe, in millicores: ${CPU_MINIMUM_MILLICORES} to ${CPU_MAXIMUM_MILLICORES} in steps of ${CPU_STEP_MILLICORES}.`;
const MEMORY = `Memory of each replica of each database pipe, in GiB: ${MEMORY_MINIMUM_GIB} to ${MEMORY_MAXIMUM_GIB} in steps of ${MEMORY_STEP_GIB}, and exactly ${GIB_PER_CORE} for each core.`;

const RATIO_RULE = `self.replicaMemoryGb * ${1000 / GIB_PER_CORE} == self.replicaCpuMillicores`;
const RATIO = `replicaMemoryGb must be exactly ${GIB_PER_CORE} for each core: ${GIB_PER_CORE} for 1000 millicores, 16 for 4000`;

/** The size of a boost and its end belong together, so one writer owns both (docs/adr/0040). */
const boost = z
  .object({
    replicaCpuMillicores: cpu.meta({ description: CPU }),
    replicaMemoryGb: memory.meta({ description: MEMORY }),
    // The API server accepts any offset in a date-time. JavaScript parses only offsets below 24 h.
    until: dateTime.meta({
      pattern: "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)$",
      description: "End of the boost, such as 2026-01-31T20:00:00Z. From then on, the boost has no effect.",
    }),
  })
  .meta({
    description:
      "A size that takes the place of the requested one until a time, for example for an initial load. The pipes then return to the size that the rest of the spec requests. An ended boost stays in the spec and has no effect; status.boost shows the one in effect.",
    "x-kubernetes-map-type": "atomic",
    "x-kubernetes-validations": [aboutSize(RATIO_RULE, RATIO)],
  });

/** The part that people and the API write. The controller sets it only when it creates a PipeScaling. */
export const spec = z
  .object({
    replicaCpuMillicores: cpu.optional().meta({
      description: `${CPU} Requires replicaMemoryGb; if both are omitted, the organization's tier determines the size.`,
    }),
    replicaMemoryGb: memory.optional().meta({ description: MEMORY }),
    boost: boost.optional(),
    strategy: z.enum(RESIZE_STRATEGIES).optional().meta({
      description:
        "How pipes are resized. InPlaceOrRollout changes running pods without a restart, and replaces the pods of a pipe where that is not possible. InPlace never replaces pods: a pipe that cannot be resized in place keeps its size, and the status says why. Rollout always replaces them. Without it, the setting of the controller applies.",
    }),
    suspend: z.boolean().optional().meta({
      description: "While true, the controller does not resize the pipes and only reports their state.",
    }),
  })
  .meta({
    description: "The requested size of all database pipes of the service that this resource is named after.",
    "x-kubernetes-validations": [
      aboutSize(
        "has(self.replicaCpuMillicores) == has(self.replicaMemoryGb)",
        "replicaCpuMillicores and replicaMemoryGb must be set together: set both, or neither for the default of the tier",
      ),
      aboutSize(`!has(self.replicaCpuMillicores) || !has(self.replicaMemoryGb) || ${RATIO_RULE}`, RATIO),
    ],
  });
