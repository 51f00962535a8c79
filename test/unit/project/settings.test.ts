import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { withoutUnit } from "../../../src/settings/option.ts";
import { rolloutPolicySettings } from "../../../src/settings/rollout-policy.ts";

const ROOT = join(import.meta.dirname, "../../..");

function textOf(pattern: string): string {
  const files = globSync(pattern, { cwd: ROOT });
  return files.map((file) => readFileSync(join(ROOT, file), "utf8")).join("\n");
}

describe("each setting of the rollout policy", () => {
  const keys = Object.keys(rolloutPolicySettings);

  it("is read by the controller", () => {
    const code = textOf("src/controller/**/*.ts");
    const unread = keys.filter((key) => !new RegExp(`\\b${key}\\b`).test(code));
    const problems = unread.map(
      (key) =>
        `No code in src/controller reads the setting ${key}: read it from policy, then run npm run test:unit.`,
    );
    expect(problems.join("\n")).toBe("");
  });

  it("has a test", () => {
    const tests = textOf("test/{support,unit/controller,unit/domain}/**/*.ts");
    const untested = keys.filter((key) => !new RegExp(`\\b${key}\\b`).test(tests));
    const problems = untested.map(
      (key) =>
        `No test mentions the setting ${key}: add one to test/unit for the code that reads it, then run npm run test:unit.`,
    );
    expect(problems.join("\n")).toBe("");
  });

  it("is explained", () => {
    const pages = textOf("docs/explanation/*.md");
    const values = keys.map((key) => `controller.config.${withoutUnit(key)}`);
    const missing = values.filter((value) => !new RegExp(`\\b${value}\\b`).test(pages));
    const problems = missing.map(
      (value) =>
        `No page explains ${value}: add it to docs/explanation/rollout-policy.md or in-place.md, then run npm run test:unit.`,
    );
    expect(problems.join("\n")).toBe("");
  });
});
