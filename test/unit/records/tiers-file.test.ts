import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readTiersFile } from "../../../src/records/tiers-file.ts";

const PATH = join(mkdtempSync(join(tmpdir(), "tiers-")), "tiers.yaml");

function read(text: string) {
  writeFileSync(PATH, text);
  return readTiersFile(PATH);
}

describe("a tiers file", () => {
  it("is a map from names to sizes; a number as a name is a text", () => {
    const tiers = read("1: {defaultCpuMillicores: 1000, maximumCpuMillicores: 8000}\n");
    expect(tiers.get("1")).toEqual({
      name: "1",
      defaultSize: { cpuMillicores: 1000, memoryGib: 4 },
      maximumSize: { cpuMillicores: 8000, memoryGib: 32 },
    });
  });

  it.each([
    [
      "basic: {defaultCpuMillicores: 1500, maximumCpuMillicores: 8000}",
      "is invalid: basic.defaultCpuMillicores: Invalid number: must be a multiple of 1000.",
    ],
    [
      "basic: {defaultCpuMillicores: 1000, maximumCpuMillicores: 129000}",
      "is invalid: basic.maximumCpuMillicores: Too big: expected number to be <=128000.",
    ],
    [
      "basic: {defaultCpuMillicores: 9000, maximumCpuMillicores: 8000}",
      "is invalid: basic: the default is greater than the maximum.",
    ],
    ["basic: [", "is not YAML without aliases: BAD_INDENT at line 1, column 9."],
    [
      "basic: {defaultCpuMillicores: 1000}\nbasic: {defaultCpuMillicores: 2000}",
      "is not YAML without aliases: DUPLICATE_KEY at line 2, column 1.",
    ],
  ])("is rejected with exactly one problem: %s", (text, problem) => {
    expect(() => read(text)).toThrow(`The tiers file ${PATH} ${problem}`);
  });

  it("is rejected if it is nested too deeply", () => {
    expect(() => read("[".repeat(10_000))).toThrow(
      "is nested more than 16 levels deep or has more than 30000 tokens, at line 1, column 17.",
    );
  });

  it("is not parsed if it is longer than 64 KiB", () => {
    expect(() => read("]".repeat(100_000))).toThrow(
      /is invalid: the file has 100000 bytes, and at most 65536 are allowed\.$/,
    );
  });

  it("with thousands of problems describes five of them and counts the others", () => {
    const tiers = Array.from({ length: 1000 }, (_, at) => `t${at}: 1\n`).join("");
    expect(() => read(tiers)).toThrow(/t4: [^;]*; and 995 more\.$/);
  });

  it("with a long name quotes only its beginning", () => {
    expect(() => read(`"${"k".repeat(5000)}": 1\n`)).toThrow(/^The tiers file .{1,400}$/);
  });
});
