import { afterAll, describe, test } from "vitest";

describe("a suite whose hook fails", () => {
  afterAll(() => {
    throw new Error("no luck");
  });
  test("passes", () => undefined);
});
