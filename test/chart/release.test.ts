import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { helm } from "@pipe-scaling/local-cluster/helm";
import { run } from "@pipe-scaling/local-cluster/run";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import * as z from "zod";
import { changelogSection } from "../../deploy/release/changelog.ts";
import { packageChart, writeChart } from "../../deploy/release/chart.ts";
import { KREW_PLUGIN, krewManifest } from "../../deploy/release/krew.ts";
import { packNpmPackage, writeNpmPackage } from "../../deploy/release/npm-package.ts";
import packageJson from "../../package.json" with { type: "json" };
import { temporaryFolder } from "../support/fixtures/kubeconfig.ts";
import { valuesFile } from "./tools.ts";

const CHANGELOG = `# Changelog

## [0.2.0] - unreleased

## [0.1.1] - 2026-12-01

Fixes only.

### Fixed

- A pipe: it waits
  no longer.
- Another one.

### Security

- A leak.

## [0.1.0] - 2026-11-30

### Added

- All.
`;

const RELEASE = {
  version: "0.1.1",
  source: "https://github.com/acme/operator",
  image: "ghcr.io/acme/pipe-scaling-operator",
  digest: `sha256:${"0123456789abcdef".repeat(4)}`,
};

describe("the changelog of a release", () => {
  it("is the section of its version", () => {
    const { body, groups } = changelogSection(CHANGELOG, "0.1.1");
    expect(body).toMatch(/^Fixes only\.\n\n### Fixed\n[\s\S]*- A leak\.$/);
    expect(groups).toEqual([
      { kind: "Fixed", entries: ["A pipe: it waits no longer.", "Another one."] },
      { kind: "Security", entries: ["A leak."] },
    ]);
  });

  it("is rejected without a section or a date", () => {
    expect(() => changelogSection(CHANGELOG, "0.3.0")).toThrow(
      /has no section "## \[0\.3\.0\] - YYYY-MM-DD"/,
    );
    expect(() => changelogSection(CHANGELOG, "0.2.0")).toThrow(/has no release date of 0\.2\.0/);
  });

  it("has a section for the version of the repository", () => {
    const changelog = readFileSync(new URL("../../CHANGELOG.md", import.meta.url), "utf8");
    const dated = changelog.replace(" - unreleased", " - 2026-12-01");
    expect(changelogSection(dated, packageJson.version).groups.length).toBeGreaterThan(0);
  });
});

const chartYaml = z.looseObject({
  version: z.string(),
  appVersion: z.string(),
  annotations: z.record(z.string(), z.string()),
});

describe("the version of the repository", () => {
  const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
  const { version } = packageJson;
  const [, step = ""] = /^1\. (Choose the version .*)$/m.exec(read("RELEASING.md")) ?? [];

  it("is that of the chart", () => {
    const chart = parse(read("deploy/chart/pipe-scaling-operator/Chart.yaml"));
    expect(chart).toMatchObject({ version, appVersion: version });
    expect(step).toContain("`Chart.yaml`");
  });

  it.each([
    "README.md",
    "deploy/Dockerfile",
    "deploy/examples/argo-cd.yaml",
    "deploy/examples/flux.yaml",
    "docs/gitops.md",
    "docs/install.md",
  ])("is the only one in the tags, images, packages and builds of %s, which RELEASING.md names", (path) => {
    const before = /(?:\bv|--build-arg VERSION=|pipe-scaling-|<repository>:|"\$IMAGE":)(\d+\.\d+\.\d+)/g;
    const named = [...read(path).matchAll(before)].map(([, it]) => it);
    expect(new Set(named)).toEqual(new Set([version]));
    const folder = path.startsWith("deploy/examples/") ? "deploy/examples" : path;
    expect(step).toContain(`\`${folder}\``);
  });
});

const withDefault = z.object({ default: z.string() });
const valuesSchemaJson = z.object({
  properties: z.object({
    image: z.object({ properties: z.object({ repository: withDefault, digest: withDefault }) }),
  }),
});

describe("the chart of a release", () => {
  let chart: string;
  let packaged: string;
  let dir: string;
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), "pipe-scaling-release-"));
    chart = writeChart(RELEASE, changelogSection(CHANGELOG, "0.1.1"), dir);
    await packageChart(chart, dir);
    packaged = join(dir, "pipe-scaling-operator-0.1.1.tgz");
  });
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  it("installs the signed image without values for it", async () => {
    // The minimal values may name an image, because the chart of the repository has none.
    const { image: _, ...values } = z
      .looseObject({})
      .parse(parse(readFileSync(valuesFile("minimal"), "utf8")));
    const file = join(temporaryFolder(), "values.json");
    writeFileSync(file, JSON.stringify(values));
    const manifests = await helm(["template", "release", packaged, "--values", file, "--skip-tests"]);
    const images = [...manifests.matchAll(/^ +image: (.*)$/gm)].map(([, image]) =>
      image?.replaceAll('"', ""),
    );
    expect(images).toEqual(Array.from({ length: 2 }, () => `${RELEASE.image}@${RELEASE.digest}`));
  });

  it("passes helm lint, and has the version and the metadata for Artifact Hub", async () => {
    expect(await helm(["lint", chart, "--values", valuesFile("minimal")])).toContain("0 chart(s) failed");
    const { annotations, ...rest } = chartYaml.parse(parse(readFileSync(join(chart, "Chart.yaml"), "utf8")));
    expect(rest).toMatchObject({
      version: "0.1.1",
      appVersion: "0.1.1",
      sources: [RELEASE.source],
      icon: expect.stringMatching(/^data:image\/svg\+xml,/),
      maintainers: [{ name: "pipe-scaling-operator", url: RELEASE.source }],
    });
    const metadata = (name: string): unknown => parse(annotations[`artifacthub.io/${name}`] ?? "");
    expect(metadata("changes")).toEqual([
      { kind: "fixed", description: "A pipe: it waits no longer." },
      { kind: "fixed", description: "Another one." },
      { kind: "security", description: "A leak." },
    ]);
    expect(metadata("images")).toEqual([
      { name: "pipe-scaling-operator", image: `${RELEASE.image}:0.1.1@${RELEASE.digest}` },
    ]);
    expect(metadata("containsSecurityUpdates")).toBe(true);
    expect(metadata("prerelease")).toBe(false);
    expect(metadata("crds")).toMatchObject([{ kind: "PipeScaling", version: "v1beta1" }]);
  });

  it("has no relative links in its README", () => {
    const readme = readFileSync(join(chart, "README.md"), "utf8");
    const folder = "https://github.com/acme/operator/blob/v0.1.1";
    expect(readme).toContain(`](${folder}/docs/install.md)`);
    expect(readme).toContain(`](${folder}/deploy/chart/pipe-scaling-operator/ci)`);
    expect(readme).not.toMatch(/\]\((?!https?:|#)/);
  });

  it("has a README whose command installs the release from its registry, without values for the image", () => {
    const readme = readFileSync(join(chart, "README.md"), "utf8");
    const [, command] = /```sh\n(helm install .*?)```/s.exec(readme) ?? [];
    expect(command).toContain(" oci://ghcr.io/acme/charts/pipe-scaling-operator --version 0.1.1 ");
    expect(readFileSync(RELEASE_WORKFLOW, "utf8")).toMatch(
      /"ghcr\.io\/\$\{GITHUB_REPOSITORY_OWNER,,\}\/charts"/,
    );
    expect(command).not.toContain("image");
    expect(readme).not.toContain("two things");
  });

  it("has the image as the default in its README and in the schema of its values", () => {
    const { repository, digest } = valuesSchemaJson.parse(
      JSON.parse(readFileSync(join(chart, "values.schema.json"), "utf8")),
    ).properties.image.properties;
    expect(repository.default).toBe(RELEASE.image);
    expect(digest.default).toBe(RELEASE.digest);
    const readme = readFileSync(join(chart, "README.md"), "utf8");
    expect(readme).toContain(`| \`image.repository\` | \`"${RELEASE.image}"\` |`);
    expect(readme).toContain(`| \`image.digest\` | \`"${RELEASE.digest}"\` |`);
  });
});

