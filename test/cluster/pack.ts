import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";

/**
 * Packs this package as one file: `npm run pack -- <folder>`. The file has JavaScript and declarations instead of the
 * sources, because Node runs no TypeScript in node_modules.
 */
const HERE = import.meta.dirname;
/** Go files from which programs are built at run time. */
const GO = ["go.mod", "go.sum", "hollow-kubelet"];

const manifest = z.looseObject({
  bin: z.record(z.string(), z.string()),
  exports: z.record(z.string(), z.string()),
});

function pack(folder: string): void {
  const build = mkdtempSync(join(tmpdir(), "local-cluster-package-"));
  try {
    execFileSync("tsc", ["--project", join(HERE, "tsconfig.pack.json"), "--outDir", build], {
      stdio: "inherit",
    });
    for (const name of GO)
      cpSync(join(HERE, "binaries", name), join(build, "binaries", name), { recursive: true });
    for (const name of ["README.md", "LICENSE"]) cpSync(join(HERE, name), join(build, name));
    writeFileSync(join(build, "package.json"), `${JSON.stringify(packedManifest(), undefined, 2)}\n`);
    execFileSync("npm", ["pack", build, "--pack-destination", folder], { stdio: "inherit" });
  } finally {
    rmSync(build, { recursive: true });
  }
}

function packedManifest() {
  const source = manifest.parse(JSON.parse(readFileSync(join(HERE, "package.json"), "utf8")));
  const { bin, exports } = source;
  // JSON leaves out what is undefined.
  const onlyHere = { scripts: undefined, devDependencies: undefined };
  return { ...source, ...onlyHere, bin: inJavaScript(bin), exports: inJavaScript(exports) };
}

function inJavaScript(files: Readonly<Record<string, string>>) {
  return Object.fromEntries(
    Object.entries(files).map(([name, file]) => [name, file.replace(/\.ts$/, ".js")]),
  );
}

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("Name the folder for the package: npm run pack -- <folder>");
pack(folder);
