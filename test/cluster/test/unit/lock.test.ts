import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withLock } from "../../lock.ts";
import { waitFor } from "../../wait.ts";
import { startNode } from "../support/children.ts";
import { writeFakeGo } from "../support/fake-programs.ts";
import { bareMachine, scratch } from "../support/scratch.ts";

/** A machine whose Go builds until `letBuildEnd` is called. */
function slowMachine() {
  const { env, paths, bin } = bareMachine();
  const go = join(bin, "may-end");
  writeFakeGo(bin, { before: `while [ -d '${bin}' ] && [ ! -e '${go}' ]; do /bin/sleep 0.02; done` });
  return {
    find: () => startNode(new URL("../support/find-programs.ts", import.meta.url), [], env),
    buildStarted: () => waitFor(() => existsSync(join(bin, "go.log")), { what: "a build to start" }),
    letBuildEnd: () => writeFileSync(go, ""),
    builds: () => readFileSync(join(bin, "go.log"), "utf8").trim().split("\n").length,
    inCache: () => readdirSync(paths.binaries).filter((name) => name !== "lock"),
  };
}

test("two concurrent runs share one build", async () => {
  const machine = slowMachine();
  const first = machine.find();
  await machine.buildStarted();
  const second = machine.find();
  await second.waitForOutput("Another process is fetching the cluster's programs; waiting for it.");
  machine.letBuildEnd();
  expect([await first.waitForEnd(), await second.waitForEnd()]).toEqual([0, 0]);
  expect(second.stdout).toBe(first.stdout);
  expect(machine.builds()).toBe(1);
});

test("a killed run leaves no lock behind, and its unfinished build is not used", async () => {
  const machine = slowMachine();
  const first = machine.find();
  await machine.buildStarted();
  const second = machine.find();
  await second.waitForOutput("waiting for it");
  first.process.kill("SIGKILL");
  machine.letBuildEnd();
  expect(await second.waitForEnd()).toBe(0);
  expect(machine.builds()).toBe(2);
  expect(machine.inCache()).toHaveLength(1);
});

test("an interrupted run leaves no lock and no unfinished build behind", async () => {
  const machine = slowMachine();
  const first = machine.find();
  await machine.buildStarted();
  first.process.kill("SIGINT");
  expect(await first.waitForEnd()).toBe("SIGINT");
  expect(machine.inCache()).toEqual([]);
});

test("only one function holds a lock at a time, even within a process, and an error releases the lock", async () => {
  const file = join(scratch(), "lock");
  const waited: string[] = [];
  const lock = (name: string, body: () => Promise<string>) =>
    withLock(file, { onWait: () => waited.push(name) }, body);
  const first = Promise.withResolvers<string>();
  const holder = lock("first", () => first.promise);
  const next = lock("next", async () => "next");
  await waitFor(() => waited.length > 0, { what: "the next one to wait" });
  first.reject(new Error("it failed"));
  await expect(holder).rejects.toThrow("it failed");
  expect(await next).toBe("next");
  expect(waited).toEqual(["next"]);
});