/** Writes an npm package of a program that prints its name. @returns path of the package */
function packedProgram(dir: string, version = "0.1.1"): string {
  const program = join(dir, "program");
  mkdirSync(program);
  for (const file of ["pipe-scaling.mjs", "kubectl-pipes.mjs"]) {
    writeFileSync(join(program, file), `#!/usr/bin/env node\nconsole.log(${JSON.stringify(file)});\n`);
  }
  writeFileSync(join(program, "kubectl_complete-pipes"), "#!/bin/sh\necho completions\n");
  for (const file of ["LICENSE", "THIRD-PARTY-LICENSES.txt"]) writeFileSync(join(program, file), "text");
  writeNpmPackage({ name: "@acme/pipe-scaling", version, source: RELEASE.source }, program, join(dir, "npm"));
  return packNpmPackage(join(dir, "npm"), dir);
}

const RELEASE_WORKFLOW = new URL("../../.github/workflows/release.yaml", import.meta.url);

const releaseWorkflow = z.object({
  jobs: z.object({ npm: z.object({ steps: z.array(z.object({ run: z.string().optional() })) }) }),
});

describe("the npm package of a release", () => {
  it("is packed from a folder with a relative path, which npm could take for a repository on GitHub", () => {
    const root = process.cwd();
    onTestFinished(() => process.chdir(root));
    process.chdir(temporaryFolder());
    mkdirSync("release");
    expect(statSync(packedProgram("release")).size).toBeGreaterThan(0);
  });

  it("installs the command line and the kubectl plugin without any other package", async () => {
    const dir = temporaryFolder();
    const file = packedProgram(dir);
    const options = { env: { ...environment, npm_config_cache: join(dir, "cache") }, cwd: dir };
    const flags = ["--global", "--offline", "--no-audit", "--no-fund", "--prefix", join(dir, "prefix")];
    const installed = await run("npm", ["install", ...flags, file], options);
    expect(installed.code, installed.stderr).toBe(0);
    for (const [name, stdout] of [
      ["pipe-scaling", "pipe-scaling.mjs\n"],
      ["kubectl-pipes", "kubectl-pipes.mjs\n"],
      ["kubectl_complete-pipes", "completions\n"],
    ] as const) {
      expect(await run(join(dir, "prefix", "bin", name), [], options)).toMatchObject({ code: 0, stdout });
    }
  });

  it.each([
    ["0.2.0", "latest"],
    ["0.2.0-rc.1", "next"],
  ])("is published by the workflow: version %s with the tag %s", async (version, tag) => {
    const dir = temporaryFolder();
    const files = join(dir, "release", "files");
    mkdirSync(files, { recursive: true });
    renameSync(packedProgram(dir, version), join(files, `pipe-scaling-${version}.tgz`));
    const { steps } = releaseWorkflow.parse(parse(readFileSync(RELEASE_WORKFLOW, "utf8"))).jobs.npm;
    const [command = "", ...others] = steps.flatMap((step) => step.run ?? []);
    expect(others).toEqual([]);
    const npm = { dry_run: "true", offline: "true", loglevel: "notice", cache: join(dir, "cache") };
    const settings = Object.entries(npm).map(([name, value]) => [`npm_config_${name}`, value]);
    const env = { ...environment, ...Object.fromEntries(settings), GITHUB_REF_NAME: `v${version}` };
    const { code, stderr } = await run("bash", ["-e", "-c", command], { env, cwd: dir });
    expect(code, stderr).toBe(0);
    expect(stderr).toContain(` with tag ${tag} and public access (dry-run)`);
  });
});

