import { stripVTControlCharacters } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bar } from "../../src/cli/view/bar.ts";
import { estimatedMsLeft } from "../../src/cli/view/estimate.ts";
import { fitted } from "../../src/cli/view/fit.ts";
import { frame } from "../../src/cli/view/frame.ts";
import { newsOf } from "../../src/cli/view/news.ts";
import type { PipeLine, RescaleView } from "../../src/cli/view/rescale-view.ts";
import { widthOf } from "../../src/cli/view/text.ts";
import { roughly, stopwatch } from "../../src/cli/view/time.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import { AT, rescaleView } from "../gen/rescale-view.ts";

const NOW = AT + 75_000;
const CANVAS = { columns: 80, rows: 24, colors: false };

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
const anyLine: fc.Arbitrary<PipeLine> = fc.record({
  name: anyText,
  from: anySize,
  to: anySize,
  state: fc.constantFrom("waiting", "rolling", "done", "failed", "paused"),
  progress: fc.option(fc.record({ updated: fc.nat(9), of: fc.nat(9) }), { nil: undefined }),
  why: fc.option(anyText, { nil: undefined }),
});
const anyView: fc.Arbitrary<RescaleView> = fc
  .record({
    service: anyText,
    wanted: anySize,
    from: fc.constantFrom(undefined, "Spec", "TierDefault", "TierLimit"),
    effective: anySize,
    startedAt: anyDate,
    completedAt: anyDate,
    progressedAt: anyDate,
    retryAt: anyDate,
    requestId: fc.option(anyText, { nil: undefined }),
    state: fc.constantFrom("propagating", "scaled", "failed", "suspended", "unknown"),
    reason: anyText,
    message: anyText,
    lines: fc.array(anyLine, { maxLength: 40 }),
    hidden: fc.nat(3),
  })
  .map(({ hidden, ...view }) => ({
    ...view,
    pipes: {
      total: view.lines.length + hidden,
      updated: view.lines.filter(({ state }) => state === "done").length,
    },
  }));
const anyCanvas = fc.record({
  columns: fc.integer({ min: 1, max: 150 }),
  rows: fc.integer({ min: 1, max: 60 }),
  colors: fc.boolean(),
});

function isPlain(text: string): boolean {
  return !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(text);
}

