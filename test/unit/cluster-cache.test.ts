import { existsSync, mkdirSync, readdirSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { cached, Staging, sweepStaging } from "../cluster/binaries/cache.ts";
import { writePrograms } from "../cluster/testing/fake-programs.ts";
import { scratch } from "../cluster/testing/scratch.ts";

function publish(folder: string): string {
  using staging = new Staging(folder);
  writePrograms(staging.bin);
  return staging.publish(folder, "key", "a test").dir;
}

test("what was published is found again, and nothing is left beside it", () => {
  const folder = scratch();
  const dir = publish(folder);
  expect(cached(folder, "key")?.dir).toBe(dir);
  expect(readdirSync(folder)).toEqual(["key"]);
});

test("a folder with all programs is not taken for whole before it says so itself", () => {
  const folder = scratch();
  writePrograms(join(folder, "key"));
  expect(cached(folder, "key")).toBeUndefined();
});

test("a program that lost its end, or is gone, makes the folder no longer whole", () => {
  const folder = scratch();
  const dir = publish(folder);
  truncateSync(join(dir, "helm"), 3);
  expect(cached(folder, "key")).toBeUndefined();
  rmSync(join(dir, "helm"));
  expect(cached(folder, "key")).toBeUndefined();
});

test("a folder that is not whole is replaced", () => {
  const folder = scratch();
  writePrograms(join(folder, "key"), ["helm"]);
  publish(folder);
  expect(cached(folder, "key")).toBeDefined();
  expect(readdirSync(folder)).toEqual(["key"]);
});

test("a staging folder goes when it is left, also by an error", () => {
  const folder = scratch();
  expect(() => {
    using staging = new Staging(folder);
    expect(existsSync(staging.bin)).toBe(true);
    throw new Error("no luck");
  }).toThrow("no luck");
  expect(readdirSync(folder)).toEqual([]);
});

test("what a killed run left half done is swept", () => {
  const folder = scratch();
  mkdirSync(join(folder, ".staging-abc", "bin"), { recursive: true });
  publish(folder);
  sweepStaging(folder);
  expect(readdirSync(folder)).toEqual(["key"]);
});
