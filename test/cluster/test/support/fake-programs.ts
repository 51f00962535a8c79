import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PROGRAMS, type Program } from "../../binaries/binaries.ts";
import { readVersions } from "../../binaries/versions.ts";

/** A program that prints all versions. */
export function fakeProgram(program: string): string {
  return `#!/bin/sh\necho ${program} ${Object.values(readVersions()).join(" ")}\n`;
}

export function writeProgram(dir: string, name: string, text = fakeProgram(name)): string {
  mkdirSync(dir, { recursive: true });
  const path = join(dir, name);
  writeFileSync(path, text);
  chmodSync(path, 0o755);
  return path;
}

export function writePrograms(dir: string, programs: readonly Program[] = PROGRAMS): string {
  for (const program of programs) writeProgram(dir, program);
  return dir;
}

export interface FakeGo {
  readonly version?: string;
  /** Shell commands that run before the programs are written. */
  readonly before?: string;
}

/**
 * Writes a fake `go` into a folder. Its `go install` logs its arguments in `<dir>/go.log` and writes the eight fake
 * programs, or hollow-kubelet if that is an argument.
 */
export function writeFakeGo(dir: string, { version = "go1.26.0", before = "" }: FakeGo = {}): void {
  const names = PROGRAMS.map((program) => (program === "etcd" ? "server" : program));
  const write = (name: string) =>
    `printf '%s' '${fakeProgram(name)}' > "$GOBIN/${name}" && /bin/chmod +x "$GOBIN/${name}"`;
  writeProgram(
    dir,
    "go",
    `#!/bin/sh
if [ "$1" = env ]; then echo ${version}; exit; fi
echo "$@" >> '${join(dir, "go.log")}'
if [ "$1" = mod ]; then echo '{"GoMod": "${join(dir, "kubernetes.mod")}"}'; exit; fi
case "$PWD" in */kubernetes) /bin/cp go.mod '${join(dir, "built.mod")}' ;; esac
${before}
case "$*" in
*./hollow-kubelet) ${write("hollow-kubelet")} ;;
*) ${names.map(write).join("\n")} ;;
esac
`,
  );
}
