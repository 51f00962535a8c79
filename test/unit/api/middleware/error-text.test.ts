import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { errorText, quote } from "../../../../src/api/middleware/error-text.ts";
import { decodeJson } from "../../../../src/api/middleware/json-body.ts";
import { errorBody } from "../../../../src/api/middleware/respond.ts";

/** Any sequence of UTF-16 code units, with many surrogates, control characters and separators. */
const anyText = fc
  .array(
    fc.oneof(
      fc.integer({ min: 0, max: 0xffff }),
      fc.integer({ min: 0xd800, max: 0xdfff }),
      fc.integer({ min: 0, max: 0xa0 }),
      fc.constantFrom(0x2028, 0x2029),
    ),
    { maxLength: 600, size: "max" },
  )
  .map((units) => String.fromCharCode(...units));

const X = "x".repeat(600);

/** Text that needs no escaping. */
const ordinaryText = fc.string({ unit: "grapheme-composite", maxLength: 100 }).filter(isOrdinary);

function isOrdinary(text: string): boolean {
  return text.isWellFormed() && !/[\p{Cc}\u2028\u2029]/u.test(text);
}

describe("the text of an error", () => {
  it("is well-formed, contains no control characters or line separators, and is at most 500 code units long", () => {
    fc.assert(
      fc.property(anyText, (message) => {
        const text = errorText(message);
        expect(text.length).toBeLessThanOrEqual(500);
        expect(isOrdinary(text), JSON.stringify(text)).toBe(true);
      }),
    );
  });

  it("does not change if it is converted again", () => {
    fc.assert(
      fc.property(anyText, (message) => {
        expect(errorText(errorText(message))).toBe(errorText(message));
      }),
    );
  });

  it("is the unchanged message if it is short and needs no escaping", () => {
    fc.assert(
      fc.property(ordinaryText, (message) => {
        expect(errorText(message)).toBe(message);
      }),
    );
  });

  it.each([
    ["escapes control characters", "a\u0007\r\nb\u007f\u009bc", "a\\u0007\\u000d\\u000ab\\u007f\\u009bc"],
    ["escapes line separators", "a\u2028b\u2029c", "a\\u2028b\\u2029c"],
    ["replaces a lone surrogate", "a\ud83d b\ude00", "a\ufffd b\ufffd"],
    ["keeps a complete surrogate pair", "a 😀", "a 😀"],
    ["keeps 500 code units", X.slice(0, 500), X.slice(0, 500)],
    ["truncates 501 code units to 500", X.slice(0, 501), `${X.slice(0, 499)}…`],
    ["keeps a surrogate pair at the limit", `${X.slice(0, 498)}😀`, `${X.slice(0, 498)}😀`],
    ["keeps a surrogate pair before the cut", `${X.slice(0, 497)}😀xx`, `${X.slice(0, 497)}😀…`],
    ["does not cut within a surrogate pair", `${X.slice(0, 498)}😀x`, `${X.slice(0, 498)}…`],
  ])("%s", (_, message, text) => {
    expect(errorText(message)).toBe(text);
  });

  it("is used in every error body", () => {
    fc.assert(
      fc.property(anyText, (message) => {
        const body = JSON.parse(errorBody({ message, status: 400 }));
        expect(body).toEqual({ error: errorText(message), status: 400 });
      }),
    );
  });

  it.each([
    ["an emoji", "😀"],
    ["an emoji after a value", "[1😀"],
    ["a control character", "\u0007"],
    ["a control character in a string", '{"a":"\u0000"}'],
  ])("is well-formed and has no control characters if the body is not JSON because of %s", (_, body) => {
    let message = "";
    try {
      decodeJson(Buffer.from(body));
    } catch (error) {
      message = String(error);
    }
    expect(message).toMatch(/The body is not JSON/);
    expect(JSON.parse(errorBody({ message, status: 400 })).error).toSatisfy(isOrdinary);
  });
});

describe("a name quoted in an error", () => {
  it("is truncated after 40 code units, but not within a surrogate pair", () => {
    expect(quote("x".repeat(40))).toBe(`"${"x".repeat(40)}"`);
    expect(quote("x".repeat(41))).toBe(`"${"x".repeat(40)}…"`);
    expect(quote(`${"x".repeat(38)}😀y`)).toBe(`"${"x".repeat(38)}😀…"`);
    expect(quote(`${"x".repeat(39)}😀`)).toBe(`"${"x".repeat(39)}…"`);
  });

  it("is well-formed for any name", () => {
    fc.assert(
      fc.property(anyText, (name) => {
        expect(quote(name).isWellFormed()).toBe(true);
      }),
    );
  });
});
