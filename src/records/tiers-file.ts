import { readFileSync } from "node:fs";
import * as z from "zod";
import {
  CPU_MAXIMUM_MILLICORES,
  CPU_MINIMUM_MILLICORES,
  CPU_STEP_MILLICORES,
  GIB_PER_CORE,
  memoryGibFor,
  type Size,
} from "../domain/size.ts";
import type { Tier, Tiers } from "../domain/tier.ts";
import { describeIssues, MAX_RECORD_BYTES, type Parsed } from "./parse.ts";
import { readYaml } from "./yaml.ts";

const millicores = z
  .int()
  .min(CPU_MINIMUM_MILLICORES)
  .max(CPU_MAXIMUM_MILLICORES)
  .multipleOf(CPU_STEP_MILLICORES)
  .transform((cpuMillicores): Size => ({ cpuMillicores, memoryGib: memoryGibFor(cpuMillicores) }));

const SIZE_RULE = `Memory follows: ${GIB_PER_CORE} GiB for each core`;

/** The keys of one tier. */
export const tierEntry = z.strictObject({
  defaultCpuMillicores: millicores.meta({
    description: `Size of pipes for which no size is requested, in millicores. ${SIZE_RULE}.`,
  }),
  maximumCpuMillicores: millicores.meta({
    description: `Largest size of pipes, in millicores; not below the default. ${SIZE_RULE}.`,
  }),
});

const tiersFile = z.record(
  z.string().min(1),
  // Only sizes that are valid can be compared: a refinement would run even if they are not.
  tierEntry.transform((tier, context) => {
    if (tier.defaultCpuMillicores.cpuMillicores > tier.maximumCpuMillicores.cpuMillicores) {
      context.addIssue({ code: "custom", message: "the default is greater than the maximum" });
    }
    return tier;
  }),
);

/**
 * Reads the tiers from a YAML file, such as `basic: {defaultCpuMillicores: 1000, maximumCpuMillicores: 8000}`.
 *
 * @throws Error if the file cannot be read, or with a sentence for the user if it is invalid
 */
export function readTiersFile(path: string): Tiers {
  const tiers = parseTiers(readFileSync(path, "utf8"));
  if (!tiers.ok) throw new Error(`The tiers file ${path} ${tiers.problem}.`);
  return tiers.value;
}

/** Parses the text of a tiers file. The problem continues a sentence whose subject is the file. */
export function parseTiers(text: string): Parsed<Tiers> {
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_RECORD_BYTES) {
    return problem(`is invalid: the file has ${bytes} bytes, and at most ${MAX_RECORD_BYTES} are allowed`);
  }
  const read = readYaml(text, "core");
  if (!read.ok) return read;
  const result = tiersFile.safeParse(read.value);
  if (!result.success) return problem(`is invalid: ${describeIssues(result.error)}`);
  const value = new Map(
    Object.entries(result.data).map(([name, tier]): [string, Tier] => [
      name,
      { name, defaultSize: tier.defaultCpuMillicores, maximumSize: tier.maximumCpuMillicores },
    ]),
  );
  return { ok: true, value };
}

function problem(text: string): { readonly ok: false; readonly problem: string } {
  return { ok: false, problem: text };
}
