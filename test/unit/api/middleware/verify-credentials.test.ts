import crypto, { randomUUID } from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { type KeyView, toKeyView } from "../../../../src/api/cluster/views.ts";
import { parseBasic, verifyCredentials } from "../../../../src/api/middleware/verify-credentials.ts";
import { basic, keyRecord } from "../../../support/fixtures/records.ts";

describe("the Authorization header", () => {
  it.each([
    ["Basic YTpi", { keyId: "a", keySecret: "b" }],
    ["bAsIc YTpi", { keyId: "a", keySecret: "b" }],
    ["Basic    YTpi", { keyId: "a", keySecret: "b" }],
    [basic("a", "b:c:d"), { keyId: "a", keySecret: "b:c:d" }],
    [basic("a", "b").replace(/=+$/, ""), { keyId: "a", keySecret: "b" }],
    [basic("a", "é€𝄞"), { keyId: "a", keySecret: "é€𝄞" }],
  ])("is parsed if it is %s", (header, credentials) => {
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
  ])("is rejected if it is %j", (header) => {
    expect(parseBasic(header)).toBeUndefined();
  });

  it("can carry any printable key ID and secret", () => {
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

function keyView(resourceVersion = "1", state: "enabled" | "disabled" = "enabled") {
  const { record, ...credentials } = keyRecord({ organizationId: randomUUID(), state });
  const data = Object.fromEntries(
    Object.entries(record.stringData).map(([key, text]) => [
      key,
      Buffer.from(String(text)).toString("base64"),
    ]),
  );
  const metadata = { ...record.metadata, uid: "uid", resourceVersion };
  return { key: toKeyView({ metadata, data }), name: record.metadata.name, ...credentials };
}

/** Counts the calls of `crypto.hash` and `crypto.timingSafeEqual`. */
function countComparisons(run: () => unknown) {
  const hash = vi.spyOn(crypto, "hash");
  const timingSafeEqual = vi.spyOn(crypto, "timingSafeEqual");
  // Named imports do not follow changes to the object automatically.
  syncBuiltinESMExports();
  try {
    run();
    return { hashes: hash.mock.calls.length, comparisons: timingSafeEqual.mock.calls.length };
  } finally {
    hash.mockRestore();
    timingSafeEqual.mockRestore();
    syncBuiltinESMExports();
  }
}

describe("the verification of credentials", () => {
  it("finds the key by its ID and checks its secret on every request", () => {
    const { key, name, authorization } = keyView();
    const keys = new Map<string, KeyView>([[name, key]]);
    const find = (secretName: string) => keys.get(secretName);
    expect(verifyCredentials(authorization, find)).toBe(key);
    keys.set(name, keyView("2").key);
    expect(verifyCredentials(authorization, find)).toBeUndefined();
    keys.delete(name);
    expect(verifyCredentials(authorization, find)).toBeUndefined();
  });

  it.each([
    ["the right secret of a disabled key", "disabled", (secret: string) => secret],
    ["a wrong secret of a disabled key", "disabled", () => "wrong"],
    ["the right secret of an enabled key", "enabled", (secret: string) => secret],
    ["a wrong secret of an enabled key", "enabled", () => "wrong"],
  ] as const)("hashes and compares as often for %s as for an unknown key", (_what, state, secretOf) => {
    const { key, name, keyId, keySecret } = keyView("1", state);
    const find = (secretName: string) => (secretName === name ? key : undefined);
    const counted = countComparisons(() => verifyCredentials(basic(keyId, secretOf(keySecret)), find));
    const unknown = countComparisons(() => verifyCredentials(basic("A".repeat(20), "wrong"), find));
    expect(counted).toEqual(unknown);
    expect(counted).toEqual({ hashes: 2, comparisons: 2 });
  });
});
