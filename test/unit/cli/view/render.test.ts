import { stripVTControlCharacters } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { frame, plainLines } from "../../../../src/cli/view/render.ts";
import type { RescaleView } from "../../../../src/cli/view/rescale-view.ts";
import { labeled } from "../../../../src/cli/view/text.ts";
import { roughly, stopwatch } from "../../../../src/cli/view/time.ts";
import type { PendingPipe } from "../../../../src/crd/pipe-scaling.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { AT, rescaleView } from "../../../support/fixtures/rescale-view.ts";

const NOW = AT + 75_000;
const CANVAS = { columns: 80, paint: (_style: string, text: string) => text };

const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 80 }),
  fc.constantFrom(
    "orders",
    "注文サービス",
    "👩‍💻 pipe",
    "\u001b[31mred\u001b[0m",
    "a\nb\r\tc",
    "x".repeat(300),
    "",
  ),
);
const anySize = fc.option(fc.integer({ min: 1, max: 24 }).map(sizeOfCores), { nil: undefined });
const anyDate = fc.option(
  fc.integer({ min: AT - 1e6, max: AT + 1e6 }).map((ms) => new Date(ms)),
  { nil: undefined },
);
const anyPipe: fc.Arbitrary<PendingPipe> = fc.record({
  name: anyText,
  state: fc.constantFrom("Waiting", "Rolling", "Retrying", "Failed", "Paused", "Unsizable"),
  message: fc.option(anyText, { nil: undefined }),
});
const anyView: fc.Arbitrary<RescaleView> = fc.record({
  service: anyText,
  desired: anySize,
  source: fc.constantFrom(undefined, "Spec", "Boost", "TierDefault", "TierLimit"),
  boost: fc.option(
    fc.record({
      size: fc.integer({ min: 1, max: 24 }).map(sizeOfCores),
      until: anyText,
      leftMs: fc.integer(),
    }),
    { nil: undefined },
  ),
  effective: anySize,
  startedAt: anyDate,
  completedAt: anyDate,
  retryAt: anyDate,
  requestId: fc.option(anyText, { nil: undefined }),
  state: fc.constantFrom("propagating", "scaled", "failed", "suspended", "unknown"),
  reason: anyText,
  message: anyText,
  pending: fc.array(anyPipe, { maxLength: 20 }),
  fallbacks: fc.array(fc.record({ pipe: anyText, reason: anyText, message: anyText }), { maxLength: 20 }),
  pipes: fc.nat(30).chain((total) => fc.record({ total: fc.constant(total), updated: fc.nat(total) })),
});

const CONTROL = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

describe("names and messages from the cluster", () => {
  test("add no control codes to a frame", () => {
    fc.assert(
      fc.property(anyView, fc.integer({ min: 1, max: 150 }), (view, columns) => {
        const lines = frame(view, NOW, { ...CANVAS, columns });
        expect(lines.filter((line) => CONTROL.test(line))).toEqual([]);
      }),
    );
  });

  test("add no control codes to a plain line", () => {
    fc.assert(
      fc.property(anyView, (view) => {
        expect(plainLines(view, NOW).filter((line) => CONTROL.test(line))).toEqual([]);
      }),
    );
  });
});

test("the text after a label is wrapped and indented by the width of the label without its colors", () => {
  const label = "\u001b[1mNEXT\u001b[22m  ";
  expect(labeled(label, "one two three four five six", 26).map(stripVTControlCharacters)).toEqual([
    "NEXT  one two three four",
    "      five six",
  ]);
});

describe("a rescale with pipes that could not be resized in place", () => {
  const fallbacks = [
    { pipe: "pipe-1", reason: "Deferred", message: "no room" },
    { pipe: "pipe-2", reason: "Refused", message: "the quota is exceeded" },
  ];
  const done = rescaleView("Done", "Done", "Rolling");
  const view: RescaleView = { ...done, pipes: { ...done.pipes, inPlace: 1 }, fallbacks };
  const restarted = [
    "pipe-1: not resized in place (Deferred): no room",
    "pipe-2: not resized in place (Refused): the quota is exceeded",
  ];

  test("shows the reason for each of them, also during its rollout, and the number of pipes resized in place", () => {
    const lines = frame(view, NOW, CANVAS);
    expect(lines[1]).toMatch(/2\/3 pipes, 1 in place/);
    expect(lines.slice(2)).toEqual(["  ▸ pipe-2  Rolling", ...restarted.map((line) => `  ↻ ${line}`)]);
    expect(plainLines(view, NOW)).toEqual(expect.arrayContaining(restarted));
  });

  test.each<[PendingPipe["state"], string]>([
    ["Waiting", "· pipe-1  it cannot be resized in place, and its strategy replaces no pod: no room"],
    ["Failed", "✗ pipe-1  Failed: it cannot be resized in place, and its strategy replaces no pod: no room"],
  ])("does not show the reason beside that for which a pipe is %s", (state, line) => {
    const message = "it cannot be resized in place, and its strategy replaces no pod: no room";
    const pending: PendingPipe[] = [{ name: "pipe-1", state, message }];
    const lines = frame({ ...view, pending }, NOW, { ...CANVAS, columns: 120 });
    expect(lines.slice(2)).toEqual([`  ${line}`, `  ↻ ${restarted[1]}`]);
  });
});

