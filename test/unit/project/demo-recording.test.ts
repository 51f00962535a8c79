import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

const PICTURE = new URL("../../../docs/demo.svg", import.meta.url);

it("docs/demo.svg is a small image of the whole demo, without scripts or external resources", () => {
  const svg = readFileSync(PICTURE, "utf8");
  expect(svg.length).toBeLessThan(100_000);
  expect(svg).not.toMatch(/<script|href|url\(|@import|\son\w+=/);
  expect(svg).toContain("All steps succeeded.");
  expect(svg).not.toContain("✗");
});
