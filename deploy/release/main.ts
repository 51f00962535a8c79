import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { messageOf } from "@pipe-scaling/local-cluster/errors";
import { Command } from "commander";
import packageJson from "../../package.json" with { type: "json" };
import { plainManifests } from "../manifests/plain-manifests.ts";
import { changelogSection } from "./changelog.ts";
import { packageChart, writeChart } from "./chart.ts";
import { KREW_PLUGIN, krewManifest } from "./krew.ts";
import { packNpmPackage, writeNpmPackage } from "./npm-package.ts";
import type { Release } from "./release.ts";

/**
 * The files of a release, for .github/workflows/release.yaml:
 *
 *   node deploy/release/main.ts check v0.1.0
 *   node deploy/release/main.ts write <folder> --source <url> --image <repository> --digest <digest> --npm-name <name>
 */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const { version } = packageJson;

function changes() {
  return changelogSection(readFileSync(join(ROOT, "CHANGELOG.md"), "utf8"), version);
}

/** @throws Error if the tag is not the version of the repository, or the changelog does not have it */
function check(tag: string): void {
  if (tag !== `v${version}`)
    throw new Error(`The tag is ${tag}, but package.json has the version ${version}.`);
  changes();
}

interface WriteOptions extends Omit<Release, "version"> {
  readonly npmName: string;
}

async function write(out: string, { npmName, ...rest }: WriteOptions): Promise<void> {
  const release = { ...rest, version };
  const section = changes();
  const work = join(out, "work");
  const files = join(out, "files");
  for (const folder of [work, files]) mkdirSync(folder, { recursive: true });
  const notes = `${section.body}\n\nImage: \`${release.image}:${version}@${release.digest}\`\n`;
  writeFileSync(join(out, "notes.md"), notes);
  await packageChart(writeChart(release, section, work), files);
  const image = `image.repository=${release.image},image.digest=${release.digest}`;
  writeFileSync(join(files, "install.yaml"), await plainManifests("--set", image));
  const program = join(work, "program");
  execFileSync(join(ROOT, "deploy", "image", "build.sh"), [program], { stdio: "inherit" });
  const npm = join(out, "npm");
  writeNpmPackage({ name: npmName, version, source: release.source }, program, npm);
  const npmFile = join(files, `pipe-scaling-${version}.tgz`);
  renameSync(packNpmPackage(npm, work), npmFile);
  writeFileSync(join(files, `${KREW_PLUGIN}.yaml`), krewManifest(release, npmFile));
}

const program = new Command("node deploy/release/main.ts").description(
  "Checks and writes the files of a release.",
);
program.command("check").argument("<tag>", "tag of the release").action(check);
program
  .command("write")
  .argument("<folder>", "a new folder")
  .requiredOption("--source <url>", "URL of the source repository")
  .requiredOption("--image <repository>", "registry and repository of the image")
  .requiredOption("--digest <digest>", "digest of the image")
  .requiredOption("--npm-name <name>", "name of the npm package")
  .action(write);
try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = 1;
}
