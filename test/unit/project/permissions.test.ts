import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { PERMISSIONS } from "../../../src/cli/doctor/permissions.ts";

function read(path: string): string {
  return readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");
}

const COMPONENTS = ["api", "controller"] as const;

/** The cells of each row of the table in docs/security.md: kinds of objects, the API, the controller. */
function rows(): readonly (readonly string[])[] {
  const [, section = ""] = read("docs/security.md").split("## Permissions of each service account");
  const [, table = ""] = section.split("| | API | controller |");
  const [lines = ""] = table.trimStart().split("\n\n");
  return lines.split("\n").map((line) => line.split("|").slice(1, -1));
}

const ROWS = rows();

/** The last word of `horizontalpodautoscalers` is a kind in the table: autoscalers. */
function isInTable(resource: string, column: number): boolean {
  const [plural = ""] = resource.split("/");
  return ROWS.some((cells) => {
    const kinds = (cells[0] ?? "").toLowerCase().match(/\w+/g) ?? [];
    const isGranted = !/^ none(?!;)/.test(cells[column] ?? "");
    return isGranted && kinds.some((kind) => plural.endsWith(kind));
  });
}

it.each(COMPONENTS)(
  "docs/security.md names every kind of object that the %s may read or write",
  (component) => {
    const missing = PERMISSIONS[component].filter(
      ({ resource }) => !isInTable(resource, COMPONENTS.indexOf(component) + 1),
    );
    const problems = missing.map(
      ({ resource }) =>
        `The table in docs/security.md does not say what the ${component} may do with ${resource}: add a row, then run npm run test:unit.`,
    );
    expect(problems.join("\n")).toBe("");
  },
);

it("test/chart/rights.test.ts removes every permission", () => {
  const text = read("test/chart/rights.test.ts");
  const all = COMPONENTS.flatMap((component) => PERMISSIONS[component]);
  const problems = all.flatMap(({ group, resource, verbs }) => {
    const name = group === "" ? resource : `${group}/${resource}`;
    // `reading("secrets")` stands for both verbs of a watch.
    const isRead = text.includes(`"${name}"`);
    return verbs
      .filter((verb) => !(isRead && ["list", "watch"].includes(verb)) && !text.includes(`"${verb} ${name}"`))
      .map(
        (verb) =>
          `test/chart/rights.test.ts does not remove the permission "${verb} ${name}": add a row, for a request of the API to ACTING, then run npm test -- test/chart/rights.test.ts.`,
      );
  });
  expect(problems.join("\n")).toBe("");
});
