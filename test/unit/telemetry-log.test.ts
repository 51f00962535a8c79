import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createLogger } from "../../src/telemetry/log.ts";
import { LogDestination } from "../../src/telemetry/log-destination.ts";

/** A file of a test's own: what was written, how often, and what it answers. */
class FakeFile {
  writes = 0;
  text = "";
  /** Takes no more than so many bytes, as a pipe that is nearly full. */
  room = Number.POSITIVE_INFINITY;
  /** What a write fails with. */
  code: string | undefined;

  readonly write = (_fd: number, bytes: Buffer): number => {
    this.writes += 1;
    const code = this.code ?? (this.room === 0 ? "EAGAIN" : undefined);
    if (code !== undefined) throw Object.assign(new Error(code), { code });
    const taken = bytes.subarray(0, this.room);
    this.room -= taken.length;
    this.text += taken.toString("latin1");
    return taken.length;
  };
}

const onDropped = vi.fn();
let file: FakeFile;
let destination: LogDestination;

beforeEach(() => {
  vi.useFakeTimers();
  onDropped.mockReset();
  file = new FakeFile();
  destination = new LogDestination({ fd: 1, write: file.write, onDropped });
});

afterEach(() => {
  vi.useRealTimers();
});

describe("where log lines go", () => {
  test("they are written some at a time", () => {
    for (let line = 0; line < 400; line += 1) destination.write(`${"x".repeat(99)}\n`);
    expect(file.writes).toBe(1);
    expect(file.text).toHaveLength(32_800);
  });

  test("a few wait a quarter of a second", () => {
    destination.write("a\n");
    vi.advanceTimersByTime(249);
    expect(file.text).toBe("");
    destination.write("b\n");
    vi.advanceTimersByTime(1);
    expect(file.text).toBe("a\nb\n");
    destination.write("c\n");
    vi.advanceTimersByTime(250);
    expect(file.text).toBe("a\nb\nc\n");
  });

  test("nothing runs while there is nothing to write", () => {
    destination.write("a\n");
    vi.advanceTimersByTime(250);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("what a full pipe does not take follows later, whole and in order", () => {
    file.room = 3;
    destination.write("one\n");
    destination.flushSync();
    destination.write("two\n");
    expect(file.text).toBe("one");
    file.room = Number.POSITIVE_INFINITY;
    vi.advanceTimersByTime(250);
    expect(file.text).toBe("one\ntwo\n");
  });

  test("a full disk is tried again", () => {
    file.code = "ENOSPC";
    destination.write("a\n");
    vi.advanceTimersByTime(1000);
    expect(file.writes).toBeGreaterThan(4);
    file.code = undefined;
    vi.advanceTimersByTime(250);
    expect(file.text).toBe("a\n");
  });

  test("what waits is bounded, and what is dropped is told once it can be", () => {
    file.room = 0;
    const line = `${"x".repeat(1023)}\n`;
    for (let count = 0; count < 1500; count += 1) destination.write(line);
    vi.advanceTimersByTime(250);
    expect(onDropped).not.toHaveBeenCalled();
    file.room = Number.POSITIVE_INFINITY;
    vi.advanceTimersByTime(250);
    expect(file.text).toHaveLength(1_048_576);
    expect(onDropped.mock.calls).toEqual([[1500 - 1024]]);
  });

  test("a pipe without a reader is not tried again", () => {
    file.code = "EPIPE";
    destination.write("a\n");
    destination.flushSync();
    destination.write("b\n");
    destination.end();
    expect(file.writes).toBe(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("what a line never shows", () => {
  const lines: string[] = [];
  const log = createLogger("info", "test", { write: (line) => lines.push(line) });

  test.each([
    { authorization: "hunter2" },
    { Authorization: "hunter2" },
    { secret: "hunter2" },
    { keyId: "hunter2" },
    { keySecret: "hunter2" },
    { headers: { authorization: "hunter2" } },
    { request: { headers: { authorization: "hunter2" } } },
    { req: { rawHeaders: ["Authorization", "hunter2"] } },
    { err: Object.assign(new Error("it failed"), { request: { authorization: "hunter2" } }) },
    { err: new Error("invalid header Authorization: Basic hunter2") },
    { err: new Error("it failed", { cause: new Error("token Bearer hunter2 is no longer valid") }) },
    { err: "refused: Basic hunter2" },
  ])("%j", (fields) => {
    lines.length = 0;
    log.info(fields, "something happened");
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain("hunter2");
    expect(lines[0]).toContain("something happened");
  });
});

test("every line has its own time, in UTC, also several of one millisecond", () => {
  const lines: string[] = [];
  const log = createLogger("info", "api", { write: (line) => lines.push(line) });
  const times = ["2026-03-01T10:00:00.000Z", "2026-03-01T10:00:00.000Z", "2026-03-01T10:00:00.001Z"];
  for (const time of times) {
    vi.setSystemTime(time);
    log.info("request");
  }
  expect(lines.map((line) => JSON.parse(line).time)).toEqual(times);
});
