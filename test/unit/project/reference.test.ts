import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { generated, generatedParts } from "../../../docs/reference/generated.ts";
import { COMMANDS } from "../../../src/all-commands.ts";
import * as controllerNames from "../../../src/controller/names.ts";
import { GROUP } from "../../../src/crd/names.ts";
import * as scalingRequest from "../../../src/crd/scaling-request.ts";
import * as recordLabels from "../../../src/records/labels.ts";

const FOLDER = fileURLToPath(new URL("../../../docs/reference/", import.meta.url));
const pages = readdirSync(FOLDER).filter((name) => name.endsWith(".md"));

const BY_HAND = ["contract.md", "glossary.md", "versions.md"];

function read(path: string): string {
  return readFileSync(join(FOLDER, path), "utf8");
}

describe("the reference", () => {
  it.each([...generated(), ...generatedParts()])(
    "matches the output of `npm run generate`: %s",
    (path, text) => {
      expect(read(path), `${join("docs/reference", path)} is out of date: run npm run generate`).toBe(text);
    },
  );

  it("lists every page in its index, and has only generated pages and known handwritten pages", () => {
    const inIndex = [...generated().keys(), ...BY_HAND];
    expect(pages.toSorted()).toEqual([...inIndex, "README.md"].toSorted());
    for (const page of inIndex) expect(read("README.md")).toContain(`](${page})`);
  });

  it("names only commands and chart values that exist", () => {
    const words = COMMANDS.commands.map(({ name }) => name);
    const texts = pages.map(read).join("\n");
    const named = [...texts.matchAll(/`pipe-scaling ([a-z ]+)/g)].map(([, text = ""]) => text.trim());
    expect(named.length).toBeGreaterThan(3);
    const isKnown = (text: string) => words.some((command) => `${text} `.startsWith(`${command} `));
    expect(named.filter((text) => !isKnown(text))).toEqual([]);
    const values = [...texts.matchAll(/`((?:api|controller|monitoring)(?:\.\w+)+)`/g)].map(
      ([value]) => value,
    );
    expect(values.length).toBeGreaterThan(3);
    const chart = read("../../deploy/chart/pipe-scaling-operator/README.md");
    expect(values.filter((value) => !chart.includes(`| ${value} |`))).toEqual([]);
  });
});

describe("the reference of PipeScaling", () => {
  const names = [controllerNames, recordLabels, scalingRequest]
    .flatMap((module) => Object.values(module))
    .filter((value) => typeof value === "string" && value.startsWith(`${GROUP}/`));

  it.each(names)("describes %s", (name) => {
    expect(read("resource.md")).toContain(`| \`${name}\` |`);
  });

  it("finds the names that the modules export", () => {
    expect(names.length).toBeGreaterThan(8);
  });
});
