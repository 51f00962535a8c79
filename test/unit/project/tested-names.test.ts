import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { REASONS } from "../../../src/api/cluster/reasons.ts";
import { OPERATIONS } from "../../../src/api/resources/operations.ts";
import { FALLBACK_REASONS } from "../../../src/crd/fallback-reasons.ts";
import { apiSettings } from "../../../src/settings/api.ts";
import { controllerSettings } from "../../../src/settings/controller.ts";

const TESTS = join(import.meta.dirname, "../..");

/** The text of all tests in a folder, except for this folder, whose lists have the names of everything. */
function textIn(folder: string): string {
  const cwd = join(TESTS, folder);
  const files = globSync("**/*.test.ts", { cwd, exclude: ["**/node_modules", "unit/project"] });
  return files.map((file) => readFileSync(join(cwd, file), "utf8")).join("\n");
}

it("each reason and each setting is mentioned in a test", () => {
  const text = textIn("");
  const reasons = [...REASONS, ...FALLBACK_REASONS].map((name) => ({ kind: "reason", name }));
  const settings = [...Object.keys(apiSettings), ...Object.keys(controllerSettings)];
  const all = [...reasons, ...settings.map((name) => ({ kind: "setting", name }))];
  const missing = all.filter(({ name }) => !new RegExp(`\\b${name}\\b`).test(text));
  const problems = missing.map(
    ({ kind, name }) =>
      `No test mentions the ${kind} ${name}: add one to test/unit for the code that uses it, then run npm run test:unit.`,
  );
  expect(problems.join("\n")).toBe("");
});

it("each operation has API tests with its method and path in the title", () => {
  const titles = [...textIn("api").matchAll(/describe\("([^"]+)"/g)].map(([, title = ""]) => title);
  const problems = OPERATIONS.flatMap(({ id, method, path }) => {
    const title = `${method} ${shortPath(path)}`;
    return titles.some((each) => each === title || each.startsWith(`${title} `))
      ? []
      : `No test in test/api has the title of ${id}: add describe("${title}", …) to the file of its resource or to a new one, then run npm test -- and this file.`;
  });
  expect(problems.join("\n")).toBe("");
});

/** Without the IDs and what comes before them. */
function shortPath(path: string): string {
  return path.replace(/^\/v1\/organizations\/\{\w+\}\/(services\/\{\w+\}\/)?/, "").replace(/\/\{\w+\}$/, "");
}
