import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { bundle } from "../../support/bundle.ts";

const PROGRAM = fileURLToPath(new URL("./logging-process.ts", import.meta.url));

let program: string;
beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), "logging-process-"));
  program = await bundle(folder, PROGRAM);
  return () => rmSync(folder, { recursive: true });
}, 60_000);

/** More lines than fit into a pipe and the buffer of the process. */
const TOO_MANY = 20_000;

type Ending = "return" | "throw" | "reject" | "wait";

function start(lines: number, ending: Ending) {
  const child = spawn(process.execPath, [program, String(lines), ending], {
    env: {},
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const isAlive = async () => {
    const before = stderr.length;
    await waitFor(() => stderr.length > before, { what: "the process to continue running", intervalMs: 5 });
  };
  return { child, isAlive, log: child.stdout };
}

type Line = Readonly<Record<string, unknown>>;

async function readAll(child: ChildProcess): Promise<Line[]> {
  const chunks: Buffer[] = [];
  child.stdout?.on("data", (chunk: Buffer) => chunks.push(chunk));
  await once(child, "close");
  const lines = Buffer.concat(chunks).toString().split("\n");
  expect(lines.pop()).toBe("");
  return lines.map((line) => JSON.parse(line));
}

test.each<[Ending, number, object]>([
  ["return", 0, { level: "info", msg: "the end" }],
  ["throw", 1, { level: "fatal", err: { message: "not caught" } }],
  ["reject", 1, { level: "fatal", err: { message: "not handled" } }],
])("a process that ends with %s writes every line first, in order", async (ending, code, last) => {
  // More lines than fit into a pipe.
  const { child } = start(1000, ending);
  const lines = await readAll(child);
  expect(lines.slice(0, 1000).map(({ line }) => line)).toEqual(Array.from({ length: 1000 }, (_, at) => at));
  expect(lines.slice(1000)).toMatchObject([last]);
  expect(child.exitCode).toBe(code);
});

test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
  "a process that ends with %s writes every line first, in order",
  async (signal) => {
    const { child, isAlive } = start(10, "wait");
    await isAlive();
    const reading = readAll(child);
    child.kill(signal);
    const lines = await reading;
    expect(lines).toHaveLength(12);
    expect(lines.slice(10)).toMatchObject([{ msg: "stopping", signal }, { msg: "the end" }]);
    expect(child.exitCode).toBe(0);
  },
);

test("a process writes lines before it ends", async () => {
  const { child, log } = start(1, "wait");
  const [chunk] = await once(log, "data");
  expect(JSON.parse(String(chunk))).toMatchObject({ line: 0 });
  expect(child.exitCode).toBeNull();
});

test("a process with an unread log keeps running, and ends when it receives a signal", async () => {
  const { child, isAlive } = start(TOO_MANY, "wait");
  await isAlive();
  child.kill("SIGTERM");
  await once(child, "exit");
  expect(child.exitCode).toBe(0);
});

test("a process reports how many lines it dropped when its log is read again", async () => {
  const { child, isAlive } = start(TOO_MANY, "wait");
  await isAlive();
  const reading = readAll(child);
  let isReported = false;
  child.stdout?.on("data", (chunk: Buffer) => {
    isReported ||= chunk.includes("dropped");
  });
  await waitFor(() => isReported, { what: "the report on dropped lines" });
  child.kill("SIGTERM");
  const lines = await reading;
  const seen = lines.filter(({ line }) => line !== undefined);
  const dropped = lines.find(({ lines: count }) => count !== undefined);
  expect(seen.map(({ line }) => line)).toEqual(seen.map((_, at) => at));
  expect(dropped).toMatchObject({ level: "warn", lines: TOO_MANY - seen.length });
});

test.each<[Ending, number]>([
  ["return", 0],
  ["throw", 1],
])("a process that ends with %s ends even if the disk of its log is full", async (ending, code) => {
  const full = openSync("/dev/full", "w");
  const child = spawn(process.execPath, [program, "1000", ending], {
    env: {},
    stdio: ["ignore", full, "ignore"],
  });
  closeSync(full);
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  await once(child, "exit");
  expect(child.exitCode).toBe(code);
});

test("a process keeps running after the reader of its log disconnects", async () => {
  const { child, isAlive, log } = start(TOO_MANY, "wait");
  log.destroy();
  await isAlive();
  await isAlive();
  child.kill("SIGTERM");
  await once(child, "exit");
  expect(child.exitCode).toBe(0);
});
