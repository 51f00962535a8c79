import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import packageJson from "../../../package.json" with { type: "json" };

const read = (path: string) =>
  readFileSync(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), "utf8");

it("the Node.js version is the same for npm, version managers, the image and contributors", () => {
  const { node } = packageJson.devDependencies;
  const [major] = node.split(".");
  expect(process.version).toBe(`v${node}`);
  expect(packageJson.engines.node).toBe(`>=${major}`);
  expect(read(".node-version")).toBe(`${node}\n`);
  expect(read("deploy/Dockerfile")).toContain(` node:${node}-`);
  expect(read("CONTRIBUTING.md")).toContain(`Node.js ${node},`);
  expect(read("docs/reference/versions.md")).toContain(`| Node.js | ${major}; `);
});
