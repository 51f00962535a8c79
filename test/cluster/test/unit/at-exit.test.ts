import { expect, test } from "vitest";
import { environment } from "../../environment.ts";
import { startNode } from "../support/children.ts";

const INTERRUPTIBLE = new URL("../support/interruptible.ts", import.meta.url);

test("a second Ctrl-C runs the cleanups and ends the process, even if another handler does not end it", async () => {
  const child = startNode(INTERRUPTIBLE, [], environment);
  await child.waitForOutput("ready");
  await child.waitUntil(() => {
    child.process.kill("SIGINT");
    return child.process.signalCode !== null;
  }, "the process to end");
  expect(await child.waitForEnd()).toBe("SIGINT");
  // Those of the first second count as one.
  expect(child.stdout).toMatch(/^ready\n(ignored\n){2,}cleaned\n/);
});
