import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/** The import table of docs/ARCHITECTURE.md. An import that is not listed is forbidden. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  domain: [],
  crd: ["domain"],
  records: ["domain"],
  kube: [],
  telemetry: ["kube"],
  runtime: ["kube"],
  settings: ["domain", "records", "kube", "telemetry"],
  api: ["domain", "crd", "records", "kube", "runtime", "telemetry", "settings"],
  controller: ["domain", "crd", "records", "kube", "runtime", "telemetry", "settings"],
  cli: ["domain", "crd", "records", "settings", "kube", "runtime", "controller"],
};

const ROOMS = Object.keys(MAY_IMPORT);

/** The wire schemas, which are all that src/cli may import of src/api. */
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

describe("npm run lint", () => {
  it("is clean", { timeout: 120_000 }, () => {
    const run = spawnSync("npm", ["run", "--silent", "lint"], { encoding: "utf8" });
    expect(run.status, `${run.stdout}${run.stderr}`).toBe(0);
  });

  describe("in a copy of the tree with every import from every room", () => {
    const folder = mkdtempSync(join(tmpdir(), "lint-"));
    let report: { diagnostics: { message: string; location: { path: string } }[] };
    afterAll(() => rmSync(folder, { recursive: true }));

    const probe = (path: string, imported: string) => {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), `import { thing } from "${imported}";\n\nthing();\n`);
    };

    beforeAll(() => {
      for (const file of ["biome.json", ".gitignore"]) copyFileSync(file, join(folder, file));
      for (const room of ROOMS) {
        for (const other of ROOMS) probe(`src/${room}/from-${other}.ts`, `../${other}/thing.ts`);
        probe(`src/${room}/from-main.ts`, "../main.ts");
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
      const run = spawnSync(resolve("node_modules/.bin/biome"), args, { cwd: folder, encoding: "utf8" });
      report = JSON.parse(run.stdout);
    });

    const verdictOn = (path: string) =>
      report.diagnostics.find((each) => each.location.path.endsWith(path))?.message ?? "allowed";

    it.each(ROOMS)("holds src/%s to the import table", (room) => {
      for (const other of ROOMS.filter((each) => each !== room)) {
        const isAllowed = MAY_IMPORT[room]?.includes(other) ?? false;
        const expected = isAllowed ? "allowed" : expect.stringContaining("Imports point one way");
        expect(verdictOn(`src/${room}/from-${other}.ts`), `${room} → ${other}`).toEqual(expected);
      }
      expect(verdictOn(`src/${room}/from-${room}.ts`)).toBe("allowed");
      expect(verdictOn(`src/${room}/from-main.ts`)).toContain("Imports point one way");
    });

    it.each(WIRE_SCHEMAS)("lets src/cli and no other room import src/api/%s", (path) => {
      expect(verdictOn(`src/cli/customer/${path}`)).toBe("allowed");
      expect(verdictOn(`src/controller/api/${path}`)).toContain("Imports point one way");
    });

    it.each(OTHERS_OF_API)("does not let src/cli import src/api/%s", (path) => {
      expect(verdictOn(`src/cli/customer/${path}`)).toContain("Imports point one way");
    });

    it("sees a forbidden import from a folder within a room", () => {
      expect(verdictOn("src/api/nested/from-controller.ts")).toContain("Imports point one way");
    });
  });
});
