import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";

test("leaves a temporary file", () => {
  mkdtempSync(join(tmpdir(), "temporary-"));
});
