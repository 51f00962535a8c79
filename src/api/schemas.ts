import * as z from "zod";
import {
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
} from "../domain/size.ts";
import type { Organization } from "../records/organization.ts";

/**
 * The objects on the wire (api-contract, part 1). What validates also gives the types. Each message follows
 * the name of its field: `replicaMemoryGb must be …`.
 */

const CPU_RULE = `must be an integer from ${CPU_MINIMUM_MILLICORES} to ${CPU_MAXIMUM_MILLICORES}, a multiple of ${CPU_STEP_MILLICORES}`;
const MEMORY_RULE = `must be a number from ${MEMORY_MINIMUM_GIB} to ${MEMORY_MAXIMUM_GIB}, a multiple of ${MEMORY_STEP_GIB}`;

const sizeFields = {
  replicaCpuMillicores: z
    .int(CPU_RULE)
    .min(CPU_MINIMUM_MILLICORES, CPU_RULE)
    .max(CPU_MAXIMUM_MILLICORES, CPU_RULE)
    .multipleOf(CPU_STEP_MILLICORES, CPU_RULE),
  replicaMemoryGb: z
    .number(MEMORY_RULE)
    .min(MEMORY_MINIMUM_GIB, MEMORY_RULE)
    .max(MEMORY_MAXIMUM_GIB, MEMORY_RULE)
    .multipleOf(MEMORY_STEP_GIB, MEMORY_RULE),
};

export const pipeScaling = z.strictObject(sizeFields);

export type PipeScalingObject = z.infer<typeof pipeScaling>;

export function toPipeScaling(size: Size): PipeScalingObject {
  return { replicaCpuMillicores: size.cpuMillicores, replicaMemoryGb: size.memoryGib };
}

/** The body of a PATCH: one field derives the other, both must agree (api-contract, part 2). */
export const pipeScalingPatch = pipeScaling.partial().transform((body, context): Size => {
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
});

function cpuOf(memoryGib: number | undefined): number | undefined {
  return memoryGib === undefined ? undefined : cpuMillicoresFor(memoryGib);
}

export const organization = z.strictObject({
  id: z.guid(),
  name: z.string(),
  createdAt: z.iso.datetime(),
  byocConfig: z.array(z.strictObject({ accountName: z.string(), id: z.string() })),
  privateEndpoints: z.array(z.strictObject({ description: z.string(), id: z.string() })),
});

export type OrganizationObject = z.infer<typeof organization>;

export function toOrganization(record: Organization): OrganizationObject {
  const { id, name, createdAt, byocConfig, privateEndpoints } = record;
  return {
    id,
    name,
    createdAt: createdAt.toISOString(),
    byocConfig: [...byocConfig],
    privateEndpoints: [...privateEndpoints],
  };
}

export const errorEnvelope = z.strictObject({ error: z.string(), status: z.int() });

export function successEnvelope<T extends z.ZodType>(result: T) {
  return z.strictObject({ requestId: z.uuidv4(), status: z.literal(200), result });
}
