import { execFile, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify, stripVTControlCharacters } from "node:util";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, onTestFinished, type TestContext, test } from "vitest";
import { COMMANDS } from "../../../../src/all-commands.ts";
import { candidateLines } from "../../../../src/cli/completion/candidates.ts";
import { profilePath } from "../../../../src/cli/customer/profile-file.ts";
import { runProgram } from "../../../../src/cli/program.ts";
import { fakeIo } from "../../../support/fakes/fake-io.ts";
import { MAIN, runProgram as runInPipe } from "../../../support/terminal/program.ts";
import { startInPty } from "../../../support/terminal/pty.ts";

const run = promisify(execFile);

/** Directories with shells, including those from Homebrew. */
const PATH = "/usr/bin:/bin:/usr/local/bin:/opt/homebrew/bin";

const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];

/** Every system has bash; the other shells are tested only where they are installed. */
function needs(shell: Shell, { skip }: TestContext): void {
  skip(spawnSync(shell, ["-c", ":"], { env: { PATH } }).status !== 0, `${shell} is not installed here`);
}

/** A folder with the program, the three scripts, and some files to complete. */
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "completion-"));
  for (const shell of SHELLS) {
    const io = fakeIo();
    expect(await runProgram(COMMANDS, ["completion", shell], io)).toBe(0);
    expect(io.written.err).toBe("");
    writeFileSync(script(shell), io.written.out);
  }
  mkdirSync(join(folder, "bin"));
  const program = `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`;
  writeFileSync(join(folder, "bin", "pipe-scaling"), program, { mode: 0o755 });
  writeFileSync(join(folder, "kube config"), "");
  mkdirSync(join(folder, "kubes"));
  writeFileSync(join(folder, "a:file"), "");
  mkdirSync(join(folder, ".kube"));
  writeFileSync(join(folder, ".kube", "config"), CONTEXTS);
  mkdirSync(join(folder, ".config", "pipe-scaling"), { recursive: true });
  writeFileSync(profilePath({ HOME: folder }), PROFILES, { mode: 0o600 });
});
afterAll(() => rmSync(folder, { recursive: true }));

const CONTEXTS = `contexts: ${JSON.stringify(
  ["arn:aws:eks:eu-1:1:cluster/blue", "arn:aws:eks:eu-1:1:cluster/green", "ns/a:6443/me@home"].map((name) => {
    return { name, context: { cluster: "c", user: "u" } };
  }),
)}`;

const PROFILE = "{ apiUrl: https://api.example.com, keyId: k, keySecret: s }";
const PROFILES = `profiles: { prod: ${PROFILE}, staging: ${PROFILE} }`;

function script(shell: Shell): string {
  return join(folder, `script.${shell}`);
}

const environment = () => ({ PATH: `${join(folder, "bin")}:${PATH}`, HOME: folder, TERM: "xterm" });

/** The completions of bash for the last word. */
async function offersOfBash(line: string): Promise<string[]> {
  // Splits the line like readline, which treats these characters as separate words.
  const words = line.split(/ |(?<=[=:@])|(?=[=:@])/);
  const code = `
    source "$1"; shift
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
    _pipe_scaling
    [[ \${#COMPREPLY[@]} == 0 ]] || printf '%s\\n' "\${COMPREPLY[@]}"`;
  const args = ["--noprofile", "--norc", "-c", code, "bash", script("bash"), ...words];
  const { stdout, stderr } = await run("bash", args, { cwd: folder, env: environment() });
  expect(stderr).toBe("");
  return stdout.split("\n").filter(Boolean);
}

/** The completions of fish at the end of each line, without their descriptions. */
async function offersOfFish(...lines: readonly string[]): Promise<string[][]> {
  const code = "source $argv[1]; for line in $argv[2..]; complete --do-complete $line; echo; end";
  const { stdout, stderr } = await run("fish", ["--no-config", "-c", code, script("fish"), ...lines], {
    cwd: folder,
    env: environment(),
  });
  expect(stderr).toBe("");
  const offers: string[][] = [[]];
  for (const line of stdout.split("\n").slice(0, -1)) {
    // An empty line ends the completions of each line.
    if (line === "") offers.push([]);
    else offers.at(-1)?.push(line.split("\t")[0] ?? "");
  }
  return offers.slice(0, -1);
}

