import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Authenticator, type KeySource } from "../../src/api/authenticator.ts";
import { type CachedKey, toCachedKey } from "../../src/api/cached-objects.ts";
import { parseBasic } from "../../src/api/credentials.ts";
import { basic, keyRecord } from "../gen/records.ts";

describe("the Authorization header", () => {
  it.each([
    ["Basic YTpi", { keyId: "a", keySecret: "b" }],
    ["bAsIc YTpi", { keyId: "a", keySecret: "b" }],
    ["Basic    YTpi", { keyId: "a", keySecret: "b" }],
    [basic("a", "b:c:d"), { keyId: "a", keySecret: "b:c:d" }],
    [basic("a", "b").replace(/=+$/, ""), { keyId: "a", keySecret: "b" }],
    [basic("a", "é€𝄞"), { keyId: "a", keySecret: "é€𝄞" }],
  ])("%s is understood", (header, credentials) => {
    expect(parseBasic(header)).toEqual(credentials);
  });

  it.each([
    "",
    "Basic",
    "Basic ",
    "Basic\tYTpi",
    "Basic YTpi YTpi",
    "Basic YTpi,Basic YTpi",
    "Basic YTpi;",
    "Basic YT.pi",
    "Basic YT_pi",
    "Basic YTpi===",
    "Bearer YTpi",
    "BasicYTpi",
    basic("", "b"),
    basic("a", ""),
    basic("a b", "c"),
    basic("a\0", "b"),
    basic("a", "b\0"),
    basic("a", "b\r\n"),
    basic("a", "b\x7f"),
    basic("é", "b"),
    `Basic ${Buffer.from([0x61, 0x3a, 0xff]).toString("base64")}`,
    `Basic ${Buffer.from("ab").toString("base64")}`,
  ])("%j is not", (header) => {
    expect(parseBasic(header)).toBeUndefined();
  });

  it("gives back whatever printable key and secret went into it", () => {
    const printable = {
      keyId: fc.stringMatching(/^[!-9;-~]{1,40}$/),
      keySecret: fc.stringMatching(/^[ -~]{1,80}$/),
    };
    fc.assert(
      fc.property(fc.record(printable), (credentials) => {
        expect(parseBasic(basic(credentials.keyId, credentials.keySecret))).toEqual(credentials);
      }),
    );
  });
});

function cachedKey(resourceVersion = "1") {
  const { record, authorization, keySecret } = keyRecord({ organizationId: crypto.randomUUID() });
  const data = Object.fromEntries(
    Object.entries(record.stringData).map(([key, text]) => [
      key,
      Buffer.from(String(text)).toString("base64"),
    ]),
  );
  const metadata = { ...record.metadata, uid: "uid", resourceVersion };
  return { key: toCachedKey({ metadata, data }), name: record.metadata.name, authorization, keySecret };
}

describe("the memory of verified headers", () => {
  it("asks for the key again on every request", () => {
    const { key, name, authorization } = cachedKey();
    const keys = new Map<string, CachedKey>([[name, key]]);
    const authenticator = new Authenticator(keys);
    expect(authenticator.identify(authorization)).toBe(key);
    expect(authenticator.identify(authorization)).toBe(key);

    keys.delete(name);
    expect(authenticator.identify(authorization)).toBeUndefined();
  });

  it("verifies anew when the Secret has another version", () => {
    const { key, name, authorization } = cachedKey();
    const keys = new Map<string, CachedKey>([[name, key]]);
    const authenticator = new Authenticator(keys);
    authenticator.identify(authorization);

    const other = cachedKey("2").key;
    keys.set(name, other);
    expect(authenticator.identify(authorization)).toBeUndefined();

    const same = { ...key };
    keys.set(name, same);
    expect(authenticator.identify(authorization)).toBe(same);
  });

  it("is bounded, and does without what it has forgotten", () => {
    const { key, name, authorization } = cachedKey();
    let lookUps = 0;
    const keys: KeySource = {
      get(secretName) {
        lookUps += 1;
        return secretName === name ? key : undefined;
      },
    };
    const authenticator = new Authenticator(keys);
    for (let spaces = 1; spaces <= 5000; spaces += 1) {
      const header = authorization.replace(" ", " ".repeat(spaces));
      expect(authenticator.identify(header)).toBe(key);
    }
    expect(authenticator.remembered).toBeLessThanOrEqual(4096);
    expect(authenticator.identify(authorization)).toBe(key);
    expect(lookUps).toBeGreaterThan(5000);
  });
});
