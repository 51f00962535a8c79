import { basename, join } from "node:path";
import { rolldown } from "rolldown";
import config from "../rolldown.config.ts";

/** Builds the program as `npm run build` does, into another folder. @returns its path */
export function buildProgram(dir: string): Promise<string> {
  return bundle({}, join(dir, "pipe-scaling.js"));
}

/** Builds a program of a benchmark in the same way. @param input path of its source */
export function buildLikewise(input: string, dir: string): Promise<string> {
  return bundle({ input }, join(dir, basename(input).replace(/\.ts$/, ".js")));
}

async function bundle(input: { readonly input?: string }, file: string): Promise<string> {
  const build = await rolldown({ ...config, ...input });
  await build.write({ ...config.output, file });
  await build.close();
  return file;
}