describe("a frame", () => {
  test("shows the sizes, the progress, each pending pipe and the message", () => {
    const view: RescaleView = {
      ...rescaleView("Done", "Rolling", "Waiting", "Paused"),
      message: "1 of 4 pipes run 4 cpu / 16 Gi. In progress: pipe-1.",
    };
    const [rolling, waiting, paused] = view.pending;
    if (!rolling || !waiting || !paused) throw new Error("three pipes are pending");
    const pending = [rolling, { ...waiting, message: "waiting for pipe-1 to come up" }, paused];
    expect(frame({ ...view, pending }, NOW, CANVAS)).toEqual([
      "orders  1 cpu / 4 Gi → 4 cpu / 16 Gi",
      "███████░░░░░░░░░░░░░░░░░░░░░░░  1/4 pipes  1:15",
      "  ▸ pipe-1  Rolling",
      "  · pipe-2  Waiting for pipe-1 to come up",
      "  ‖ pipe-3  Paused",
      "1 of 4 pipes run 4 cpu / 16 Gi. In progress: pipe-1.",
    ]);
  });

  test("shows a state that only a later version of the controller knows", () => {
    const view: RescaleView = JSON.parse(
      JSON.stringify({
        ...rescaleView(),
        pending: [{ name: "pipe-1", state: "Draining", message: "no lag" }],
      }),
    );
    expect(frame(view, NOW, CANVAS)).toContain("  · pipe-1  Draining: no lag");
  });

  test("shows the cause and the time of the next attempt after a failure", () => {
    const failed: RescaleView = {
      ...rescaleView("Done", "Failed"),
      state: "failed",
      reason: "Refused",
      message: "pipe-1 cannot get 4 cpu / 16 Gi: exceeded quota.",
      retryAt: new Date(NOW + 4 * 60_000),
      pending: [{ name: "pipe-1", state: "Failed", message: "exceeded quota" }],
    };
    expect(frame(failed, NOW, CANVAS).slice(2)).toEqual([
      "  ✗ pipe-1  Failed: exceeded quota",
      "pipe-1 cannot get 4 cpu / 16 Gi: exceeded quota.",
      "The next attempt is in 4 min.",
    ]);
  });

  test("shows the duration of a completed rescale", () => {
    const view: RescaleView = {
      ...rescaleView("Done", "Done"),
      state: "scaled",
      source: "TierDefault",
      effective: sizeOfCores(4),
      completedAt: new Date(AT + 130_000),
      message: "All 2 pipes run 4 cpu / 16 Gi.",
    };
    expect(frame(view, AT + 9e9, CANVAS)).toEqual([
      "orders  4 cpu / 16 Gi (default of the tier)",
      `${"█".repeat(30)}  2/2 pipes  2:10`,
      "All 2 pipes run 4 cpu / 16 Gi.",
    ]);
  });
});

describe("plain lines", () => {
  test("show the sizes with the request, each pending pipe, and the state with the pipe count", () => {
    const view = { ...rescaleView("Done", "Rolling", "Waiting"), requestId: "r-1", message: "Some." };
    expect(plainLines(view, NOW)).toEqual([
      "orders: 1 cpu / 4 Gi → 4 cpu / 16 Gi (request r-1)",
      "pipe-1: Rolling",
      "pipe-2: Waiting",
      "propagating, 1/3 pipes: Progressing: Some.",
    ]);
  });

  test("show the duration of a completed rescale", () => {
    const completedAt = new Date(AT + 130_000);
    const view: RescaleView = { ...rescaleView("Done"), state: "scaled", reason: "Scaled", completedAt };
    expect(plainLines(view, NOW).at(-1)).toBe("scaled after 2:10, 1/1 pipe: Scaled");
  });
});

test("durations are printed in the largest suitable units", () => {
  expect([0, 7000, 754_000, 3_723_000, -5].map(stopwatch)).toEqual([
    "0:00",
    "0:07",
    "12:34",
    "1:02:03",
    "0:00",
  ]);
  expect([500, 90_000, 180_000, 7_200_000, 8e8].map(roughly)).toEqual(["1 s", "90 s", "3 min", "2 h", "9 d"]);
});
