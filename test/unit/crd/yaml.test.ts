import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { crdYaml } from "../../../src/crd/yaml.ts";

it("the file in crds/ matches the generated CRD", () => {
  expect(readFileSync("crds/pipes.clouddb.dev_pipescalings.yaml", "utf8")).toBe(crdYaml());
});
