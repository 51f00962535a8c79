import { globSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";
import { manifest, PACKAGE } from "../support/package-folder.ts";

const { dependencies, peerDependencies, devDependencies } = manifest;
/** Static imports start a line, unlike those in code that a test writes. */
const IMPORT = /^(?:import|export|\}).* from "([^"]+)"|^import "([^"]+)"|\bimport\("([^"$]+)"\)/gm;

function importsIn(file: string): string[] {
  const text = readFileSync(join(PACKAGE, file), "utf8");
  return [...text.matchAll(IMPORT)].map(([, from, plain, lazy]) => from ?? plain ?? lazy ?? "");
}

/** The package that has a module: `vitest` for `vitest/config`. */
function packageOf(module: string): string {
  return module.split("/", module.startsWith("@") ? 2 : 1).join("/");
}

test("the package imports only its own files, its dependencies and Node, so that it works outside of this repository", () => {
  const files = globSync("**/*.ts", { cwd: PACKAGE, exclude: ["**/node_modules"] });
  expect(files).toContain("cluster.ts");
  const used = { ...dependencies, ...peerDependencies };
  const outside = files.flatMap((file) => {
    const isTest = file.startsWith("test/") || file.endsWith(".config.ts");
    const allowed = isTest ? { ...used, ...devDependencies } : used;
    return importsIn(file)
      .filter((module) =>
        module.startsWith(".")
          ? relative(PACKAGE, join(PACKAGE, dirname(file), module)).startsWith("..")
          : !(isBuiltin(module) || Object.hasOwn(allowed, packageOf(module))),
      )
      .map((module) => `${file} imports ${module}`);
  });
  expect(outside).toEqual([]);
});
