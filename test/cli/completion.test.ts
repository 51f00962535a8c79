import { describe, expect, it } from "vitest";
import { run, WAYS } from "./run-command.ts";

describe.each(WAYS)("%s", (way) => {
  it.each(["bash", "zsh", "fish"])("completion %s prints a script", async (shell) => {
    const { code, text } = await run(way, ["completion", shell], {});
    expect(code).toBe(0);
    expect(text).toContain("scaling");
  });
});