describe("whatever the view, the terminal and the names that others gave", () => {
  test("no line of a frame is wider than the terminal", () => {
    fc.assert(
      fc.property(anyView, anyCanvas, (view, canvas) => {
        for (const line of frame(view, NOW, canvas)) {
          expect(widthOf(stripVTControlCharacters(line))).toBeLessThanOrEqual(canvas.columns);
        }
      }),
    );
  });

  test("a frame has no more lines than there is room for, unless that is less than its head and its message", () => {
    fc.assert(
      fc.property(anyView, anyCanvas, (view, canvas) => {
        expect(frame(view, NOW, canvas).length).toBeLessThanOrEqual(Math.max(canvas.rows, 6));
      }),
    );
  });

  test("without colours no line has a control code, and with them none but those of colours", () => {
    fc.assert(
      fc.property(anyView, anyCanvas, (view, canvas) => {
        const lines = frame(view, NOW, canvas);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what is looked for
        const bare = canvas.colors ? lines.map((line) => line.replace(/\u001b\[\d+m/g, "")) : lines;
        expect(bare.filter((line) => !isPlain(line))).toEqual([]);
      }),
    );
  });

  test("no plain line has a control code", () => {
    fc.assert(
      fc.property(fc.option(anyView, { nil: undefined }), anyView, (before, after) => {
        expect(newsOf(before, after, NOW).filter((line) => !isPlain(line))).toEqual([]);
      }),
    );
  });

  test("the same view again is no news", () => {
    fc.assert(
      fc.property(anyView, (view) => {
        const named = { ...view, lines: view.lines.map((line, at) => ({ ...line, name: `pipe-${at}` })) };
        expect(newsOf(named, { ...named }, NOW)).toEqual([]);
      }),
    );
  });
});

describe("the bar", () => {
  const anyShare = fc.double({ min: 0, max: 1, noNaN: true });
  const anyWidth = fc.integer({ min: 1, max: 60 });

  test("is as wide as it is to be, and never shorter for more", () => {
    fc.assert(
      fc.property(anyShare, anyShare, anyWidth, (a, b, columns) => {
        const [less, more] = [bar(Math.min(a, b), columns), bar(Math.max(a, b), columns)];
        expect(less.full.length).toBeLessThanOrEqual(more.full.length);
        expect(less.full.length + less.empty.length).toBe(columns);
      }),
    );
  });

  test("is full only for all", () => {
    fc.assert(
      fc.property(anyShare, anyWidth, (share, columns) => {
        expect(bar(share, columns).empty === "").toBe(share === 1);
      }),
    );
  });
});

describe("pipes in so many rows", () => {
  const isPipe = (row: object): row is PipeLine => "name" in row;

  test("each is shown or counted, where there is a row for each state", () => {
    fc.assert(
      fc.property(fc.array(anyLine, { maxLength: 60 }), fc.integer({ min: 5, max: 40 }), (lines, rows) => {
        const shown = fitted(lines, rows);
        expect(shown.length).toBeLessThanOrEqual(rows);
        expect(shown.reduce((sum, row) => sum + (isPipe(row) ? 1 : row.pipes), 0)).toBe(lines.length);
      }),
    );
  });

  test("all are shown where there is room for all", () => {
    const { lines } = rescaleView("done", "failed", "rolling", "waiting", "paused");
    expect(fitted(lines, 5)).toEqual(lines);
  });

  test("first those that are done are summed up, then those that wait; a failed one is shown as long as can be", () => {
    const { lines } = rescaleView("done", "done", "failed", "waiting", "waiting", "rolling", "rolling");
    const shown = (rows: number) =>
      fitted(lines, rows).map((row) => (isPipe(row) ? row.name : `${row.pipes} ${row.state}`));
    expect(shown(6)).toEqual(["pipe-2", "pipe-3", "pipe-4", "pipe-5", "pipe-6", "2 done"]);
    expect(shown(5)).toEqual(["pipe-2", "pipe-5", "pipe-6", "2 waiting", "2 done"]);
    expect(shown(4)).toEqual(["pipe-2", "2 rolling", "2 waiting", "2 done"]);
    expect(shown(1)).toEqual(["pipe-2"]);
  });
});

describe("a frame", () => {
  test("says what is wanted, how far it is, and of each pipe how it is", () => {
    const view: RescaleView = {
      ...rescaleView("done", "rolling", "waiting", "paused"),
      progressedAt: new Date(AT + 60_000),
      message: "1 of 4 pipes run 4 cpu / 16 Gi. Rolling: pipe-1.",
    };
    expect(frame(view, NOW, CANVAS)).toEqual([
      "orders  1 cpu / 4 Gi → 4 cpu / 16 Gi",
      "███████████░░░░░░░░░░░░░░░░░░░  1/4 pipes  1:15, less than 1 min left",
      "  ✓ pipe-0  1 cpu / 4 Gi → 4 cpu / 16 Gi  done",
      "  ▸ pipe-1  1 cpu / 4 Gi → 4 cpu / 16 Gi  rolling 1/2",
      "  · pipe-2  1 cpu / 4 Gi → 4 cpu / 16 Gi  waiting",
      "  ‖ pipe-3  1 cpu / 4 Gi → 4 cpu / 16 Gi  paused by its owner",
    ]);
  });

  test("of a failure says why, and when it is tried again", () => {
    const { lines, ...view } = rescaleView("done", "failed");
    const failed: RescaleView = {
      ...view,
      state: "failed",
      reason: "Refused",
      message: "pipe-1 could not be given 4 cpu / 16 Gi: exceeded quota.",
      retryAt: new Date(NOW + 4 * 60_000),
      lines: lines.map((line) => (line.state === "failed" ? { ...line, why: "exceeded quota" } : line)),
    };
    expect(frame(failed, NOW, CANVAS).slice(2)).toEqual([
      "  ✓ pipe-0  1 cpu / 4 Gi → 4 cpu / 16 Gi  done",
      "  ✗ pipe-1  1 cpu / 4 Gi → 4 cpu / 16 Gi  failed: exceeded quota",
      "pipe-1 could not be given 4 cpu / 16 Gi: exceeded quota.",
      "It is tried again by itself in 4 min.",
    ]);
  });

  test("on a narrow terminal leaves out the sizes of the pipes, and cuts off what is too long", () => {
    expect(frame(rescaleView("done", "rolling"), NOW, { ...CANVAS, columns: 32 })).toEqual([
      "orders  1 cpu / 4 Gi → 4 cpu / …",
      "███████████░░░░  1/2 pipes  1:15",
      "  ✓ pipe-0  done",
      "  ▸ pipe-1  rolling 1/2",
    ]);
  });

  test("of a service whose pipes are not known by name says what the message says", () => {
    const view: RescaleView = { ...rescaleView("done", "waiting"), lines: [], message: "Rolling: pipe-1." };
    expect(frame(view, NOW, CANVAS).slice(2)).toEqual(["Rolling: pipe-1."]);
  });

  test("of what is scaled tells how long it took, whenever that was", () => {
    const view: RescaleView = {
      ...rescaleView("done", "done"),
      state: "scaled",
      effective: sizeOfCores(4),
      completedAt: new Date(AT + 130_000),
      message: "All 2 pipes run 4 cpu / 16 Gi.",
    };
    expect(frame(view, AT + 9e9, CANVAS).slice(0, 2)).toEqual([
      "orders  4 cpu / 16 Gi",
      `${"█".repeat(30)}  2/2 pipes  2:10`,
    ]);
  });
});

describe("the estimate", () => {
  const withProgress = (progressedMs: number, ...states: PipeLine["state"][]): RescaleView => ({
    ...rescaleView(...states),
    progressedAt: new Date(AT + progressedMs),
  });

  test("is none before a pipe has come up in this rescale", () => {
    expect(estimatedMsLeft(rescaleView("rolling", "waiting"), NOW)).toBeUndefined();
    expect(estimatedMsLeft(withProgress(-1000, "done", "waiting"), NOW)).toBeUndefined();
  });

  test("takes what the first one took for each of the rounds that the policy needs", () => {
    // One pipe, then three at once: two rounds of a minute.
    const view = withProgress(60_000, "done", "rolling", "rolling", "rolling");
    expect(estimatedMsLeft(view, AT + 60_000)).toBe(60_000);
    expect(estimatedMsLeft(view, AT + 90_000)).toBe(30_000);
  });

  test("is none once it has turned out wrong", () => {
    expect(estimatedMsLeft(withProgress(60_000, "done", "rolling"), AT + 600_000)).toBeUndefined();
  });

  test("does not count pipes that had the size before", () => {
    const { lines, ...view } = withProgress(60_000, "done", "done", "rolling", "rolling", "rolling");
    const before = lines.map((line, at) => (at === 0 ? { ...line, from: line.to } : line));
    expect(estimatedMsLeft({ ...view, lines: before }, AT + 60_000)).toBe(60_000);
  });
});

describe("plain lines", () => {
  test("tell the beginning, each step of each pipe, the count, and the outcome", () => {
    const begun = rescaleView("waiting", "waiting");
    const rolling = rescaleView("rolling", "waiting");
    const half = rescaleView("done", "rolling");
    const scaled: RescaleView = {
      ...rescaleView("done", "done"),
      state: "scaled",
      completedAt: new Date(AT + 130_000),
      reason: "Scaled",
      message: "All 2 pipes run 4 cpu / 16 Gi.",
    };
    const told = [undefined, begun, rolling, half, scaled];
    expect(told.slice(1).flatMap((view, at) => (view ? newsOf(told[at], view, NOW) : []))).toEqual([
      "orders: 1 cpu / 4 Gi → 4 cpu / 16 Gi",
      "pipe-0: waiting",
      "pipe-1: waiting",
      "0 of 2 pipes run 4 cpu / 16 Gi",
      "pipe-0: rolling, 1 cpu / 4 Gi → 4 cpu / 16 Gi",
      "pipe-0: done",
      "pipe-1: rolling, 1 cpu / 4 Gi → 4 cpu / 16 Gi",
      "1 of 2 pipes run 4 cpu / 16 Gi",
      "pipe-1: done",
      "2 of 2 pipes run 4 cpu / 16 Gi",
      "scaled after 2:10: Scaled: All 2 pipes run 4 cpu / 16 Gi.",
    ]);
  });

  test("tell another size that is wanted meanwhile, with the request that asked for it", () => {
    const before = rescaleView("rolling", "waiting");
    const after = { ...before, wanted: sizeOfCores(8), requestId: "r-2" };
    expect(newsOf(before, after, NOW)).toEqual(["orders: 1 cpu / 4 Gi → 8 cpu / 32 Gi (request r-2)"]);
  });
});

test("times are told as people tell them", () => {
  expect([0, 7000, 754_000, 3_723_000, -5].map(stopwatch)).toEqual([
    "0:00",
    "0:07",
    "12:34",
    "1:02:03",
    "0:00",
  ]);
  expect([500, 90_000, 180_000, 7_200_000, 8e8].map(roughly)).toEqual(["1 s", "90 s", "3 min", "2 h", "9 d"]);
});
