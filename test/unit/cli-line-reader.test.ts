import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { lineReader } from "../../src/cli/line-reader.ts";

const { signal } = new AbortController();

describe("standard input, line by line", () => {
  test("gives lines that come at once, in pieces, or with a carriage return, and the last without an end", async () => {
    const input = new PassThrough();
    const next = lineReader(input);
    input.write("one\r\n two \nth");
    expect(await next(signal)).toBe("one");
    expect(await next(signal)).toBe(" two ");
    const third = next(signal);
    input.write("ree");
    input.write("\nfour");
    input.end();
    expect(await third).toBe("three");
    expect(await next(signal)).toBe("four");
    expect(await next(signal)).toBeUndefined();
    expect(await next(signal)).toBeUndefined();
  });

  test("loses nothing of a character that comes in two pieces", async () => {
    const input = new PassThrough();
    const line = lineReader(input)(signal);
    const bytes = Buffer.from("ü\n");
    input.write(bytes.subarray(0, 1));
    input.write(bytes.subarray(1));
    expect(await line).toBe("ü");
  });

  test("is left alone before and after a question", async () => {
    const input = new PassThrough();
    const next = lineReader(input);
    expect(input.isPaused()).toBe(true);
    input.write("one\n");
    await next(signal);
    expect(input.isPaused()).toBe(true);
  });

  test("is no longer waited for when the person interrupts", async () => {
    const interrupted = new AbortController();
    const line = lineReader(new PassThrough())(interrupted.signal);
    interrupted.abort(new Error("Ctrl-C"));
    await expect(line).rejects.toThrow("Ctrl-C");
  });
});
