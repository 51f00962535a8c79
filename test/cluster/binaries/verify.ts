import type { Environment } from "../environment.ts";
import { run, tail } from "../run.ts";
import { Binaries, missingFrom, PROGRAMS, type Program } from "./binaries.ts";
import type { Versions } from "./versions.ts";

/** How each program tells its version. */
const ASK: Readonly<Record<Program, readonly string[]>> = {
  etcd: ["--version"],
  "kube-apiserver": ["--version"],
  "kube-controller-manager": ["--version"],
  "kube-scheduler": ["--version"],
  kubectl: ["version", "--client"],
  kwok: ["--version"],
  kwokctl: ["--version"],
  helm: ["version", "--short"],
};

function versionOf(program: Program, versions: Versions): string {
  if (program === "etcd" || program === "helm") return versions[program];
  return program === "kwok" || program === "kwokctl" ? versions.kwok : versions.kubernetes;
}

/**
 * Runs every program of a folder once: it must start, and be the version that it
 * is meant to be. A truncated file, or one for another platform, does not.
 */
export async function verify(dir: string, versions: Versions, env: Environment): Promise<void> {
  const missing = missingFrom(dir);
  if (missing.length > 0) throw new Error(`${missing.join(", ")} did not come out of it`);
  const binaries = new Binaries(dir, "");
  for (const program of PROGRAMS) {
    const { code, stdout, stderr } = await run(binaries.path(program), ASK[program], { env });
    const wanted = versionOf(program, versions);
    const said = stdout + stderr;
    if (code !== 0) throw new Error(`${program} does not run, it exits with ${code}: ${tail(said, 3)}`);
    if (!said.includes(wanted)) throw new Error(`${program} is not version ${wanted}: ${tail(said, 3)}`);
  }
}
