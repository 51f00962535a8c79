import { accessSync, constants, existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import * as z from "zod";
import packageJson from "../../../package.json" with { type: "json" };
import { readVersions } from "../../cluster/binaries/versions.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

const step = z.looseObject({
  uses: z.string().optional(),
  run: z.string().optional(),
  with: z.record(z.string(), z.unknown()).optional(),
});
const job = z.looseObject({
  uses: z.string().optional(),
  "timeout-minutes": z.number().optional(),
  permissions: z.record(z.string(), z.enum(["read", "write"])),
  steps: z.array(step).default([]),
});
const workflow = z.looseObject({
  permissions: z.strictObject({}),
  concurrency: z.looseObject({ group: z.string() }),
  jobs: z.record(z.string(), job),
});
const action = z.looseObject({ runs: z.looseObject({ steps: z.array(step) }) });

const WORKFLOWS = globSync(".github/workflows/*.yaml", { cwd: ROOT }).sort();
const jobs = WORKFLOWS.flatMap((path) =>
  Object.entries(workflow.parse(parse(read(path))).jobs).map(([name, it]) => ({
    ...it,
    name: `${path}: ${name}`,
  })),
);
const steps = [
  ...jobs.flatMap((it) => it.steps),
  ...action.parse(parse(read(".github/actions/setup/action.yaml"))).runs.steps,
];
const used = [...jobs, ...steps].flatMap(({ uses }) => (uses === undefined ? [] : [uses]));
const commands = steps.flatMap(({ run }) => (run === undefined ? [] : [run])).join("\n");

describe("the workflows", () => {
  it("exist", () => {
    expect(WORKFLOWS).toEqual(["ci", "kind", "release"].map((name) => `.github/workflows/${name}.yaml`));
  });

  it("give each job only the permissions that it lists, and a timeout", () => {
    for (const { name, uses, "timeout-minutes": timeout } of jobs) {
      if (uses === undefined) expect(timeout, name).toBeLessThanOrEqual(60);
    }
    const writing = jobs.filter(({ permissions }) => Object.values(permissions).includes("write"));
    expect(writing.every(({ name }) => name.startsWith(".github/workflows/release.yaml: "))).toBe(true);
  });

  it("pin actions by commit, with the version in a comment", () => {
    const sources = [...WORKFLOWS, ".github/actions/setup/action.yaml"].map(read).join("\n");
    const lines = [...sources.matchAll(/uses: (?!\.\/)(.*)$/gm)].map(([, line]) => line);
    expect(lines.length).toBeGreaterThan(20);
    expect(lines.filter((line) => !/^[\w-]+\/[\w-]+@[\da-f]{40} # v\d+\.\d+\.\d+$/.test(line ?? ""))).toEqual(
      [],
    );
    // All workflows pin an action to the same commit.
    const actions = new Set(lines);
    expect(new Set([...actions].map((line) => line?.split("@")[0])).size).toBe(actions.size);
  });

  it("keep no credentials in the checkout", () => {
    const checkouts = steps.filter(({ uses }) => uses?.startsWith("actions/checkout@"));
    expect(checkouts.every((it) => it.with?.["persist-credentials"] === false)).toBe(true);
  });

  it("use existing actions, workflows, files and npm scripts", () => {
    const local = used.filter((uses) => uses.startsWith("./"));
    for (const path of local) {
      expect(existsSync(join(ROOT, path.endsWith(".yaml") ? path : `${path}/action.yaml`)), path).toBe(true);
    }
    const files = commands.match(/(?<![\w./-])(?:deploy|test|src|bench|docs)\/[\w./-]+\.\w+/g) ?? [];
    expect(files).toEqual(
      expect.arrayContaining(["deploy/release/main.ts", "test/e2e/real-cluster/story.sh"]),
    );
    expect(files.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    for (const path of files.filter((name) => name.endsWith(".sh")))
      accessSync(join(ROOT, path), constants.X_OK);
    const scripts = [...commands.matchAll(/npm (?:run )?(test(?::\w+)?|demo)\b/g)].map(([, name]) => name);
    expect(scripts.length).toBeGreaterThan(4);
    expect(Object.keys(packageJson.scripts)).toEqual(expect.arrayContaining(scripts));
  });

  it("use the Node.js version of the repository", () => {
    const setups = steps.filter(({ uses }) => uses?.startsWith("actions/setup-node@"));
    expect(setups.length).toBeGreaterThan(0);
    for (const { with: inputs } of setups) expect(inputs?.["node-version-file"]).toBe(".node-version");
  });

  const { kubernetes } = z
    .object({
      jobs: z.object({
        kubernetes: z.object({
          strategy: z.object({ matrix: z.object({ version: z.array(z.string()) }) }),
          steps: z.array(z.object({ if: z.string().optional(), run: z.string().optional() })),
        }),
      }),
    })
    .parse(parse(read(".github/workflows/ci.yaml"))).jobs;
  const matrix = kubernetes.strategy.matrix.version;

  it("run the demo on one Kubernetes version, whatever its patch version", () => {
    const demo = kubernetes.steps.filter(({ run }) => run?.includes("demo.slow.test.ts"));
    expect(demo).toHaveLength(1);
    const [, minor = ""] = /^startsWith\(matrix\.version, '(1\.\d+\.)'\)$/.exec(demo[0]?.if ?? "") ?? [];
    expect(minor).not.toBe("");
    expect(matrix.filter((version) => version.startsWith(minor))).toHaveLength(1);
  });

  it("test the Kubernetes versions that docs/reference/versions.md lists", () => {
    const page = read("docs/reference/versions.md");
    const [, listed = ""] = /^Kubernetes versions of the workflow `ci`: (.+)\.$/m.exec(page) ?? [];
    expect(listed.split(", ")).toEqual([...matrix, readVersions().kubernetes]);
    expect(page).toContain(`| ${readVersions().kubernetes}; in part `);
    const node = /kindest\/node:v([\d.]+)@/.exec(read("test/e2e/real-cluster/kind.yaml"))?.[1];
    expect(page).toContain(`Kubernetes version of the workflow \`kind\`: ${node}.\n`);
  });
});
