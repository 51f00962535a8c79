import * as z from "zod";
import {
  allSizes,
  CPU_MAXIMUM_MILLICORES,
  CPU_MINIMUM_MILLICORES,
  CPU_STEP_MILLICORES,
  cpuMillicoresFor,
  GIB_PER_CORE,
  MEMORY_MAXIMUM_GIB,
  MEMORY_MINIMUM_GIB,
  MEMORY_STEP_GIB,
  memoryGibFor,
  type Size,
} from "../../../domain/size.ts";

const CPU_RULE = `must be an integer from ${CPU_MINIMUM_MILLICORES} to ${CPU_MAXIMUM_MILLICORES}, a multiple of ${CPU_STEP_MILLICORES}`;
const MEMORY_RULE = `must be a number from ${MEMORY_MINIMUM_GIB} to ${MEMORY_MAXIMUM_GIB}, a multiple of ${MEMORY_STEP_GIB}`;

// multipleOf of zod tolerates rounding errors, but values in the cluster must be exact.
const sizeFields = {
  replicaCpuMillicores: z
    .int(CPU_RULE)
    .min(CPU_MINIMUM_MILLICORES, CPU_RULE)
    .max(CPU_MAXIMUM_MILLICORES, CPU_RULE)
    .multipleOf(CPU_STEP_MILLICORES, CPU_RULE)
    .meta({ description: "CPU of one replica, in thousandths of a core.", examples: [4000] }),
  replicaMemoryGb: z
    .number(MEMORY_RULE)
    .min(MEMORY_MINIMUM_GIB, MEMORY_RULE)
    .max(MEMORY_MAXIMUM_GIB, MEMORY_RULE)
    .multipleOf(MEMORY_STEP_GIB, MEMORY_RULE)
    .refine(Number.isInteger, MEMORY_RULE)
    .meta({
      description: `Memory of one replica, in GiB: exactly ${GIB_PER_CORE} times the number of cores.`,
      examples: [memoryGibFor(4000)],
    }),
};

export const pipeScaling = z.strictObject(sizeFields).meta({
  id: "PipeScaling",
  description: `The size of one replica of each pipe of a service. Two cores with ${2 * GIB_PER_CORE} GiB are one compute unit.`,
});

export type PipeScalingObject = z.infer<typeof pipeScaling>;

export function toPipeScaling(size: Size): PipeScalingObject {
  return { replicaCpuMillicores: size.cpuMillicores, replicaMemoryGb: size.memoryGib };
}

/** JSON Schema of the rule between the fields: together they must be one of the sizes. */
export const ratioRule = {
  if: {
    type: "object",
    description: "Both fields are sent.",
    required: ["replicaCpuMillicores", "replicaMemoryGb"],
  },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
  then: {
    type: "object",
    description: "They are one of the sizes.",
    anyOf: allSizes().map(({ cpuMillicores, memoryGib }) => ({
      properties: { replicaCpuMillicores: { const: cpuMillicores }, replicaMemoryGb: { const: memoryGib } },
    })),
  },
};

/** The body of a PATCH without the rule between its fields, which `pipeScalingPatch` checks. */
const pipeScalingFields = pipeScaling.partial().meta({
  id: "PipeScalingPatch",
  description: `Send one field, from which the API derives the other, or both; then replicaMemoryGb must be exactly ${GIB_PER_CORE} × replicaCpuMillicores / 1000.`,
  minProperties: 1,
  ...ratioRule,
});

/** The body of a PATCH: the API derives an absent field from the other; if both are sent, they must agree. */
export const pipeScalingPatch = pipeScalingFields.transform(sizeIn);

/** The size in a body; adds the problem to the context if there is none. */
export function sizeIn(body: SizeInBody, context: z.RefinementCtx): Size {
  const { replicaCpuMillicores, replicaMemoryGb } = body;
  const cpuMillicores = replicaCpuMillicores ?? cpuOf(replicaMemoryGb);
  if (cpuMillicores === undefined) {
    const message = "must have replicaCpuMillicores, replicaMemoryGb or both";
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  }
  const memoryGib = memoryGibFor(cpuMillicores);
  if (replicaMemoryGb !== undefined && replicaMemoryGb !== memoryGib) {
    const message = `must be exactly ${GIB_PER_CORE} times the number of cores: ${memoryGib} for replicaCpuMillicores ${cpuMillicores}`;
    context.addIssue({ code: "custom", path: ["replicaMemoryGb"], message });
    return z.NEVER;
  }
  return { cpuMillicores, memoryGib };
}

interface SizeInBody {
  readonly replicaCpuMillicores?: number | undefined;
  readonly replicaMemoryGb?: number | undefined;
}

function cpuOf(memoryGib: number | undefined): number | undefined {
  return memoryGib === undefined ? undefined : cpuMillicoresFor(memoryGib);
}
