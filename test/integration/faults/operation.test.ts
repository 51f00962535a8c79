import { expect, it } from "vitest";
import { KubeApiError } from "../../../src/kube/errors.ts";
import { DeniedWrites } from "./denied-writes.ts";
import { ifPossible, type Operation, OperationLog } from "./operation.ts";

async function loggedAfter(operation: Operation, attempts: number): Promise<OperationLog> {
  const log = new OperationLog();
  for (let attempt = 0; attempt < attempts; attempt += 1) await log.run("pipes", operation, ifPossible);
  return log;
}

it.each<[string, Operation]>([
  ["never finds anything that it could apply to", () => Promise.resolve(false)],
  ["is always refused", () => Promise.reject(new KubeApiError("PATCH pipe-1", 409, "no"))],
])("reports an operation that %s", async (_what, result) => {
  async function addPipe(): Promise<unknown> {
    return result();
  }
  const log = await loggedAfter(addPipe, 12);
  expect(() => log.mustHaveHappened()).toThrow("never had an effect: addPipe (12 attempts)");
});

it("accepts an operation that had an effect once, or that was tried only a few times", async () => {
  const results = [false, false, true];
  const once = await loggedAfter(() => Promise.resolve(results.shift() ?? false), 12);
  expect(() => once.mustHaveHappened()).not.toThrow();
  const seldom = await loggedAfter(() => Promise.resolve(false), 11);
  expect(() => seldom.mustHaveHappened()).not.toThrow();
});

it("lists every operation with its details, and how often each had an effect", async () => {
  async function addPipe(): Promise<unknown> {
    return "pipe-1";
  }
  const { text } = await loggedAfter(addPipe, 2);
  expect(text).toMatch(
    /Z pipes addPipe pipe-1\n.*Z pipes addPipe pipe-1\n\nWith an effect:\naddPipe: 2 of 2$/,
  );
});

it("counts the denied writes to each object, and reports them as soon as they are too many for their time", () => {
  const often = new DeniedWrites(0);
  const tenTimes = Array.from({ length: 10 }, () => often.add("pod-1", 100));
  expect(tenTimes).toEqual(Array.from({ length: 10 }, () => true));
  expect(often.add("pod-1", 100)).toBe(false);
  expect(often.add("pod-2", 100)).toBe(true);
  expect(often.add("pod-1", 1000)).toBe(true);
});
