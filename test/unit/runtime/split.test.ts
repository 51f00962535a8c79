import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { splitFrames, splitLines } from "../../../src/runtime/split.ts";

/** Splits bytes at arbitrary positions. */
function chunksOf(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort(
    (a, b) => a - b,
  );
  return places.slice(1).map((end, at) => bytes.subarray(places[at], end));
}

const cuts = fc.array(fc.nat(5000), { maxLength: 20 });

describe("frames", () => {
  const framed = (frame: Uint8Array) => {
    const header = Buffer.alloc(4);
    header.writeUInt32BE(frame.length);
    return Buffer.concat([header, frame]);
  };

  it("are the same for any chunks of the body", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 12 }), cuts, (frames, places) => {
        const split = splitFrames();
        const body = Buffer.concat(frames.map(framed));
        const received = chunksOf(body, places).flatMap((chunk) => split(chunk));
        expect(received.map((frame) => [...frame])).toEqual(frames.map((frame) => [...frame]));
      }),
    );
  });

  it("are returned as soon as they are complete", () => {
    const split = splitFrames();
    expect(split(Buffer.from([0, 0, 0, 2, 7]))).toEqual([]);
    expect(split(Buffer.from([8, 0, 0, 0]))).toEqual([Buffer.from([7, 8])]);
    expect(split(Buffer.from([0]))).toEqual([Buffer.alloc(0)]);
  });

  it("are rejected before they are buffered if they exceed the maximum size of an object", () => {
    expect(() => splitFrames()(Buffer.from('{"type":"ADDED"}'))).toThrow("a frame of a watch has");
  });
});

describe("lines", () => {
  it("are the same for any chunks of the body", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: "grapheme", minLength: 1 }), { maxLength: 12 }),
        cuts,
        (texts, places) => {
          const lines = texts.map((text) => text.replaceAll("\n", "_"));
          const split = splitLines();
          const body = Buffer.from(lines.map((line) => `${line}\n`).join(""));
          const received = chunksOf(body, places).flatMap((chunk) => split(chunk));
          expect(received.map((line) => line.toString())).toEqual(lines);
        },
      ),
    );
  });
});
