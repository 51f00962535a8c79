import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withLock } from "../cluster/binaries/lock.ts";
import { startNode } from "../cluster/testing/children.ts";
import { writeFakeGo } from "../cluster/testing/fake-programs.ts";
import { bareMachine, scratch } from "../cluster/testing/scratch.ts";
import { waitFor } from "../cluster/wait.ts";

/** A machine whose Go builds until it is told to be done. */
function slowMachine() {
  const { env, paths, bin } = bareMachine();
  const go = join(bin, "may-end");
  writeFakeGo(bin, { before: `while [ -d '${bin}' ] && [ ! -e '${go}' ]; do /bin/sleep 0.02; done` });
  return {
    find: () => startNode(new URL("../cluster/testing/find-programs.ts", import.meta.url), [], env),
    buildStarted: () => waitFor(() => existsSync(join(bin, "go.log")), { what: "a build to start" }),
    letBuildEnd: () => writeFileSync(go, ""),
    builds: () => readFileSync(join(bin, "go.log"), "utf8").trim().split("\n").length,
    inCache: () => readdirSync(paths.binaries).filter((name) => name !== "lock"),
  };
}

test("two runs at once share one build", async () => {
  const machine = slowMachine();
  const first = machine.find();
  await machine.buildStarted();
  const second = machine.find();
  await second.says("Another run is fetching the cluster's programs; waiting for it.");
  machine.letBuildEnd();
  expect([await first.ends(), await second.ends()]).toEqual([0, 0]);
  expect(first.stdout).toBe("found in a build with Go\n");
  expect(second.stdout).toBe("found in the cache (a build with Go)\n");
  expect(machine.builds()).toBe(1);
});

test("a run that is killed leaves no lock behind, and its half of a build is not taken for a whole", async () => {
  const machine = slowMachine();
  const first = machine.find();
  await machine.buildStarted();
  const second = machine.find();
  await second.says("waiting for it");
  first.process.kill("SIGKILL");
  machine.letBuildEnd();
  expect(await second.ends()).toBe(0);
  expect(second.stdout).toBe("found in a build with Go\n");
  expect(machine.builds()).toBe(2);
  expect(machine.inCache()).toHaveLength(1);
});

test("a run that is interrupted leaves neither lock nor half a build", async () => {
  const machine = slowMachine();
  const first = machine.find();
  await machine.buildStarted();
  first.process.kill("SIGINT");
  expect(await first.ends()).toBe("SIGINT");
  expect(machine.inCache()).toEqual([]);
});

test("who holds the lock is alone, also within a process, and lets go of it after a failure", async () => {
  const file = join(scratch(), "lock");
  const waited: string[] = [];
  const lock = (name: string, body: () => Promise<string>) =>
    withLock(file, { onWait: () => waited.push(name) }, body);
  const first = Promise.withResolvers<string>();
  const holder = lock("first", () => first.promise);
  const next = lock("next", async () => "next");
  await waitFor(() => waited.length > 0, { what: "the next one to wait" });
  first.reject(new Error("no luck"));
  await expect(holder).rejects.toThrow("no luck");
  expect(await next).toBe("next");
  expect(waited).toEqual(["next"]);
});
