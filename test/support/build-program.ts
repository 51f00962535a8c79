import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { run, tail } from "@pipe-scaling/local-cluster/run";
import type { TestProject } from "vitest/node";
import { useTemporaryFolder } from "./temp-folder.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

declare module "vitest" {
  export interface ProvidedContext {
    /** Path of the built program, which starts four times as fast as the sources. */
    program: string;
  }
}

/** Maximum number of lines of errors, enough for those of several files. */
const MOST_LINES = 60;

/** A global setup of vitest: builds the program once for all projects of a run, in the folder of temporary files. */
export async function setup(project: TestProject): Promise<void> {
  const folder = join(useTemporaryFolder(), "program");
  if (!existsSync(folder)) await build(folder);
  project.provide("program", join(folder, "pipe-scaling.mjs"));
}

async function build(folder: string): Promise<void> {
  // The configuration needs import.meta.resolve, which the module runner of global setups does not support.
  const words = ["exec", "--", "rolldown", "-c", "rolldown.config.ts", "--dir", folder];
  const { code, stderr } = await run("npm", words, { cwd: ROOT, env: environment });
  if (code !== 0)
    throw new Error(
      `building the program failed (npm run lint shows all errors):\n${tail(stderr, MOST_LINES)}`,
    );
}
