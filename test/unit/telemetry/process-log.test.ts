import fs from "node:fs";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createLogDestination, type LogDestination } from "../../../src/telemetry/process-log.ts";

const FD = 1_000_001;

/** A file with a limited capacity, or one that fails every write. */
class FakeFile {
  writes = 0;
  bytes = Buffer.alloc(0);
  /** Remaining capacity in bytes, as in a nearly full pipe. */
  room = Number.POSITIVE_INFINITY;
  /** If set, every write fails with this code. */
  code: string | undefined;

  readonly write = (bytes: Uint8Array): number => {
    this.writes += 1;
    const code = this.code ?? (this.room === 0 && bytes.length > 0 ? "EAGAIN" : undefined);
    if (code !== undefined) throw Object.assign(new Error(code), { code });
    const taken = bytes.subarray(0, this.room);
    this.room -= taken.length;
    this.bytes = Buffer.concat([this.bytes, taken]);
    return taken.length;
  };

  get text(): string {
    return this.bytes.toString();
  }
}

const onDropped = vi.fn();
let file: FakeFile;
let destination: LogDestination;

beforeEach(() => {
  vi.useFakeTimers();
  file = new FakeFile();
  const { writeSync } = fs;
  vi.spyOn(fs, "writeSync").mockImplementation((...args: unknown[]) => {
    const [fd, bytes] = args;
    if (fd === FD && bytes instanceof Uint8Array) return file.write(bytes);
    return Reflect.apply(writeSync, fs, args);
  });
  destination = createLogDestination(FD, onDropped);
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  onDropped.mockReset();
});

describe("the log destination", () => {
  test("writes lines in batches", () => {
    for (let line = 0; line < 400; line += 1) destination.write(`${"x".repeat(99)}\n`);
    expect(file.writes).toBe(1);
    expect(file.text).toHaveLength(32_800);
  });

  test("writes an incomplete batch after a quarter of a second", () => {
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

  test("writes everything immediately when pino requests it after a fatal line", () => {
    for (let line = 0; line < 400; line += 1) destination.write(`${"x".repeat(99)}\n`);
    destination.write("a fatal line\n");
    destination.flushSync();
    expect(file.text).toHaveLength(40_013);
  });

  test("writes the rest of a batch after a partial write to a full pipe, in order and without splitting a character", () => {
    file.room = 3;
    destination.write("onœ\n");
    destination.flushSync();
    destination.write("two\n");
    expect(file.bytes).toHaveLength(3);
    file.room = Number.POSITIVE_INFINITY;
    vi.advanceTimersByTime(500);
    expect(file.text).toBe("onœ\ntwo\n");
  });

  test("retries a write to a full disk", () => {
    file.code = "ENOSPC";
    destination.write("a\n");
    destination.flushSync();
    vi.advanceTimersByTime(1000);
    expect(file.writes).toBeGreaterThan(3);
    file.code = undefined;
    vi.advanceTimersByTime(250);
    expect(file.text).toBe("a\n");
  });

  test("drops lines when its buffer is full, and reports their number when the pipe has room again", async () => {
    file.room = 0;
    const line = `${"x".repeat(1023)}\n`;
    for (let count = 0; count < 1500; count += 1) destination.write(line);
    vi.advanceTimersByTime(250);
    await nextTick();
    expect(onDropped).not.toHaveBeenCalled();
    file.room = Number.POSITIVE_INFINITY;
    vi.advanceTimersByTime(500);
    await nextTick();
    expect(file.text).toHaveLength(1_048_576);
    expect(onDropped.mock.calls).toEqual([[1500 - 1024]]);
  });

  test("reports dropped lines again if the report itself was dropped", async () => {
    const line = `${"x".repeat(1023)}\n`;
    onDropped.mockImplementation(() => destination.write(line));
    // The first batch is written, and then the pipe is full before the event of the batch is handled.
    for (let count = 0; count < 32; count += 1) destination.write(line);
    file.room = 0;
    for (let count = 0; count < 1500; count += 1) destination.write(line);
    await nextTick();
    expect(onDropped.mock.calls).toEqual([[1500 - 1024]]);
    file.room = Number.POSITIVE_INFINITY;
    vi.advanceTimersByTime(250);
    await nextTick();
    expect(onDropped.mock.calls).toEqual([[1500 - 1024], [1500 - 1024]]);
  });

  test("discards all lines when the reader has closed the pipe", () => {
    file.code = "EPIPE";
    destination.write("a\n");
    destination.flushSync();
    file.code = undefined;
    destination.write("b\n");
    destination.flushSync();
    destination.end();
    expect(file.text).toBe("");
  });

  test("discards all lines when the reader has closed a pipe that was full before", () => {
    file.room = 0;
    destination.write("a\n");
    destination.flushSync();
    file.code = "EPIPE";
    destination.flushSync();
    const { writes } = file;
    for (let count = 0; count < 1500; count += 1) destination.write(`${"x".repeat(1023)}\n`);
    destination.end();
    expect(file.writes).toBe(writes);
  });

  test("gives up at the end of the process if the file accepts no data for a second", () => {
    vi.useRealTimers();
    file.code = "ENOSPC";
    destination.write("a\n");
    const start = performance.now();
    destination.end();
    expect(performance.now() - start).toBeGreaterThanOrEqual(999);
    expect(file.text).toBe("");
  });
});

function nextTick(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}
