import { accessSync, constants } from "node:fs";
import { join } from "node:path";

/** The programs of a local cluster, and those to use it. */
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

/** A folder that has all of them. */
export class Binaries {
  readonly dir: string;

  constructor(dir: string) {
    this.dir = dir;
  }

  path(program: Program): string {
    return join(this.dir, program);
  }
}

/** The programs that are missing from a folder, or cannot be executed. */
export function missingFrom(dir: string): Program[] {
  return PROGRAMS.filter((program) => {
    try {
      accessSync(join(dir, program), constants.X_OK);
      return false;
    } catch {
      return true;
    }
  });
}
