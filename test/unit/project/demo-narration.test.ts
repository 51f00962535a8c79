import { PassThrough } from "node:stream";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Narration } from "../../e2e/demo/narration.ts";

function narrated(terminal: { isTTY?: boolean; columns?: number }) {
  const out = Object.assign(new PassThrough(), terminal);
  return { narration: new Narration(out), text: () => String(out.read() ?? "").replace(/\d+\.\d s/g, "T") };
}

const step = (narration: Narration) =>
  narration.step("doing it", async () => ({ outcome: "It is done", details: ["so\nmuch"], result: 1 }));

describe("the demo's narration", () => {
  // The environment of the test run may disable colors.
  beforeEach(() => {
    for (const name of ["NO_COLOR", "FORCE_COLOR", "NODE_DISABLE_COLORS"]) vi.stubEnv(name, undefined);
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
  });

  test("prints one plain line per event outside of a terminal", async () => {
    const { narration, text } = narrated({});
    narration.underWay("not shown");
    expect(await step(narration)).toBe(1);
    narration.seen("half of it", ["and more"]);
    expect(text()).toBe(
      "   T  ✓ It is done\n             so\n             much\n   T  · half of it\n             and more\n",
    );
  });

  test("reports a failed step, and rethrows its error", async () => {
    const { narration, text } = narrated({});
    const failing = narration.step("doing it", () => Promise.reject(new Error("no")));
    await expect(failing).rejects.toThrow("no");
    expect(text()).toBe("   T  ✗ doing it\n");
  });

  test("rewrites one colored line on a terminal, cut to its width", async () => {
    const { narration, text } = narrated({ isTTY: true, columns: 20 });
    narration.underWay("a text that is too long");
    const shown = text();
    expect(shown.startsWith("\r\x1b[2K\x1b[2m")).toBe(true);
    expect(shown).toContain("   T  … a text ");
    expect(shown).not.toContain("too long");
    await step(narration);
    expect(text()).toContain("\x1b[32m✓\x1b[39m It is done\n");
  });
});
