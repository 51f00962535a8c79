import { test } from "vitest";

test("passes, but leaves a rejection behind", () => {
  void Promise.reject(new Error("an unhandled rejection"));
});
