import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, it } from "vitest";

const CONTROLLER = "src/controller";

/** The rows of the table in docs/ARCHITECTURE.md: each may import from itself and from the rows above. */
function rows(): readonly (readonly string[])[] {
  const [, section = ""] = readFileSync("docs/ARCHITECTURE.md", "utf8").split("### The controller");
  const [, table = ""] = section.split("| folder | idea |");
  const lines = table.split("\n").filter((line) => line.startsWith("| `"));
  return lines.map((line) =>
    [...(line.split(" | ")[0] ?? "").matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name),
  );
}

const ROWS = rows();

/** The row of a file, by its path in src/controller. */
function rowOf(path: string): number {
  const [first] = path.split("/");
  return ROWS.findIndex((names) => names.some((name) => name === first));
}

const FILES = readdirSync(CONTROLLER, { recursive: true, encoding: "utf8" }).filter((path) =>
  path.endsWith(".ts"),
);

function importsOf(path: string): readonly string[] {
  const text = readFileSync(join(CONTROLLER, path), "utf8");
  const sources = [...text.matchAll(/ from "(\.[^"]+)";/g)].map(([, source = ""]) => source);
  return sources
    .map((source) => normalize(join(dirname(path), source)))
    .filter((imported) => !imported.startsWith(".."));
}

it("every file of the controller is in the table of docs/ARCHITECTURE.md", () => {
  expect(FILES.length).toBeGreaterThan(50);
  expect(FILES.filter((path) => rowOf(path) === -1)).toEqual([]);
});

it("the folders of the controller import only from the rows above them in docs/ARCHITECTURE.md", () => {
  const upwards = FILES.flatMap((path) =>
    importsOf(path)
      .filter((imported) => rowOf(imported) > rowOf(path))
      .map((imported) => `${path} imports ${imported}`),
  );
  expect(upwards).toEqual([]);
});
