import { join } from "node:path";
import { rolldown } from "rolldown";
import config from "../../rolldown.config.ts";

/**
 * Bundles a program as `npm run build` does; it starts several times faster than its sources.
 *
 * @returns path of its entry point, `program.mjs` in the folder
 */
export async function bundle(dir: string, input = "src/main.ts"): Promise<string> {
  const build = await rolldown({ ...config, input: { program: input } });
  await build.write({ ...config.output, dir });
  await build.close();
  return join(dir, "program.mjs");
}
