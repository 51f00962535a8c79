import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { recording } from "../../e2e/demo/recording.ts";

const PICTURE = new URL("../../../docs/demo.svg", import.meta.url);

const lines = [
  { text: "A title", atMs: 1000 },
  { text: "   2.0 s  ✓ a < b & c", atMs: 2000 },
  { text: "             a detail", atMs: 2000 },
  { text: "   4.0 s  · the end", atMs: 4000 },
];

it("a recording shows each line at its time, and pauses at the end", () => {
  const svg = recording("Title", lines);
  const [, uncovered = ""] = /@keyframes uncover \{(.*)\}/.exec(svg) ?? [];
  expect(uncovered.match(/\S+% \{ transform: \S+;/g)).toEqual([
    "0% { transform: none;",
    "10.00% { transform: translateY(18px);",
    "20.00% { transform: translateY(36px);",
    "20.00% { transform: translateY(54px);",
    "40.00% { transform: translateY(72px);",
  ]);
  expect(svg).toContain("uncover 10000ms step-end infinite");
});

it("a recording shows the lines unchanged and in their colors", () => {
  const svg = recording("Title", lines);
  expect(svg).toContain('<tspan class="title">A title</tspan>');
  expect(svg).toContain('<tspan class="good">✓</tspan> a &lt; b &amp; c</text>');
  expect(svg).toContain('<tspan class="dim">             a detail</tspan>');
  expect(svg).toContain('<tspan class="seen">·</tspan> the end');
});

it("a recording that is longer than the window scrolls to the newest line", () => {
  const many = Array.from({ length: 40 }, (_, at) => ({ text: `line ${at}`, atMs: at * 100 }));
  const [, scrolled = ""] = /@keyframes scroll \{(.*)\}/.exec(recording("Title", many)) ?? [];
  const offsets = [...scrolled.matchAll(/translateY\((-?\d+)px\)/g)].map(([, offset]) => Number(offset));
  expect(offsets.slice(0, 30).every((offset) => offset === 0)).toBe(true);
  expect(offsets.slice(30)).toEqual(Array.from({ length: 10 }, (_, at) => -18 * (at + 1)));
});

it("docs/demo.svg is a small image of the whole demo, without scripts or external resources", () => {
  const svg = readFileSync(PICTURE, "utf8");
  expect(svg.length).toBeLessThan(100_000);
  expect(svg).not.toMatch(/<script|href|url\(|@import|\son\w+=/);
  expect(svg).toContain("All steps succeeded.");
  expect(svg).not.toContain("✗");
});
