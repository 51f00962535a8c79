import { spawn } from "node:child_process";
import { mkdtempSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";

test("has a program that runs from a temporary folder, like a cluster that is kept, and does not end", async () => {
  const program = join(mkdtempSync(join(tmpdir(), "kept-")), "etcd");
  symlinkSync(process.execPath, program);
  spawn(program, ["-e", "setInterval(() => {}, 1e9)"], { detached: true, stdio: "ignore" }).unref();
  mkdtempSync(join(tmpdir(), "waiting-"));
  await new Promise(() => undefined);
});
