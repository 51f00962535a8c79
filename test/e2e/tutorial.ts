import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { reservePorts } from "@pipe-scaling/local-cluster/ports";
import { run } from "@pipe-scaling/local-cluster/run";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { expect, onTestFinished } from "vitest";
import { temporaryFolder } from "../support/fixtures/kubeconfig.ts";
import { startInPty } from "../support/terminal/pty.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const DOCS = join(ROOT, "docs");
/** Port of the API in the tutorial, which another program may use. */
export const PORT = "8080";
/** The section of how-to/boost.md that takes minutes, so it has a test of its own. */
export const BOOST_END = "## Try it: a boost ends while no controller runs";
/** Parts of a checkout that the pages use. */
const CHECKOUT = ["package.json", "node_modules", "src", "test", "crds"];
const COLUMNS = 110;

/** A block of commands in a page, with the output that the page shows, if any. */
export interface Step {
  readonly commands: string;
  readonly shown: string | undefined;
}

/** @param path of the page in `docs` */
export function page(path: string): string {
  return readFileSync(join(DOCS, path), "utf8");
}

/**
 * Returns the parts of a page before and after a heading.
 *
 * @throws Error if the page does not have the heading
 */
export function splitPage(path: string, heading: string): [before: string, after: string] {
  const [before = "", after] = page(path).split(`\n${heading}\n`);
  if (after === undefined) throw new Error(`docs/${path} has no heading "${heading}"`);
  return [before, after];
}

/** Returns the `sh` blocks of a page, including those in lists, each with the `text` block right after it. */
export function stepsOf(page: string): Step[] {
  const blocks = page.matchAll(/^( *)```sh\n(.*?)^ *```$(?:\n\n *```text\n(.*?)^ *```$)?/gms);
  return [...blocks].map(([, indent = "", commands = "", shown]) => ({
    commands: commands.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
    shown,
  }));
}

/** A step without output in a page. */
export function own(commands: string): Step {
  return { commands, shown: undefined };
}

/** Replaces text that differs between runs with a placeholder. */
export function withoutChance(text: string): string {
  return unwrapped(text)
    .replaceAll(/\b[\da-f]{64}\b/g, "<hash>")
    .replaceAll(/(KEY SUFFIX +)\S+/g, "$1<suffix>")
    .replaceAll(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, "<id>")
    .replaceAll(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
    .replaceAll(/\b\d+:\d\d\b/g, "<time>")
    .replaceAll(/\b\d+[dhm]\d+[hms]\b/g, "<time>")
    .replaceAll(/\b(about |less than )?\d+(\.\d+)?( ms| s| min|ms|s|m)\b/g, "<time>")
    .replaceAll(/\s+/g, " ")
    .trim();
}

/** Joins lines that the terminal wrapped. */
function unwrapped(text: string): string {
  return text.replaceAll(new RegExp(`^(.{${COLUMNS}})\n`, "gm"), "$1");
}

/** A new checkout, and a home folder without settings. */
export interface Desk {
  readonly dir: string;
  readonly env: Readonly<Record<string, string>>;
}

/** @param programs folder with the programs of the cluster */
export function desk(programs: string): Desk {
  const dir = temporaryFolder();
  const home = join(dir, "home");
  const checkout = join(dir, "checkout");
  for (const folder of [home, checkout]) mkdirSync(folder);
  for (const name of CHECKOUT) symlinkSync(join(ROOT, name), join(checkout, name));
  const env = {
    PATH: environment["PATH"] ?? "",
    HOME: home,
    PIPE_SCALING_CACHE_DIR: join(home, "cache"),
    PIPE_SCALING_CLUSTER_BINARIES: programs,
    // The pages start Node many times.
    NODE_COMPILE_CACHE: join(home, "compile-cache"),
  };
  onTestFinished(async () => {
    const main = join(ROOT, "test", "cluster", "main.ts");
    await run(process.execPath, [main, "down", "--all"], { env, cwd: checkout });
  });
  return { dir: checkout, env };
}

export interface Typed {
  readonly code: number | null;
  /** Terminal output after each step that ran. */
  readonly printed: readonly string[];
}

/** Types the commands of all steps into one shell on a terminal, until one fails. */
export async function typeAll({ dir, env }: Desk, steps: readonly string[]): Promise<Typed> {
  const script = join(dir, "typed.sh");
  const mark = (index: number) => `---- step ${index} ----`;
  writeFileSync(
    script,
    [`cd '${dir}'`, "set -eu", ...steps.map((commands, index) => `${commands}echo '${mark(index)}'`)].join(
      "\n",
    ),
  );
  const shell = startInPty("bash", [script], { env, columns: COLUMNS });
  const code = await shell.exitCode;
  const printed: string[] = [];
  let rest = shell.screen().text;
  for (const index of steps.keys()) {
    const [output = "", after] = rest.split(mark(index));
    printed.push(output);
    if (after === undefined) break;
    rest = after;
  }
  return { code, printed };
}

/** Returns a port that is free, and that no concurrent test takes before the page starts its processes. */
export async function freePort(): Promise<string> {
  const { ports, release } = await reservePorts();
  onTestFinished(release);
  return String(ports.apiServer);
}

/** Runs all steps in a new checkout, and compares the output with the pages. */
export async function follow(steps: readonly Step[]): Promise<void> {
  const { binaries } = await sharedCluster();
  const port = await freePort();
  const { code, printed } = await typeAll(
    desk(binaries.dir),
    steps.map(({ commands }) => commands.replaceAll(PORT, port)),
  );
  expect(code, printed.at(-1)).toBe(0);
  for (const [index, { commands, shown }] of steps.entries()) {
    const output = printed[index] ?? "";
    if (shown === undefined) continue;
    expect.soft(withoutChance(output), `${commands}printed:\n${output}`).toBe(withoutChance(shown));
  }
}