/** The completions of zsh at the end of each line, in a terminal, because zsh completes nowhere else. */
async function offersOfZsh(...lines: readonly string[]): Promise<string[][]> {
  const zsh = startInPty("zsh", ["-f", "-i"], { env: environment() });
  const setup = [
    ...[`cd ${folder}`, "autoload -Uz compinit", "compinit -D -u", `source ${script("zsh")}`],
    ...["zstyle ':completion:*' verbose no", "PS1='ready> '"],
  ];
  zsh.write(`${setup.join("; ")}\r`);
  const offers: string[][] = [];
  for (const line of lines) {
    // Ctrl-U erases the previous line first.
    const mark = `line-${offers.length}`;
    zsh.write(`\u0015print -r ${mark}''-begins\r`);
    const response = () => zsh.output().split(`${mark}-begins\r\n`).at(-1) ?? "";
    // Until it prints the next prompt, the shell does not control the terminal, so Ctrl-D would end it.
    await zsh.waitFor(new RegExp(`${mark}-begins\\r\\n[^]*ready> `));
    zsh.write(`${line}\u0004`);
    const listed = () => listedBelow(response().slice(response().lastIndexOf("ready> ")));
    const list = await waitFor(() => listed()?.split(/\s+/), { what: `completions of ${line}` });
    offers.push(list.filter(Boolean).sort());
  }
  return offers;
}

/** Ctrl-D prints the list below the line and moves the cursor back up; without candidates, it rings the bell. */
function listedBelow(output: string): string | undefined {
  const end = output.indexOf("\u001b[A");
  if (end >= 0) return stripVTControlCharacters(output.slice(output.indexOf("\n"), end));
  return output.includes("\u0007") ? "" : undefined;
}

const LINES: readonly (readonly [line: string, offers: readonly string[]])[] = [
  ["pipe-scaling org", ["organizations"]],
  ["pipe-scaling adm", ["admin"]],
  ["pipe-scaling admin ", ["key", "member", "organization", "service"]],
  ["pipe-scaling admin organization ", ["create", "delete", "list", "show", "update"]],
  ["pipe-scaling admin key ro", ["rotate"]],
  ["pipe-scaling completion ", ["bash", "fish", "zsh"]],
  ["pipe-scaling admin key rotate --ca", ["--cancel"]],
  ["pipe-scaling admin organization list --output ", ["json", "table", "yaml"]],
  ["pipe-scaling admin key create --organization x --role ", ["admin", "developer"]],
  // The value of a flag is not a command.
  ["pipe-scaling admin organization create --name list --ti", ["--tier", "--tiers-file"]],
  ["pipe-scaling admin organization create --name ", []],
  ["pipe-scaling nonsense", []],
  ["pipe-scaling profile use ", ["prod", "staging"]],
  ["pipe-scaling profile remove s", ["staging"]],
  ["pipe-scaling profile set pr", ["prod"]],
  ["pipe-scaling services --profile s", ["staging"]],
];

describe("bash", () => {
  test.each(LINES)("%s", async (line, offers) => {
    expect((await offersOfBash(line)).sort()).toEqual(offers);
  });

  test("completes a value after an equals sign", async () => {
    expect(await offersOfBash("pipe-scaling admin organization list --output=y")).toEqual(["yaml"]);
    expect((await offersOfBash("pipe-scaling admin organization list --output=")).sort()).toEqual([
      ...["json", "table", "yaml"],
    ]);
  });

  test.each([
    ["", ["arn:aws:eks:eu-1:1:cluster/blue", "arn:aws:eks:eu-1:1:cluster/green", "ns/a:6443/me@home"]],
    ["arn:", ["aws:eks:eu-1:1:cluster/blue", "aws:eks:eu-1:1:cluster/green"]],
    ["arn:aws:eks:eu-1:1:cluster/", ["cluster/blue", "cluster/green"]],
    ["arn:aws:eks:eu-1:1:cluster/g", ["cluster/green"]],
    ["ns/a:6443/m", ["6443/me@home"]],
    ["ns/a:6443/me@", ["home"]],
    ["ns/a:6443/me@h", ["home"]],
    ["other:", []],
  ])("completes the end of a context with colons and at signs: %s", async (typed, offers) => {
    for (const given of ["--context ", "--context="]) {
      expect((await offersOfBash(`pipe-scaling status ${given}${typed}`)).sort()).toEqual(offers);
    }
  });

  test("offers nothing after a colon without a word before it", async () => {
    expect(await offersOfBash("pipe-scaling :")).toEqual([]);
  });

  test("completes files only for options that take a file", async () => {
    expect(await offersOfBash("pipe-scaling admin key list --kubeconfig a:f")).toEqual(["file"]);
    expect((await offersOfBash("pipe-scaling admin key list --kubeconfig kub")).sort()).toEqual([
      ...["kube config", "kubes"],
    ]);
    expect(await offersOfBash("pipe-scaling admin key list --namespace kub")).toEqual([]);
  });

  test("offers flags if nothing else is possible", async () => {
    expect(await offersOfBash("pipe-scaling admin service list ")).toEqual(
      expect.arrayContaining(["--organization", "--output", "--help"]),
    );
  });

  test("completes at an interactive terminal", async () => {
    const bash = startInPty("bash", ["--noprofile", "--norc", "-i"], { env: environment() });
    // Paths are relative, because the terminal would wrap long lines.
    bash.write(`cd ${folder}; source script.bash; echo rea''dy\r`);
    await bash.waitFor("ready\r\n");
    bash.write("pipe-scaling admin key rot\t");
    await bash.waitFor("pipe-scaling admin key rotate ");
    bash.write("--fin\t");
    await bash.waitFor("pipe-scaling admin key rotate --finish ");
    bash.write("--kubeconfig kubes\t");
    await bash.waitFor("--kubeconfig kubes/");
    bash.write("\x15pipe-scaling status --context arn\t");
    await bash.waitFor(":aws:eks:eu-1:1:cluster/");
    bash.write("g\t");
    await bash.waitFor("green ");
    bash.write("\x15exit\r");
    expect(await bash.exitCode).toBe(0);
  });
});

