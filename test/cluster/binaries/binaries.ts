import { accessSync, constants, statSync } from "node:fs";
import { join } from "node:path";

/** The eight programs that make a local cluster and work on it. */
export const PROGRAMS = [
  "etcd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kubectl",
  "kwok",
  "kwokctl",
  "helm",
] as const;
export type Program = (typeof PROGRAMS)[number];

/** A folder that holds all eight. */
export class Binaries {
  readonly dir: string;
  /** Where they come from, for people: "the cache", "official downloads", … */
  readonly source: string;

  constructor(dir: string, source: string) {
    this.dir = dir;
    this.source = source;
  }

  path(program: Program): string {
    return join(this.dir, program);
  }
}

/** Which of the eight are not in a folder, or cannot be executed. */
export function missingFrom(dir: string): Program[] {
  return PROGRAMS.filter((program) => !isExecutable(join(dir, program)));
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
