import * as z from "zod";
import {
  allSizes,
  CPU_MINIMUM_MILLICORES,
  CPU_STEP_MILLICORES,
  cpuMillicoresFor,
  GIB_PER_CORE,
  MEMORY_MINIMUM_GIB,
  MEMORY_STEP_GIB,
  memoryGibFor,
  type Size,
} from "../../../domain/size.ts";

const RATIO = `: exactly ${GIB_PER_CORE} times the number of cores`;

/** The fields of a size. Those of a request have a maximum, which the platform sets. */
function fieldsOf(cpu: z.ZodInt, memory: z.ZodNumber, ratio = RATIO) {
  return {
    replicaCpuMillicores: cpu.meta({
      description: "CPU of one replica, in thousandths of a core.",
      examples: [4000],
    }),
    replicaMemoryGb: memory.meta({
      description: `Memory of one replica, in GiB${ratio}.`,
      examples: [memoryGibFor(4000)],
    }),
  };
}

// multipleOf of zod tolerates rounding errors, but values in the cluster must be exact.
export function requestedFields({ cpuMillicores, memoryGib }: Size) {
  const cpuRule = `must be an integer from ${CPU_MINIMUM_MILLICORES} to ${cpuMillicores}, a multiple of ${CPU_STEP_MILLICORES}`;
  const memoryRule = `must be a number from ${MEMORY_MINIMUM_GIB} to ${memoryGib}, a multiple of ${MEMORY_STEP_GIB}`;
  return fieldsOf(
    z
      .int(cpuRule)
      .min(CPU_MINIMUM_MILLICORES, cpuRule)
      .max(cpuMillicores, cpuRule)
      .multipleOf(CPU_STEP_MILLICORES, cpuRule),
    z
      .number(memoryRule)
      .min(MEMORY_MINIMUM_GIB, memoryRule)
      .max(memoryGib, memoryRule)
      .multipleOf(MEMORY_STEP_GIB, memoryRule)
      .refine(Number.isInteger, memoryRule),
  );
}

/** A size in a response has no maximum, because a service keeps its size if the platform lowers the maximum. */
export const pipeScaling = z
  .strictObject(
    fieldsOf(
      z.int().min(CPU_MINIMUM_MILLICORES).multipleOf(CPU_STEP_MILLICORES),
      z.number().min(MEMORY_MINIMUM_GIB).multipleOf(MEMORY_STEP_GIB),
    ),
  )
  .meta({
    id: "PipeScaling",
    description: `The size of one replica of each pipe of a service. Two cores with ${2 * GIB_PER_CORE} GiB are one compute unit.`,
  });

/** The owner of the pipes may have chosen their size: any CPU in whole millicores, with any memory in whole GiB. */
export const effectivePipeScaling = z.strictObject(fieldsOf(z.int().min(0), z.number().min(0), "")).meta({
  id: "EffectivePipeScaling",
  description:
    "The size that all pipes of a service have. Usually it is one that can be requested. Pipes that ran before they belonged to the service can have another one, such as 500 millicores with 2 GiB, until a size is requested.",
});

export type PipeScalingObject = z.infer<typeof pipeScaling>;

export function toPipeScaling(size: Size): PipeScalingObject {
  return { replicaCpuMillicores: size.cpuMillicores, replicaMemoryGb: size.memoryGib };
}

/** JSON Schema of the rule between the fields: together they must be one of the sizes. */
export function ratioRule(maximum: Size) {
  return {
    if: {
      type: "object",
      description: "Both fields are sent.",
      required: ["replicaCpuMillicores", "replicaMemoryGb"],
      // Linters expect a required property to be declared in the same place.
      properties: { replicaCpuMillicores: {}, replicaMemoryGb: {} },
    },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: {
      type: "object",
      description: "They are one of the sizes.",
      anyOf: allSizes(maximum).map(({ cpuMillicores, memoryGib }) => ({
        properties: {
          replicaCpuMillicores: { const: cpuMillicores },
          replicaMemoryGb: { const: memoryGib },
        },
      })),
    },
  } as const;
}

/** Checks each field of the body of a PATCH by itself. `pipeScalingPatch` also checks the rule between them. */
function pipeScalingFields(maximum: Size) {
  return z
    .strictObject(requestedFields(maximum))
    .partial()
    .meta({
      id: "PipeScalingPatch",
      description: `Send one field, from which the API derives the other, or both. If you send both, replicaMemoryGb must be exactly ${GIB_PER_CORE} × replicaCpuMillicores / 1000.`,
      minProperties: 1,
      ...ratioRule(maximum),
    });
}

/** The body of a PATCH: the API derives an absent field from the other; if both are sent, they must agree. */
export function pipeScalingPatch(maximum: Size) {
  return pipeScalingFields(maximum).transform(sizeIn);
}

/** Returns the size in a body. If there is none, or the fields do not match, adds the problem to the context. */
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
