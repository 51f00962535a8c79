import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EXIT_DONE, EXIT_TIMEOUT, EXIT_UNHEALTHY } from "../../src/cli/exit-codes.ts";
import { follow, type News } from "../../src/cli/view/follow.ts";
import { frame } from "../../src/cli/view/frame.ts";
import { LiveView } from "../../src/cli/view/live-view.ts";
import type { PipeLineState, RescaleView } from "../../src/cli/view/rescale-view.ts";
import { Screen } from "../cli/screen.ts";
import { settled, VirtualClock } from "../gen/clock.ts";
import { recordedIo } from "../gen/io.ts";
import { rescaleView } from "../gen/rescale-view.ts";

const COLUMNS = 60;
const ROWS = 12;

function liveView(rows = ROWS) {
  const clock = new VirtualClock();
  const drawn: string[] = [];
  const terminal = {
    out: (text: string) => void drawn.push(text),
    columns: () => COLUMNS,
    rows: () => rows,
    colors: true,
  };
  const view = new LiveView(terminal, clock);
  return { clock, drawn, view, screen: () => screenOf(drawn.join("")) };
}

/** A terminal's driver makes a carriage return of a line's end too. */
function screenOf(output: string): Screen {
  return Screen.of(output.replaceAll("\n", "\r\n"), COLUMNS);
}

const scaled: RescaleView = { ...rescaleView("done", "done"), state: "scaled", message: "All 2 pipes run." };

describe("on a terminal", () => {
  const anyViews = fc.array(
    fc.array(fc.constantFrom<PipeLineState>("waiting", "rolling", "done", "failed"), { maxLength: 20 }),
    { minLength: 1, maxLength: 8 },
  );

  test("whatever was drawn before, at the end the last frame stands there and nothing else", async () => {
    await fc.assert(
      fc.asyncProperty(anyViews, fc.integer({ min: 8, max: 30 }), async (views, rows) => {
        const { clock, view, screen } = liveView(rows);
        for (const states of views) {
          view.show(rescaleView(...states));
          await clock.advance(130);
        }
        view.end();
        const last = rescaleView(...(views.at(-1) ?? []));
        const canvas = { columns: COLUMNS, rows: rows - 1, colors: false };
        expect(screen().lines).toEqual(frame(last, clock.now(), canvas));
        expect(screen()).toMatchObject({ isCursorShown: true, isWrapping: true });
      }),
    );
  });

  test("the cursor is hidden while it draws, and at no other time", async () => {
    const { clock, drawn, view } = liveView();
    view.show(rescaleView("rolling"));
    await clock.advance(2500);
    view.trouble("The connection was lost; trying again.");
    view.end();
    expect(drawn.length).toBeGreaterThan(3);
    const isWhole = (each: string) => each.startsWith("\u001b[?25l") && each.endsWith("\u001b[?25h");
    expect(drawn.filter((each) => !isWhole(each))).toEqual([]);
  });

  test("a thousand changes a second are ten frames, and the newest is drawn", async () => {
    const { clock, drawn, view, screen } = liveView();
    for (let step = 0; step < 1000; step++) {
      view.show(rescaleView(step % 2 === 0 ? "rolling" : "waiting"));
      await clock.advance(1);
    }
    view.show(rescaleView("failed"));
    await clock.advance(100);
    expect(drawn.length).toBeLessThanOrEqual(13);
    expect(screen().text).toContain("✗ pipe-0");
  });

  test("time goes on where nothing else does", async () => {
    const { clock, view, screen } = liveView();
    view.show({ ...rescaleView("rolling"), startedAt: new Date(clock.now()) });
    expect(screen().text).toContain("0/1 pipe  0:00");
    await clock.advance(5000);
    expect(screen().text).toContain("0/1 pipe  0:05");
  });

  test("trouble stands below until there is news", async () => {
    const { clock, view, screen } = liveView();
    view.show(rescaleView("rolling"));
    view.trouble("The connection was lost; trying again.");
    await clock.advance(100);
    expect(screen().lines.at(-1)).toBe("The connection was lost; trying again.");
    view.show(rescaleView("rolling"));
    await clock.advance(100);
    expect(screen().text).not.toContain("connection");
  });
});

async function* telling(...news: readonly News[]): AsyncGenerator<News> {
  yield* news;
  await new Promise(() => undefined);
}

describe("following", () => {
  test.each<[RescaleView["state"], number]>([
    ["scaled", EXIT_DONE],
    ["failed", EXIT_UNHEALTHY],
    ["suspended", EXIT_UNHEALTHY],
  ])("ends once it is %s", async (state, exitCode) => {
    const source = telling({ view: rescaleView("rolling") }, { view: { ...scaled, state } });
    expect(await follow(recordedIo(), source)).toBe(exitCode);
  });

  test("ends when its time is up, which it says", async () => {
    const io = recordedIo();
    const source = telling({ view: rescaleView("rolling") });
    expect(await follow(io, source, { timeoutMs: 5 })).toBe(EXIT_TIMEOUT);
    expect(io.written.err).toBe("The watch ended after 0 s, before the outcome; what was begun goes on.\n");
  });

  test("is interrupted, and leaves the terminal as it was", async () => {
    const stop = new AbortController();
    const io = recordedIo({ output: true, signal: stop.signal });
    const ended = follow(io, telling({ view: rescaleView("rolling") }));
    stop.abort(new Error("Ctrl-C"));
    await expect(ended).rejects.toThrow("Ctrl-C");
    expect(screenOf(io.written.out).isCursorShown).toBe(true);
  });

  test("tells nothing after its end", async () => {
    const late = Promise.withResolvers<void>();
    const io = recordedIo();
    async function* source(): AsyncGenerator<News> {
      yield { view: rescaleView("rolling") };
      await late.promise;
      yield { view: scaled };
    }
    await follow(io, source(), { timeoutMs: 1 });
    const { out } = io.written;
    late.resolve();
    await settled();
    expect(io.written.out).toBe(out);
  });

  test("passes on what ends the source, with the cursor shown again", async () => {
    const io = recordedIo({ output: true });
    async function* source(): AsyncGenerator<News> {
      yield { view: rescaleView("rolling") };
      throw new Error("The service is gone.");
    }
    await expect(follow(io, source())).rejects.toThrow("The service is gone.");
    expect(screenOf(io.written.out).isCursorShown).toBe(true);
  });

  test("in a pipe tells trouble once, and that it is over", async () => {
    const io = recordedIo();
    const rolling = { view: rescaleView("rolling") };
    const source = telling(rolling, { trouble: "Lost." }, { trouble: "Lost." }, rolling, { view: scaled });
    await follow(io, source, { clock: new VirtualClock() });
    expect(io.written.out.split("\n").slice(2)).toEqual([
      "0:00  0 of 1 pipes run 4 cpu / 16 Gi",
      "0:00  Lost.",
      "0:00  connected again",
      "0:00  pipe-0: done",
      "0:00  2 of 2 pipes run 4 cpu / 16 Gi",
      "0:00  scaled: Progressing: All 2 pipes run.",
      "",
    ]);
  });
});
