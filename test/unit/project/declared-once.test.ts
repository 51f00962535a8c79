import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { RECORDS } from "../../../docs/reference/generator/record-kinds.ts";
import { REASONS } from "../../../src/api/cluster/reasons.ts";
import { toRecordView } from "../../../src/api/cluster/views.ts";
import { FALLBACK_REASONS } from "../../../src/crd/fallback-reasons.ts";
import { RECORD_KINDS } from "../../../src/records/kinds.ts";
import { RESOURCE_LABEL } from "../../../src/records/labels.ts";
import { controllerSettings } from "../../../src/settings/controller.ts";

const SRC = join(import.meta.dirname, "../../../src");

/** The text of each source file that matches, by its path from the root of the project. */
function sourcesIn(pattern: string): readonly (readonly [file: string, text: string])[] {
  const files = globSync(pattern, { cwd: SRC }).toSorted();
  return files.map((file) => [`src/${file}`, readFileSync(join(SRC, file), "utf8")]);
}

function namesIn(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, name = ""]) => name);
}

it("each operation and each router of a resource is in the list of operations", () => {
  const list = "src/api/resources/operations.ts";
  const text = readFileSync(join(SRC, "../", list), "utf8");
  const problems = sourcesIn("api/resources/*/*.ts").flatMap(([file, source]) => {
    const names = [
      ...namesIn(source, /export const (\w+) = \{\n {2}method: /g),
      ...namesIn(source, /export function (\w+Router)\(/g),
    ];
    return names
      .filter((name) => !new RegExp(`\\b${name}\\b`).test(text))
      .map((name) => `${list} does not use ${name} of ${file}: add it, then run npm run test:unit.`);
  });
  expect(problems.join("\n")).toBe("");
});

describe("each reason", () => {
  const CODE = sourcesIn("controller/{in-place,observe,rollout}/**/*.ts");

  it("why a pipe is not resized in place is returned by a rule", () => {
    const text = sourcesIn("controller/**/*.ts").join();
    const problems = FALLBACK_REASONS.filter((word) => !text.includes(`"${word}"`)).map(
      (word) =>
        `No code in src/controller returns the reason ${word}: add the rule, then run npm run test:unit.`,
    );
    expect(problems.join("\n")).toBe("");
  });

  it("that a rule returns is in a table", () => {
    const known = new Set<string>([...FALLBACK_REASONS, ...REASONS]);
    const problems = CODE.flatMap(([file, text]) =>
      namesIn(text, /\b(?:reason|fallback): "([A-Z]\w+)"/g)
        .filter((word) => !known.has(word))
        .map(
          (word) =>
            `src/crd/fallback-reasons.ts and failure-reasons.ts do not have ${word}, which ${file} returns: add it to one of them, then run npm run generate.`,
        ),
    );
    expect(problems.join("\n")).toBe("");
  });
});

it("each setting that the controller reads from its policy is declared", () => {
  const declared = Object.keys(controllerSettings);
  const problems = sourcesIn("controller/{apply,decide,in-place,rollout,report}/**/*.ts").flatMap(
    ([file, text]) =>
      namesIn(text, /\bpolicy\.(\w+)\b(?!["\w])/g)
        .filter((key) => !declared.includes(key))
        .map(
          (key) =>
            `src/settings/rollout-policy.ts has no setting ${key}, which ${file} reads: add it, then run npm run generate.`,
        ),
  );
  expect(problems.join("\n")).toBe("");
});

describe("each kind of record", () => {
  const kinds = Object.keys(RECORD_KINDS);

  it("is a row of the table of kinds", () => {
    const problems = sourcesIn("records/*.ts").flatMap(([file, source]) =>
      namesIn(source, /recordLabels\("([^"]+)"/g)
        .filter((kind) => kind !== "api-key" && !kinds.includes(kind))
        .map(
          (kind) =>
            `KINDS of src/records/kinds.ts has no row "${kind}" for ${file}: add it, then run npm run lint.`,
        ),
    );
    expect(problems.join("\n")).toBe("");
  });

  it("has a view", () => {
    const problems = kinds.filter((kind) => {
      const metadata = { name: "a", uid: "b", resourceVersion: "1", labels: { [RESOURCE_LABEL]: kind } };
      try {
        return toRecordView({ metadata }, () => true).kind !== kind;
      } catch {
        return true;
      }
    });
    const todo = "add it to VIEWS, then run npm run lint.";
    expect(
      problems.map((kind) => `src/api/cluster/views.ts has no view of "${kind}": ${todo}`).join("\n"),
    ).toBe("");
  });

  it("is in the reference", () => {
    const problems = kinds.filter((kind) => !Object.hasOwn(RECORDS, kind));
    const todo = "add it with an example, then run npm run generate.";
    expect(
      problems
        .map((kind) => `RECORDS of docs/reference/generator/record-kinds.ts has no "${kind}": ${todo}`)
        .join("\n"),
    ).toBe("");
  });
});
