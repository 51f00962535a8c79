import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AddressSet } from "../../../src/domain/address-set.ts";

describe("a set of addresses", () => {
  it.each(["2001:db8::/32.5", "::/0.1", "::/128.0", "10.0.0.0/8.0", "10.0.0.0/+8", "::/1e1", "::/ 8", "::/"])(
    "rejects %j, whose prefix is no whole number",
    (source) => {
      const set = new AddressSet();
      expect(set.add(source)).toContain("must be an IP address or a CIDR");
      expect(set.has("2001:db8::1")).toBe(false);
      expect(set.has("10.0.0.1")).toBe(false);
    },
  );

  it("accepts or rejects each source, and throws for none", () => {
    const address = fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom("::", "::ffff:10.0.0.0", "0.0.0.0"));
    const prefix = fc.oneof(
      fc.nat(200).map(String),
      fc.double().map(String),
      fc.stringMatching(/^[-+.0-9ex ]{0,5}$/),
    );
    const source = fc.oneof(
      fc.string(),
      fc.tuple(address, prefix).map((parts) => parts.join("/")),
    );
    fc.assert(
      fc.property(source, (text) => {
        const set = new AddressSet();
        const problem = set.add(text);
        expect(problem ?? "accepted").toMatch(/^(accepted|must )/);
        if (problem === undefined) expect(set.has(text.split("/")[0] ?? "")).toBe(true);
      }),
    );
  });
});
