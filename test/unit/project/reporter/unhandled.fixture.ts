import { test } from "vitest";

test("passes, but leaves an unhandled rejection", () => {
  void Promise.reject(new Error("an unhandled rejection"));
});
