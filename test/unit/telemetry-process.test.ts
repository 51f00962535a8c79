import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { waitFor } from "../cluster/wait.ts";

const PROGRAM = fileURLToPath(new URL("./telemetry/logging-process.ts", import.meta.url));

/** More than a pipe and the process together hold. */
const TOO_MANY = 20_000;

type Ending = "return" | "throw" | "reject" | "wait";

function start(lines: number, ending: Ending) {
  const child = spawn(process.execPath, [PROGRAM, String(lines), ending], {
    env: {},
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  const isAlive = async () => {
    const before = said.length;
    await waitFor(() => said.length > before, { what: "the process to go on", intervalMs: 5 });
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
  ["throw", 1, { level: "fatal", err: { message: "nobody catches" } }],
  ["reject", 1, { level: "fatal", err: { message: "nobody listens" } }],
])("a process that ends by %s has written every line, in order", async (ending, code, last) => {
  // More than a pipe holds.
  const { child } = start(1000, ending);
  const lines = await readAll(child);
  expect(lines.slice(0, 1000).map(({ line }) => line)).toEqual(Array.from({ length: 1000 }, (_, at) => at));
  expect(lines.slice(1000)).toMatchObject([last]);
  expect(child.exitCode).toBe(code);
});

test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
  "a process that is ended by %s has too",
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

test("a line does not wait for the end of the process", async () => {
  const { child, log } = start(1, "wait");
  const [chunk] = await once(log, "data");
  expect(JSON.parse(String(chunk))).toMatchObject({ line: 0 });
  expect(child.exitCode).toBeNull();
});

test("a log that nobody reads neither stops a process nor keeps it from its end", async () => {
  const { child, isAlive } = start(TOO_MANY, "wait");
  await isAlive();
  child.kill("SIGTERM");
  await once(child, "exit");
  expect(child.exitCode).toBe(0);
});

test("a reader that comes back is told how many lines it will never see", async () => {
  const { child, isAlive } = start(TOO_MANY, "wait");
  await isAlive();
  const reading = readAll(child);
  let told = false;
  child.stdout?.on("data", (chunk: Buffer) => {
    told ||= chunk.includes("dropped");
  });
  await waitFor(() => told, { what: "the gap to be told" });
  child.kill("SIGTERM");
  const lines = await reading;
  const seen = lines.filter(({ line }) => line !== undefined);
  const dropped = lines.find(({ lines: count }) => count !== undefined);
  expect(seen.map(({ line }) => line)).toEqual(seen.map((_, at) => at));
  expect(dropped).toMatchObject({ level: "warn", lines: TOO_MANY - seen.length });
});

test("a log whose reader has gone does not end the process", async () => {
  const { child, isAlive, log } = start(TOO_MANY, "wait");
  log.destroy();
  await isAlive();
  await isAlive();
  child.kill("SIGTERM");
  await once(child, "exit");
  expect(child.exitCode).toBe(0);
});
