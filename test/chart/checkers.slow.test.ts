import { copyFileSync, existsSync, globSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { helm } from "@pipe-scaling/local-cluster/helm";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { run } from "@pipe-scaling/local-cluster/run";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import * as z from "zod";
import { actionlint } from "./checkers/actionlint.ts";
import { BUILD_MS, checkers } from "./checkers/build.ts";
import { linters } from "./checkers/python-packages.ts";
import { RELEASE, rendered, VALUE_SETS, valuesFile } from "./tools.ts";

/** Kinds of add-ons, whose CRDs the cluster does not have. */
const ADD_ONS = ["Certificate", "HTTPRoute", "ServiceMonitor", "PodMonitor", "PrometheusRule"];

/** Checks of kube-score that we skip, with the reason. */
const SCORE_EXCEPTIONS = [
  // Our tags never move and a digest cannot, so asking the registry at each start only adds a way to fail.
  "container-image-pull-policy",
  // The pods write only logs, which the node rotates. A limit would evict pods because of them.
  "container-ephemeral-storage-request-and-limit",
  // A topology spread constraint does the same.
  "deployment-has-host-podantiaffinity",
];

let path: Awaited<ReturnType<typeof checkers>>;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "pipe-scaling-checks-"));
  path = await checkers();
}, BUILD_MS);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function check(checker: Parameters<typeof path>[0], args: readonly string[], input?: string) {
  const { code, stdout, stderr } = await run(path(checker), args, {
    env: environment,
    cwd: folder,
    ...(input === undefined ? {} : { input }),
  });
  return { code, output: stdout + stderr };
}

function manifests(set: (typeof VALUE_SETS)[number]): Promise<string> {
  return helm(["template", ...RELEASE, "--values", valuesFile(set)]);
}

describe("kubeconform", () => {
  beforeAll(async () => {
    const document = await kubectl(await sharedCluster(), ["get", "--raw", "/openapi/v2"]);
    writeSchemas(folder, openApi.parse(JSON.parse(document)).definitions);
  });

  const conform = (input: string) => {
    const schemas = `${folder}/{{ .ResourceKind }}{{ .KindSuffix }}.json`;
    return check(
      "kubeconform",
      ["-strict", "-summary", "-schema-location", schemas, "-skip", ADD_ONS.join(), "-"],
      input,
    );
  };

  it.each(VALUE_SETS)("accepts all objects with the %s values", async (set) => {
    const { code, output } = await conform(await manifests(set));
    expect(output).toMatch(/Invalid: 0, Errors: 0/);
    expect(code).toBe(0);
  });

  it("reports an unknown field", async () => {
    const { output } = await conform((await manifests("minimal")).replaceAll("replicas:", "replica:"));
    expect(output).toMatch(/additional properties 'replica' not allowed/);
  });
});

// The bare values fail on purpose: they have one replica and no NetworkPolicy.
describe("kube-score", () => {
  it.each(["minimal", "everything", "all-namespaces"] as const)(
    "reports nothing with the %s values",
    async (set) => {
      // No CPU limit, because it slows down responses, and the requests of other pods already protect them.
      const flags = ["--ignore-container-cpu-limit", "--ignore-test", SCORE_EXCEPTIONS.join()];
      const { code, output } = await check(
        "kube-score",
        ["score", ...flags, "--output-format", "ci", "-"],
        await manifests(set),
      );
      const findings = output.split("\n").filter((line) => !/^(\[OK\]|\[SKIPPED\]|$)/.test(line));
      expect(findings).toEqual([]);
      expect(code).toBe(0);
    },
  );
});

describe("promtool", () => {
  it("accepts the rules, and each alert fires when it should and not before", async () => {
    const [rule] = await rendered(
      ...["--values", valuesFile("everything"), "--show-only", "templates/prometheusrule.yaml"],
    );
    writeFileSync(join(folder, "rules.yaml"), stringify(prometheusRule.parse(rule).spec));
    const tests = "alerts.promtool.yaml";
    copyFileSync(fileURLToPath(new URL(tests, import.meta.url)), join(folder, tests));
    expect((await check("promtool", ["check", "rules", "--lint-fatal", "rules.yaml"])).output).toMatch(
      /SUCCESS: 16 rules found/,
    );
    expect((await check("promtool", ["test", "rules", tests])).output).toMatch(/^\s*SUCCESS\s*$/);
  });
});

