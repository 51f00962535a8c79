import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";

test("leaves a temporary file and does not end", async () => {
  mkdtempSync(join(tmpdir(), "waiting-"));
  await new Promise(() => undefined);
});
