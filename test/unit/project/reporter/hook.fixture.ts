import { afterAll, describe, test } from "vitest";

describe("a suite whose hook fails", () => {
  afterAll(() => {
    throw new Error("the hook failed");
  });
  test("passes", () => undefined);
});
