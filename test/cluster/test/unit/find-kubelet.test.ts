import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { findKubelet } from "../../binaries/find-kubelet.ts";
import { silentProgress } from "../../progress.ts";
import { writeFakeGo } from "../support/fake-programs.ts";
import { bareMachine } from "../support/scratch.ts";

function machine() {
  const { env, paths, bin } = bareMachine();
  const find = () => findKubelet({ env, paths, progress: silentProgress });
  return { bin, paths, find };
}

describe.runIf(process.platform === "linux")("the kubelet", () => {
  test("is built once, and later found in the cache", async () => {
    const { bin, paths, find } = machine();
    writeFakeGo(bin);
    const program = await find();
    expect(readFileSync(program, "utf8")).toContain("hollow-kubelet");
    expect(dirname(dirname(program))).toBe(paths.binaries);
    expect(await find()).toBe(program);
    expect(readFileSync(join(bin, "go.log"), "utf8").trim().split("\n")).toHaveLength(1);
  });

  test("is built again after a failed build, which leaves nothing behind", async () => {
    const { bin, paths, find } = machine();
    writeFakeGo(bin, { before: "echo 'dial tcp: lookup proxy.example: no such host' >&2; exit 1" });
    await expect(find()).rejects.toThrow("lookup proxy.example: no such host");
    expect(readdirSync(paths.binaries)).toEqual(["lock"]);
    writeFakeGo(bin);
    expect(readFileSync(await find(), "utf8")).toContain("hollow-kubelet");
  });

  test("cannot be built without Go, and the error says so", async () => {
    await expect(machine().find()).rejects.toThrow(
      /hollow-kubelet cannot be built: go could not be run: spawn go ENOENT\nInstall Go 1\.21 or later/,
    );
  });
});
