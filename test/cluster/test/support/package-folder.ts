import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";

/** The folder of this package. */
export const PACKAGE = fileURLToPath(new URL("../../", import.meta.url));

const texts = z.record(z.string(), z.string());

export const manifest = z
  .object({
    name: z.string(),
    version: z.string(),
    exports: texts,
    dependencies: texts,
    devDependencies: texts,
    peerDependencies: texts,
  })
  .parse(JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8")));

/** Makes installed packages available in a folder, so that a test needs no registry. */
export function linkPackages(folder: string, names: readonly string[]): void {
  for (const name of names) {
    const found = findPackageJSON(name, import.meta.url);
    if (found === undefined) throw new Error(`${name} is not installed`);
    const link = join(folder, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(dirname(found), link);
  }
}
