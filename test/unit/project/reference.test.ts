import { globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { generated } from "../../../docs/reference/generated.ts";
import { COMMANDS } from "../../../src/all-commands.ts";
import { allCommands } from "../../../src/cli/command.ts";

const FOLDER = fileURLToPath(new URL("../../../docs/reference/", import.meta.url));
const pages = readdirSync(FOLDER).filter((name) => name.endsWith(".md"));

const BY_HAND = ["contract.md", "glossary.md", "versions.md"];

function read(path: string): string {
  return readFileSync(join(FOLDER, path), "utf8");
}

/** All files of a folder of the sources. */
const source = (folder: string) =>
  globSync(`src/${folder}/**/*.ts`)
    .map((path) => readFileSync(path, "utf8"))
    .join("\n");

describe("the reference", () => {
  it.each([...generated()])("%s is what its sources generate", (path, text) => {
    expect(read(path)).toBe(text);
  });

  it("has every page in its index, and no page that is neither generated nor written by hand", () => {
    const inIndex = [...generated().keys(), ...BY_HAND];
    expect(pages.toSorted()).toEqual([...inIndex, "README.md"].toSorted());
    for (const page of inIndex) expect(read("README.md")).toContain(`](${page})`);
  });

  it("names only commands and chart values that exist", () => {
    const words = allCommands(COMMANDS.commands).map((command) => command.words);
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
  it("has every label and annotation of the sources", () => {
    const names = source("**").match(/(?<=["`](?:pipes\.clouddb\.dev|\$\{GROUP\})\/)[a-z-]+(?=["`])/g);
    const all = new Set(names);
    // What Events say that they come from.
    all.delete("pipe-scaling-controller");
    expect(all.size).toBeGreaterThan(8);
    expect(
      [...all].filter((name) => !read("resource.md").includes(`| \`pipes.clouddb.dev/${name}\` |`)),
    ).toEqual([]);
  });
});
