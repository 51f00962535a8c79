import { expect, it } from "vitest";
import { retryOnConflict } from "../../../../src/api/cluster/retry-on-conflict.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";

/** Attempts a write that fails with this code and message each time. Returns the error, and the number of attempts. */
async function attempts(code: number, message: string): Promise<{ error: unknown; count: number }> {
  let count = 0;
  const attempt = () => {
    count += 1;
    return Promise.reject(new KubeApiError("PATCH", code, JSON.stringify({ message })));
  };
  const read = () => Promise.resolve("an object");
  const error: unknown = await retryOnConflict({
    cached: "an object",
    read,
    attempt,
    what: "this size",
  }).catch((each: unknown) => each);
  return { error, count };
}

it("a conflict is retried", async () => {
  const { error, count } = await attempts(409, "the object has been modified");
  expect(count).toBeGreaterThan(1);
  expect(String(error)).toContain("Other requests are changing the same object");
});

it.each([404, 409])("a webhook that denies the write with %i is no conflict", async (code) => {
  const { error, count } = await attempts(code, 'admission webhook "a.example.com" denied the request: no');
  expect(count).toBe(1);
  expect(String(error)).toContain("The cluster's policy does not allow this size.");
});
