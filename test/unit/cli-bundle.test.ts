import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { builtinModules } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import config from "../../rolldown.config.ts";

const run = promisify(execFile);

describe("the bundle", { timeout: 60_000 }, () => {
  let dir: string;
  let program: string;

  /** What `npm run build` makes, in a folder that no package can be found from. */
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), "pipe-scaling-bundle-"));
    program = join(dir, "pipe-scaling.js");
    const build = await rolldown(config);
    await build.write({ ...config.output, file: program });
    await build.close();
  }, 60_000);
  afterAll(() => rmSync(dir, { recursive: true }));

  // An .mjs would need no package.json; the file's own name is fixed by the "bin" of ours.
  const node = (...args: string[]) => run(process.execPath, [program, ...args], { cwd: dir, env: {} });

  test("is one file, with its source map beside it", () => {
    expect(readdirSync(dir).sort()).toEqual(["pipe-scaling.js", "pipe-scaling.js.map"]);
    const text = readFileSync(program, "utf8");
    expect(text).toMatch(/^#!\/usr\/bin\/env node\n/);
    expect(text).toMatch(/\/\/# sourceMappingURL=pipe-scaling\.js\.map\n?$/);
  });

  test("imports nothing but what Node brings", () => {
    const text = readFileSync(program, "utf8");
    const imported = [...text.matchAll(/^import .*from "([^"]+)";$/gm)].map(([, name = ""]) => name);
    expect(imported.length).toBeGreaterThan(5);
    const strangers = imported.filter((name) => !builtinModules.includes(name.replace(/^node:/, "")));
    expect(strangers).toEqual([]);
  });

  test("runs, without any package around", async () => {
    expect((await node("--version")).stdout).toBe(`${packageJson.version}\n`);
    expect((await node("--help")).stdout).toContain("Usage: pipe-scaling");
    expect((await node("api", "--help")).stdout).toContain("--ops-port");
  });

  test.each(["api", "controller", "organization list"])("has all that %s needs to start", async (words) => {
    await expect(node(...words.split(" "), "--kubeconfig", "/no/such")).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining("The kubeconfig /no/such does not exist"),
    });
  });
});
