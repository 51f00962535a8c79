import { expect, test } from "vitest";

test("passes", () => undefined);
test("passes, too", () => undefined);
test("fails", () => expect(1).toBe(2));
test.runIf(false)("is skipped", () => undefined);
