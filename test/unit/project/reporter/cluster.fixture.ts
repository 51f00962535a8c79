import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { openPaths } from "@pipe-scaling/local-cluster/paths";
import { thisProcess } from "@pipe-scaling/local-cluster/processes";
import { test } from "vitest";

test("has a cluster of one process and does not end", async () => {
  const folder = join(openPaths(environment).clusters, "own");
  mkdirSync(folder);
  const record = { owner: thisProcess(), binaries: "/", server: "https://127.0.0.1:1" };
  writeFileSync(
    join(folder, "cluster.json"),
    JSON.stringify({ ...record, createdAt: new Date().toISOString() }),
  );
  symlinkSync(process.execPath, join(folder, "etcd"));
  spawn(join(folder, "etcd"), ["-e", "setInterval(() => {}, 1e9)"], {
    detached: true,
    stdio: "ignore",
  }).unref();
  mkdtempSync(join(tmpdir(), "waiting-"));
  await new Promise(() => undefined);
});