describe("the linter", () => {
  const ROOT = fileURLToPath(new URL("../../", import.meta.url));
  let linter: Awaited<ReturnType<typeof linters>>;
  beforeAll(async () => {
    linter = await linters();
  }, BUILD_MS);

  async function lint(program: Parameters<typeof linter>[0], args: readonly string[], input?: string) {
    const options = { env: environment, cwd: ROOT, ...(input === undefined ? {} : { input }) };
    const { code, stdout } = await run(linter(program), args, options);
    return { code, stdout };
  }

  const CLEAN = { code: 0, stdout: "" };
  // Also checks the registries of the base images.
  const HADOLINT = ["--no-color", "--trusted-registry", "docker.io", "--trusted-registry", "gcr.io"];

  it("of Dockerfiles finds nothing in ours", async () => {
    expect(await lint("hadolint", [...HADOLINT, "deploy/Dockerfile"])).toEqual(CLEAN);
  });

  it("of Dockerfiles reports errors, also in shell commands", async () => {
    const bad = "FROM node\nFROM quay.io/x:1\nRUN cd /a && cat $B\n";
    const { code, stdout } = await lint("hadolint", [...HADOLINT, "-"], bad);
    expect(code).toBe(1);
    expect(stdout).toMatch(/DL3006.*DL3026.*SC2086/s);
  });

  /** Also checks the scripts of the steps. */
  async function lintWorkflows(args: readonly string[], input?: string) {
    const options = { env: environment, cwd: ROOT, ...(input === undefined ? {} : { input }) };
    const shellcheck = linter("shellcheck");
    const flags = ["-no-color", "-pyflakes=", `-shellcheck=${existsSync(shellcheck) ? shellcheck : ""}`];
    const { code, stdout } = await run(await actionlint(), [...flags, ...args], options);
    return { code, stdout };
  }

  it(
    "of workflows reports nothing in ours",
    async () => {
      expect(await lintWorkflows(globSync(".github/workflows/*", { cwd: ROOT }))).toEqual(CLEAN);
    },
    BUILD_MS,
  );

  it(
    "of workflows reports errors",
    async () => {
      const bad = "on: push\njobs: { a: { runs-on: ubuntu-1, needs: b, steps: [{ run: 'true' }] } }\n";
      const { code, stdout } = await lintWorkflows(["-"], bad);
      expect(code).toBe(1);
      expect(stdout).toMatch(/needs job "b".*label "ubuntu-1" is unknown/s);
    },
    BUILD_MS,
  );

  const SCRIPTS = globSync(["**/*.sh", ".ci/*"], { cwd: ROOT, exclude: ["node_modules"] });

  it("of shell scripts finds nothing in ours", async (context) => {
    expect(SCRIPTS).toEqual(
      expect.arrayContaining([".ci/run", "deploy/image/build.sh", "test/e2e/real-cluster/story.sh"]),
    );
    context.skip(!existsSync(linter("shellcheck")), "there is no build of it for this platform");
    expect(await lint("shellcheck", SCRIPTS)).toEqual(CLEAN);
    expect(await lint("shellcheck", ["-"], "#!/bin/sh\ncat $1\n")).toMatchObject({ code: 1 });
  });
});

const prometheusRule = z.object({ spec: z.object({ groups: z.array(z.looseObject({})) }) });

const openApi = z.object({ definitions: z.record(z.string(), z.looseObject({})) });
const kinds = z.array(z.object({ group: z.string(), version: z.string(), kind: z.string() }));

/** Writes the schemas of the API server for kubeconform: one file per kind, without additional properties. */
function writeSchemas(folder: string, definitions: z.output<typeof openApi>["definitions"]): void {
  const scalars = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": { type: ["string", "number"] },
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": { type: ["string", "integer"] },
  };
  const file = "definitions.json";
  writeFileSync(join(folder, file), JSON.stringify({ definitions: { ...definitions, ...scalars } }, closed));
  for (const [name, definition] of Object.entries(definitions)) {
    for (const { group, version, kind } of kinds
      .catch([])
      .parse(definition["x-kubernetes-group-version-kind"])) {
      const suffix = [...group.split(".").slice(0, 1), version].filter(Boolean).join("-");
      const schema = { $ref: `${file}#/definitions/${name}` };
      writeFileSync(join(folder, `${kind.toLowerCase()}-${suffix}.json`), JSON.stringify(schema));
    }
  }
}

function closed(_: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("properties" in value)) return value;
  return { additionalProperties: false, ...value };
}
