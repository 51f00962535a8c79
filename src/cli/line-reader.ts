import { once } from "node:events";
import type { Readable } from "node:stream";

/**
 * Reads a stream line by line, only as far as is asked for, and without keeping the process alive in between.
 *
 * @returns a function that gives the next line without its end, and `undefined` once there is none; it
 *   throws the signal's reason when that is aborted
 */
export function lineReader(input: Readable): (signal: AbortSignal) => Promise<string | undefined> {
  let [text, hasEnded] = ["", false];
  input.setEncoding("utf8");
  input.on("data", (chunk: string) => {
    text += chunk;
  });
  input.once("end", () => {
    hasEnded = true;
  });
  input.pause();

  async function readMore(signal: AbortSignal): Promise<void> {
    const settled = new AbortController();
    const either = { signal: AbortSignal.any([signal, settled.signal]) };
    input.resume();
    try {
      await Promise.race([once(input, "data", either), once(input, "end", either)]);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      input.pause();
      settled.abort();
    }
  }

  return async (signal) => {
    signal.throwIfAborted();
    while (!text.includes("\n") && !hasEnded) await readMore(signal);
    if (text === "") return undefined;
    const [line = "", ...rest] = text.split("\n");
    text = rest.join("\n");
    return line.replace(/\r$/, "");
  };
}