describe("the manifest of the kubectl plugin for krew", () => {
  /** The rules of krew (pkg/index/validation/validate.go in its repository), and a summary that fits in one line. */
  const manifest = z.strictObject({
    apiVersion: z.literal("krew.googlecontainertools.github.com/v1alpha2"),
    kind: z.literal("Plugin"),
    metadata: z.strictObject({ name: z.string().regex(/^[\w-]+$/) }),
    spec: z.strictObject({
      version: z.string().regex(/^v\d+\.\d+\.\d+/),
      homepage: z.url(),
      shortDescription: z.string().min(1).max(50),
      description: z.string().min(1),
      caveats: z.string().min(1),
      platforms: z
        .array(
          z.strictObject({
            selector: z.strictObject({
              matchExpressions: z
                .array(
                  z.strictObject({
                    key: z.enum(["os", "arch"]),
                    operator: z.literal("In"),
                    values: z.array(z.string()).min(1),
                  }),
                )
                .min(1),
            }),
            uri: z.url(),
            sha256: z.string().regex(/^[a-f0-9]{64}$/),
            files: z.array(z.strictObject({ from: z.string(), to: z.string() })).min(1),
            bin: z.string().min(1),
          }),
        )
        .min(1),
    }),
  });

  it("follows the rules of krew, and has the version, the address and the checksum of the npm package", async () => {
    const dir = temporaryFolder();
    const file = packedProgram(dir);
    const { metadata, spec } = manifest.parse(parse(krewManifest(RELEASE, file)));
    expect(metadata.name).toBe(KREW_PLUGIN);
    expect(spec).toMatchObject({ version: "v0.1.1", homepage: RELEASE.source });
    const [platform, ...others] = spec.platforms;
    expect(others).toEqual([]);
    const name = "acme-pipe-scaling-0.1.1.tgz";
    expect(platform?.uri).toBe(`${RELEASE.source}/releases/download/v0.1.1/${name}`);
    const { stdout } = await run("sha256sum", [file], { env: environment });
    expect(stdout.split(" ")[0]).toBe(platform?.sha256);
  });

  it("names a program and a license in the archive, in the folder whose files are installed", async () => {
    const dir = temporaryFolder();
    const file = packedProgram(dir);
    const [platform] = manifest.parse(parse(krewManifest(RELEASE, file))).spec.platforms;
    expect(platform?.files).toEqual([{ from: "package/*", to: "." }]);
    const { stdout } = await run("tar", ["--list", "--gzip", "--file", file], { env: environment });
    const files = stdout.trim().split("\n");
    expect(files).toEqual(expect.arrayContaining([`package/${platform?.bin}`, "package/LICENSE"]));
  });

  it("says how to complete the commands, and which Node.js the plugin needs", () => {
    const { caveats } = manifest.parse(parse(krewManifest(RELEASE, packedProgram(temporaryFolder())))).spec;
    expect(caveats).toContain("Node.js 24 or newer");
    expect(caveats).toContain("kubectl pipes completion > ~/.krew/bin/kubectl_complete-pipes");
  });
});
