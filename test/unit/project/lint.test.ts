import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/**
 * Reads the import table of docs/ARCHITECTURE.md: for each folder of src, the folders that it may import. An import
 * that is not listed is forbidden.
 */
function importTable(): Readonly<Record<string, readonly string[]>> {
  const rows = readFileSync("docs/ARCHITECTURE.md", "utf8").matchAll(/^\| `src\/(\w+)` \|.*\| ([^|]+) \|$/gm);
  return Object.fromEntries(
    [...rows].map(([, importer = "", imports = ""]) => {
      const [folders = ""] = imports.split(";");
      return [importer, folders === "no other folder" ? [] : folders.split(", ")];
    }),
  );
}

const MAY_IMPORT = importTable();

const FOLDERS = Object.keys(MAY_IMPORT);

/** The only files of src/api that src/cli may import. */
const WIRE_SCHEMAS = [
  "resources/schema-parts.ts",
  "resources/services/schema.ts",
  "resources/pipe-scaling/progress-schema.ts",
];
const OTHERS_OF_API = [
  "app.ts",
  "errors.ts",
  "schema.ts",
  "cluster/schema.ts",
  "middleware/respond.ts",
  "resources/envelopes.ts",
  "resources/operations.ts",
  "resources/services/routes.ts",
  "resources/backup/service.ts",
];

describe("the linter, in a copy of the tree where every folder imports every other folder,", () => {
  const copy = mkdtempSync(join(tmpdir(), "lint-"));
  let report: { diagnostics: { message: string; location: { path: string } }[] };
  afterAll(() => rmSync(copy, { recursive: true }));

  const probe = (path: string, imported: string) => {
    mkdirSync(dirname(join(copy, path)), { recursive: true });
    writeFileSync(join(copy, path), `import { thing } from "${imported}";\n\nthing();\n`);
  };

  beforeAll(() => {
    for (const file of ["biome.json", ".gitignore"]) copyFileSync(file, join(copy, file));
    for (const importer of FOLDERS) {
      for (const other of FOLDERS) probe(`src/${importer}/from-${other}.ts`, `../${other}/thing.ts`);
      probe(`src/${importer}/from-main.ts`, "../main.ts");
    }
    for (const path of [...WIRE_SCHEMAS, ...OTHERS_OF_API]) {
      probe(`src/cli/customer/${path}`, `../../api/${path}`);
      probe(`src/controller/api/${path}`, `../../api/${path}`);
    }
    probe("src/api/nested/from-controller.ts", "../../controller/thing.ts");
    const args = [
      "lint",
      "--reporter=json",
      "--max-diagnostics=none",
      "--only=style/noRestrictedImports",
      ".",
    ];
    const run = spawnSync(resolve("node_modules/.bin/biome"), args, { cwd: copy, encoding: "utf8" });
    report = JSON.parse(run.stdout);
  });

  it("covers every folder of src, because docs/ARCHITECTURE.md lists them all", () => {
    const folders = readdirSync("src", { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(FOLDERS.toSorted()).toEqual(folders.map(({ name }) => name).toSorted());
  });

  const resultFor = (path: string) =>
    report.diagnostics.find((each) => each.location.path.endsWith(path))?.message ?? "allowed";

  it.each(FOLDERS)("allows src/%s only the imports that docs/ARCHITECTURE.md lists", (importer) => {
    for (const other of FOLDERS.filter((each) => each !== importer)) {
      const isAllowed = MAY_IMPORT[importer]?.includes(other) ?? false;
      const expected = isAllowed ? "allowed" : expect.stringContaining("Imports point one way");
      expect(resultFor(`src/${importer}/from-${other}.ts`), `${importer} → ${other}`).toEqual(expected);
    }
    expect(resultFor(`src/${importer}/from-${importer}.ts`)).toBe("allowed");
    expect(resultFor(`src/${importer}/from-main.ts`)).toContain("Imports point one way");
  });

  it.each(WIRE_SCHEMAS)("allows only src/cli to import src/api/%s", (path) => {
    expect(resultFor(`src/cli/customer/${path}`)).toBe("allowed");
    expect(resultFor(`src/controller/api/${path}`)).toContain("Imports point one way");
  });

  it.each(OTHERS_OF_API)("does not allow src/cli to import src/api/%s", (path) => {
    expect(resultFor(`src/cli/customer/${path}`)).toContain("Imports point one way");
  });

  it("reports a forbidden import in a nested folder", () => {
    expect(resultFor("src/api/nested/from-controller.ts")).toContain("Imports point one way");
  });
});
