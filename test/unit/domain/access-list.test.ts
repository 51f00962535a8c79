import { describe, expect, it } from "vitest";
import { accessListOf } from "../../../src/domain/access-list.ts";

function listOf(...sources: string[]) {
  return accessListOf(sources.map((source) => ({ description: "", source })));
}

describe("an access list", () => {
  it.each([
    ["10.1.2.3", "10.1.2.3", true],
    ["10.1.2.3", "10.1.2.4", false],
    ["10.0.0.0/8", "10.255.255.255", true],
    ["10.0.0.0/8", "11.0.0.0", false],
    ["10.0.0.0/8", "::ffff:10.1.2.3", true],
    ["10.0.0.0/8", "::ffff:0a01:0203", true],
    ["10.0.0.0/8", "::ffff:11.1.2.3", false],
    ["::ffff:10.0.0.0/104", "10.1.2.3", true],
    ["::ffff:10.0.0.0/104", "::ffff:10.1.2.3", true],
    ["::ffff:10.0.0.0/104", "11.1.2.3", false],
    ["::ffff:10.1.2.3", "10.1.2.3", true],
    ["2001:db8::/32", "2001:db8:ffff::1", true],
    ["2001:db8::/32", "2001:db9::1", false],
    ["2001:DB8::1", "2001:db8:0:0:0:0:0:1", true],
    ["fe80::/10", "fe80::1%eth0", true],
    ["0.0.0.0/0", "203.0.113.7", true],
    ["0.0.0.0/0", "2001:db8::1", false],
    ["::/0", "2001:db8::1", true],
    ["::/0", "203.0.113.7", false],
    ["::/0", "::ffff:203.0.113.7", false],
    ["::/64", "::ffff:203.0.113.7", false],
    ["::/64", "::1", true],
    ["::/1", "203.0.113.7", false],
    ["::ffff:0:0/96", "203.0.113.7", true],
    ["::ffff:0.0.0.0/96", "::ffff:203.0.113.7", true],
    ["::ffff:0:0/96", "2001:db8::1", false],
    ["::ffff:10.1.2.3/128", "10.1.2.3", true],
    ["::ffff:10.1.2.3/128", "10.1.2.4", false],
    ["::1.2.3.4", "1.2.3.4", false],
    ["1.2.3.4", "::1.2.3.4", false],
    ["64:ff9b::/96", "64:ff9b::203.0.113.7", true],
    ["64:ff9b::/96", "203.0.113.7", false],
    ["fe80::/10", "fe80::1%eth0.100", true],
    ["fe80::1", "fe80::1%eth0", true],
    ["2001:db8::/127", "2001:db8::1", true],
    ["2001:db8::/127", "2001:db8::2", false],
    ["10.1.2.3/32", "10.1.2.3", true],
    ["10.1.2.3/32", "10.1.2.2", false],
  ])("with the entry %s and the address %s returns %s", (source, address, allowed) => {
    expect(listOf("192.0.2.1", source).allows(address)).toBe(allowed);
  });

  it("allows every address, even an unknown one, if the list is empty", () => {
    expect(listOf().allows("10.1.2.3")).toBe(true);
    expect(listOf().allows(undefined)).toBe(true);
  });

  it("allows no malformed address", () => {
    const list = listOf("0.0.0.0/0", "::/0");
    for (const address of [undefined, "", "localhost", "10.1", "10.1.2.3 "])
      expect(list.allows(address)).toBe(false);
  });

  it.each([
    "",
    "anywhere",
    "1.2.3.4/",
    "1.2.3.4/33",
    "1.2.3.4/-1",
    "1.2.3.4/8/8",
    "010.0.0.1",
    "10.1",
    "0x0a.0.0.1",
    " 1.2.3.4",
    "1.2.3.4\n",
    "1.2.3.4-1.2.3.9",
    "::1/129",
    "1.2.3.0/024",
    "1.2.3.0/+24",
    "1.2.3.0/24 ",
    "1.2.3.0/255.255.255.0",
    "::/00",
    "::/",
    "fe80::%eth0/64",
    "::ffff:010.1.2.3",
    "::g",
    "[::1]",
    "fe80::1%eth0",
    "1.2.3.4:80",
  ])("denies everything if it has the malformed entry %j", (source) => {
    const list = listOf("10.1.2.3", source);
    expect(list.allows("10.1.2.3")).toBe(false);
    expect(list.problem).toBe(
      "ipAccessList: entry 2 must be an IP address or a CIDR, such as 10.0.0.0/8 or 2001:db8::1; until then, the key is denied everywhere",
    );
  });

  it.each([
    "1.2.3.4/24",
    "10.1.2.3/8",
    "10.0.0.1/0",
    "10.1.2.3/31",
    "2001:db8::1/32",
    "::1/0",
    "2001:db8::1/127",
    "::ffff:10.1.2.3/104",
    "::ffff:0:0/80",
  ])("denies everything if it has the range %s, which does not begin with its first address", (source) => {
    const list = listOf("10.1.2.3", source);
    expect(list.allows("10.1.2.3")).toBe(false);
    expect(list.problem).toMatch(/^ipAccessList: entry 2 must begin with the first address of its range/);
  });
});
