import { basename, join } from "node:path";
import { rolldown } from "rolldown";
import config from "../rolldown.config.ts";

/** Builds the program as `npm run build` does, into another folder. @returns the path of its entry point */
export function buildProgram(dir: string): Promise<string> {
  return bundle("pipe-scaling", "src/main.ts", dir);
}

/** Builds a program of a benchmark in the same way. @param input path of its source */
export function buildLikewise(input: string, dir: string): Promise<string> {
  return bundle(basename(input, ".ts"), input, dir);
}

async function bundle(name: string, input: string, dir: string): Promise<string> {
  const folder = join(dir, name);
  const build = await rolldown({ ...config, input: { [name]: input } });
  await build.write({ ...config.output, dir: folder });
  await build.close();
  return join(folder, `${name}.mjs`);
}
