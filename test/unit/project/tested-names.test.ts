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

it("each operation is called in a test of the API", () => {
  const text = textIn("api");
  const problems = OPERATIONS.flatMap(({ id, path }) => {
    const segment = path.split("/").findLast((each) => !each.startsWith("{"));
    const isCalled = new RegExp(`/${segment}\\b`).test(text);
    return isCalled
      ? []
      : `No test in test/api calls ${id}: add one to the file of its resource or to test/api/${segment}.test.ts, then run npm test -- and this file.`;
  });
  expect(problems.join("\n")).toBe("");
});
