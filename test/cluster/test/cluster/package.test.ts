import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as tar from "tar";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { environment } from "../../environment.ts";
import { run } from "../../run.ts";
import { sharedCluster } from "../../vitest.ts";
import { linkPackages, manifest, PACKAGE } from "../support/package-folder.ts";

const { name, version, exports, dependencies } = manifest;

/** A project that has only the packed package and its dependencies. */
let project: string;
let installed: string;

beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), "empty-project-"));
  installed = join(project, "node_modules", name);
  mkdirSync(installed, { recursive: true });
  const packed = await run("npm", ["run", "pack", "--", project], { cwd: PACKAGE, env: environment });
  expect(packed.code, `${packed.stdout}${packed.stderr}`).toBe(0);
  const [file = ""] = readdirSync(project).filter((each) => each.endsWith(".tgz"));
  await tar.extract({ file: join(project, file), cwd: installed, strip: 1 });
  linkPackages(project, Object.keys(dependencies));
});

afterAll(() => rmSync(project, { recursive: true, force: true }));

function packedManifest(): unknown {
  return JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
}

/** Runs Node in the project. @returns its output */
async function node(...args: readonly string[]): Promise<string> {
  const { binaries } = await sharedCluster();
  const env = { ...environment, PIPE_SCALING_CLUSTER_BINARIES: binaries.dir };
  const { code, stdout, stderr } = await run(process.execPath, args, { cwd: project, env });
  expect(code, stderr).toBe(0);
  return stdout;
}

async function runCode(code: string): Promise<string> {
  writeFileSync(join(project, "main.mjs"), code);
  return await node("main.mjs");
}

describe("the packed package in an empty project", () => {
  test("has a README, the license, the version and the dependencies", () => {
    for (const file of ["README.md", "LICENSE"]) {
      expect(readFileSync(join(installed, file), "utf8")).toBe(readFileSync(join(PACKAGE, file), "utf8"));
    }
    const packed = packedManifest();
    expect(packed).toMatchObject({ name, version, license: "Apache-2.0", dependencies });
    expect(packed).not.toHaveProperty("scripts");
  });

  test("has a README that names every path that it exports, and links only to files that it has", () => {
    const readme = readFileSync(join(installed, "README.md"), "utf8");
    expect(Object.keys(exports).filter((path) => !readme.includes(`\`${path}\``))).toEqual([]);
    const links = [...readme.matchAll(/\]\(([^():#]+)\)/g)].map(([, link = ""]) => link);
    expect(links).toContain("binaries/go.mod");
    expect(links.filter((link) => !existsSync(join(installed, link)))).toEqual([]);
  });

  test("starts a cluster", async () => {
    const printed = await runCode(`
      import { startCluster } from "${name}";
      import { kubectl } from "${name}/kubectl";
      const cluster = await startCluster();
      console.log(await kubectl(cluster, ["get", "nodes", "--output", "name"]));
      await cluster.stop();
    `);
    expect(printed.trim()).toBe("node/node-0");
  });

  test("can be imported by every path that it exports", async () => {
    // This one is only for tests that run in vitest, which an empty project does not have.
    const paths = Object.keys(exports).filter((path) => path !== "./vitest");
    const imports = paths.map((path) => `await import("${path.replace(".", name)}");\n`);
    expect(await runCode(`${imports.join("")}console.log("imported");`)).toBe("imported\n");
  });

  test("has declarations for every path that it exports", () => {
    const declarations = Object.values(exports).map((file) => file.replace(/\.ts$/, ".d.ts").slice(2));
    expect(readdirSync(installed)).toEqual(expect.arrayContaining(declarations));
  });

  test("has the command local-cluster", async () => {
    const { bin } = z.object({ bin: z.object({ "local-cluster": z.string() }) }).parse(packedManifest());
    const { name: running } = await sharedCluster();
    expect(await node(join(installed, bin["local-cluster"]), "list")).toContain(running);
  });

  test("names this command in its help, and no script of the repository", async () => {
    const help = (await node(join(installed, "main.js"), "--help")).replaceAll(/\s+/g, " ");
    expect(help).toMatch(/^Usage: npx local-cluster /);
    expect(help).toContain('eval "$(npx local-cluster env)"');
    expect(help).not.toContain("npm run");
  });
});
