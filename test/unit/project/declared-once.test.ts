import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { RECORDS } from "../../../docs/reference/generator/record-kinds.ts";
import { toRecordView } from "../../../src/api/cluster/views.ts";
import { RECORD_KINDS } from "../../../src/records/kinds.ts";
import { RESOURCE_LABEL } from "../../../src/records/labels.ts";

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
    const todo = "add it to VIEWS and RecordView, then run npm run lint.";
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