describe("zsh", () => {
  test("offers the same completions as bash", async (context) => {
    needs("zsh", context);
    const offers = await offersOfZsh(...LINES.map(([line]) => line));
    expect(LINES.map(([line], at) => [line, offers[at]])).toEqual(LINES);
  });

  test("completes a value after an equals sign, and files only for options that take a file", async (context) => {
    needs("zsh", context);
    const lines = [
      "admin organization list --output=y",
      "admin key list --kubeconfig kub",
      "admin key list --namespace kub",
    ];
    expect(await offersOfZsh(...lines.map((line) => `pipe-scaling ${line}`))).toEqual([
      ["yaml"],
      // The space in the file name is escaped, and splits the entry in two here.
      ["config", "kube\\", "kubes/"],
      [],
    ]);
  });
});

describe("fish", () => {
  test("offers the same completions as bash", async (context) => {
    needs("fish", context);
    const offers = await offersOfFish(...LINES.map(([line]) => line));
    expect(LINES.map(([line], at) => [line, offers[at]?.sort()])).toEqual(LINES);
  });

  test("completes files only for options that take a file", async (context) => {
    needs("fish", context);
    const lines = ["admin key list --kubeconfig kub", "admin key list --namespace kub"];
    expect(await offersOfFish(...lines.map((line) => `pipe-scaling ${line}`))).toEqual([
      ["kube config", "kubes/"],
      [],
    ]);
  });
});

test.each(SHELLS)("the program prints the tested script for %s", async (shell) => {
  const { code, out, err } = await runInPipe(["completion", shell]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toBe(readFileSync(script(shell), "utf8"));
});

describe("the completions of profile names", () => {
  const offers = (...words: readonly string[]) =>
    candidateLines(COMMANDS, words, { HOME: folder }).map((line) => line.split("\t")[0]);

  test("are offered by every command that takes a profile", () => {
    for (const { name, options } of COMMANDS.commands.filter((each) => each.options.some(isProfile))) {
      expect(options.filter(isProfile)).toHaveLength(1);
      expect(offers(...name.split(" "), "--profile", "")).toEqual(["prod", "staging"]);
    }
  });

  test("are absent if the profile file may not be read, and flags are offered instead of an argument", () => {
    chmodSync(profilePath({ HOME: folder }), 0o644);
    onTestFinished(() => chmodSync(profilePath({ HOME: folder }), 0o600));
    expect(offers("services", "--profile", "")).toEqual([]);
    expect(offers("profile", "use", "")).toEqual(["--help"]);
  });
});

function isProfile({ flag }: { readonly flag: string | undefined }): boolean {
  return flag === "--profile";
}

test("the completions of every command include its flags", () => {
  for (const { name, options } of COMMANDS.commands) {
    const lines = candidateLines(COMMANDS, [...name.split(" "), "--"], {});
    const flags = options.flatMap(({ flag }) => flag ?? []);
    expect(lines.map((line) => line.split("\t")[0])).toEqual([...flags, "--help"]);
  }
});
