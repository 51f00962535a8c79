import { expect, it } from "vitest";
import { retryOnConflict } from "../../../../src/api/cluster/retry-on-conflict.ts";
import { KubeApiError, KubeUnreachableError } from "../../../../src/kube/errors.ts";

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

const REFUSED = Object.assign(new Error("connect ECONNREFUSED"), { syscall: "connect" });

it.each([
  ["a missing permission", new KubeApiError("PATCH", 403, "{}"), "Unavailable"],
  ["too many requests", new KubeApiError("PATCH", 429, "{}"), "Unavailable"],
  ["a connection that is refused", new KubeUnreachableError("PATCH", { cause: REFUSED }), "Unavailable"],
  ["an error of the API server", new KubeApiError("PATCH", 500, "{}"), "NotConfirmed"],
  ["no response", new KubeUnreachableError("PATCH"), "NotConfirmed"],
])("%s leaves the outcome open only if the write may have been made", async (_what, error, reason) => {
  const attempt = () => Promise.reject(error);
  const read = () => Promise.reject(new Error("not read"));
  const change = retryOnConflict({ cached: "an object", read, attempt, what: "this size" });
  await expect(change).rejects.toMatchObject({ status: 503, reason });
});

it("a read that fails after a conflict does not leave the outcome open", async () => {
  const attempt = () => Promise.reject(new KubeApiError("PATCH", 409, "{}"));
  const read = () => Promise.reject(new KubeApiError("GET", 500, "{}"));
  const change = retryOnConflict({ cached: "an object", read, attempt, what: "this size" });
  await expect(change).rejects.toMatchObject({ status: 503, reason: "Unavailable" });
});
