import { beforeEach, describe, expect, test, vi } from "vitest";
import { terminalProgress } from "../../progress.ts";

beforeEach(() => {
  vi.useFakeTimers();
  return () => vi.useRealTimers();
});

function output(isTTY: boolean) {
  const written: string[] = [];
  return { written, progress: terminalProgress({ isTTY, write: (text) => written.push(text) }) };
}

describe("in a log", () => {
  test("a short step is not shown", () => {
    const { written, progress } = output(false);
    const step = progress.step("Fetching");
    vi.advanceTimersByTime(1_900);
    step.end();
    vi.advanceTimersByTime(60_000);
    expect(written).toEqual([]);
  });

  test("a long step has a line with its progress and its time every 15 seconds", () => {
    const { written, progress } = output(false);
    const step = progress.step("Fetching");
    vi.advanceTimersByTime(2_000);
    step.update("3 of 8");
    vi.advanceTimersByTime(30_000);
    step.update("8 of 8");
    vi.advanceTimersByTime(40_000);
    step.end();
    expect(written).toEqual([
      "Fetching (2 s)\n",
      "Fetching: 3 of 8 (17 s)\n",
      "Fetching: 3 of 8 (32 s)\n",
      "Fetching: 8 of 8 (47 s)\n",
      "Fetching: 8 of 8 (1 min 2 s)\n",
      "Fetching: 8 of 8 (1 min 12 s)\n",
    ]);
  });
});

test("on a terminal, one line is rewritten, and stays at the end", () => {
  const { written, progress } = output(true);
  const step = progress.step("Fetching");
  vi.advanceTimersByTime(2_500);
  step.update("8 of 8");
  step.end();
  progress.note("Next");
  expect(written).toEqual([
    "\r\x1b[2KFetching (2 s)",
    "\r\x1b[2KFetching (2 s)",
    "\r\x1b[2KFetching: 8 of 8 (2 s)\n",
    "Next\n",
  ]);
});
