import { expect, test } from "vitest";
import { waitFor } from "../../wait.ts";

const SOON = { timeoutMs: 20, intervalMs: 1 };

test("returns what it was waiting for, as soon as it is there", async () => {
  const seen = [undefined, null, false, 0];
  expect(await waitFor(() => seen.shift(), { what: "a number", intervalMs: 1 })).toBe(0);
});

test("a look that fails is not yet the end", async () => {
  let looks = 0;
  const look = () => {
    if (++looks < 3) throw new Error("not yet");
    return looks;
  };
  expect(await waitFor(look, { what: "three looks", intervalMs: 1 })).toBe(3);
});

test("after the time it says what it waited for and what it saw last", async () => {
  const seen = waitFor(() => false, { what: "the pod to be ready", ...SOON });
  await expect(seen).rejects.toThrow("waited 0.02 s for the pod to be ready; last seen: false");
});

test("after the time it says how the last look failed", async () => {
  const cause = new Error("connection refused");
  const failed = waitFor(
    () => {
      throw cause;
    },
    { what: "a response", ...SOON },
  );
  await expect(failed).rejects.toThrow(
    /waited 0\.02 s for a response; the last look failed: Error: connection refused/,
  );
  await expect(failed).rejects.toHaveProperty("cause", cause);
});

test("gives up when told to", async () => {
  const stop = new AbortController();
  const waiting = waitFor(() => false, { what: "nothing", signal: stop.signal });
  stop.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow(/enough|aborted/);
});
