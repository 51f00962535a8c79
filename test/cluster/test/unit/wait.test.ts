import { expect, test } from "vitest";
import { waitFor } from "../../wait.ts";

const SOON = { timeoutMs: 20, intervalMs: 1 };

test("waitFor returns the first value that fulfills the condition", async () => {
  const seen = [undefined, null, false, 0];
  expect(await waitFor(() => seen.shift(), { what: "a number", intervalMs: 1 })).toBe(0);
});

test("waitFor continues after an error", async () => {
  let looks = 0;
  const look = () => {
    if (++looks < 3) throw new Error("not yet");
    return looks;
  };
  expect(await waitFor(look, { what: "three looks", intervalMs: 1 })).toBe(3);
});

test("after the timeout, the error has the condition and the last value", async () => {
  const seen = waitFor(() => false, { what: "the pod to be ready", ...SOON });
  await expect(seen).rejects.toThrow("waited 0.02 s for the pod to be ready; last seen: false");
});

test("after the timeout, the error has the last error", async () => {
  const cause = new Error("connection refused");
  const failed = waitFor(
    () => {
      throw cause;
    },
    { what: "a response", ...SOON },
  );
  await expect(failed).rejects.toThrow(
    /waited 0\.02 s for a response; the last attempt failed: Error: connection refused/,
  );
  await expect(failed).rejects.toHaveProperty("cause", cause);
});

test("waitFor ends when its signal is aborted", async () => {
  const stop = new AbortController();
  const waiting = waitFor(() => false, { what: "nothing", signal: stop.signal });
  stop.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow(/enough|aborted/);
});
