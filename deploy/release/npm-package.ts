import { execFileSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import * as z from "zod";
import { KUBECTL_COMPLETION } from "../../src/cli/completion/kubectl.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const manifest = z.object({
  description: z.string(),
  license: z.string(),
  engines: z.object({ node: z.string() }),
});

export interface NpmPackage {
  readonly name: string;
  readonly version: string;
  /** URL of the source repository, which npm compares with the one that publishes. */
  readonly source: string;
}

/**
 * Writes the command line as an npm package without dependencies. The package of the repository is private, because
 * its source is no interface.
 *
 * @param program folder that deploy/image/build.sh has written
 */
export function writeNpmPackage({ name, version, source }: NpmPackage, program: string, out: string): void {
  const { description, license, engines } = manifest.parse(
    JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")),
  );
  cpSync(program, out, { recursive: true });
  const packageJson = {
    name,
    version,
    description,
    license,
    engines,
    repository: { type: "git", url: `git+${source}.git` },
    type: "module",
    bin: {
      "pipe-scaling": "pipe-scaling.mjs",
      "kubectl-pipes": "kubectl-pipes.mjs",
      [KUBECTL_COMPLETION]: KUBECTL_COMPLETION,
    },
    files: readdirSync(program),
  };
  writeFileSync(join(out, "package.json"), `${JSON.stringify(packageJson, undefined, 2)}\n`);
  writeFileSync(join(out, "README.md"), readme(name, source));
}

/** @returns path of the package in one file */
export function packNpmPackage(folder: string, out: string): string {
  // npm takes a relative path such as release/npm for the repository of this name on GitHub.
  const args = ["pack", resolve(folder), "--pack-destination", out, "--json"];
  const packed = z
    .tuple([z.object({ filename: z.string() })])
    .parse(JSON.parse(execFileSync("npm", args, { encoding: "utf8" })));
  return join(out, packed[0].filename);
}

function readme(name: string, source: string): string {
  return `# ${name}

\`pipe-scaling\`, the command line of [pipe-scaling-operator](${source}), and \`kubectl pipes\`, the kubectl plugin with
its commands for platform teams.

\`\`\`console
$ npm install --global ${name}
$ pipe-scaling --help
$ kubectl pipes --help
\`\`\`
`;
}
