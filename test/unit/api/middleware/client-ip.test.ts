import { IncomingMessage } from "node:http";
import { isIP, Socket } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TrustedProxies } from "../../../../src/api/middleware/client-ip.ts";
import { rateLimitKey } from "../../../../src/http/rate-limit-key.ts";

const PROXIES = ["10.0.0.0/8", "2001:db8::/32", "192.0.2.1", "fe80::/10"];

function addressOf(remoteAddress: string | undefined, forwarded?: string, trustedProxies = PROXIES) {
  const socket = new Socket();
  Object.defineProperty(socket, "remoteAddress", { value: remoteAddress });
  const request = new IncomingMessage(socket);
  if (forwarded !== undefined) request.headers["x-forwarded-for"] = forwarded;
  return new TrustedProxies(trustedProxies).clientIp(request);
}

describe("the client's address", () => {
  it.each([
    ["if no proxy is trusted", "10.0.0.1", "203.0.113.7", []],
    ["if the connection is not from a trusted proxy", "203.0.113.9", "203.0.113.7", PROXIES],
    ["if a trusted proxy sends no X-Forwarded-For header", "10.0.0.1", undefined, PROXIES],
    ["if a trusted proxy sends an empty X-Forwarded-For header", "10.0.0.1", "", PROXIES],
    ["if a trusted proxy with a zone sends an empty header", "fe80::1%eth0", "", PROXIES],
  ])("is the address of the connection %s", (_when, peer, forwarded, trusted) => {
    expect(addressOf(peer, forwarded, [...trusted])).toBe(peer);
  });

  it.each([
    ["10.0.0.1", "203.0.113.7", "203.0.113.7"],
    ["::ffff:10.0.0.1", "203.0.113.7", "203.0.113.7"],
    ["2001:db8::1", "2001:0DB9::7", "2001:0DB9::7"],
    ["192.0.2.1", "198.51.100.1, 203.0.113.7", "203.0.113.7"],
    ["192.0.2.1", "198.51.100.1,203.0.113.7 ,\t10.9.9.9,2001:db8::2", "203.0.113.7"],
    ["10.0.0.1", "192.0.2.1, 203.0.113.7, 192.0.2.1", "203.0.113.7"],
    ["10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
    ["fe80::1%eth0", "203.0.113.7", "203.0.113.7"],
    ["fe80::1%eth0", "203.0.113.7, fe80::2", "203.0.113.7"],
    ["10.0.0.1", "::ffff:203.0.113.7, ::ffff:10.0.0.2", "::ffff:203.0.113.7"],
  ])("of a connection from %s with the X-Forwarded-For header %j is %s", (peer, forwarded, address) => {
    expect(addressOf(peer, forwarded)).toBe(address);
  });

  it.each([
    ["203.0.113.7:51234", "203.0.113.7"],
    ["[2001:db9::7]:51234", "2001:db9::7"],
    ["[2001:db9::7]", "2001:db9::7"],
    ["198.51.100.1:80, 203.0.113.7:51234, 10.0.0.2:80, [2001:db8::2]:443", "203.0.113.7"],
  ])("is read from %j without the port that some proxies add", (forwarded, address) => {
    expect(addressOf("10.0.0.1", forwarded)).toBe(address);
  });

  it.each([
    "unknown",
    "_hidden",
    "203.0.113.07",
    "0x0a.0.0.1",
    "203.0.113.0/24",
    "fe80::1%eth0",
    '"203.0.113.7"',
    "203.0.113.7\u00a0",
    "203.0.113.7 198.51.100.1",
    "203.0.113.7:",
    "203.0.113.7:port",
    "2001:db9::7]:80",
    "[203.0.113.7]x",
  ])("is unknown when the last trusted proxy wrote %j", (malformed) => {
    expect(addressOf("10.0.0.1", malformed)).toBeUndefined();
    expect(addressOf("10.0.0.1", `198.51.100.1, ${malformed}, 10.0.0.2`)).toBeUndefined();
    expect(addressOf("10.0.0.1", `${malformed}, 203.0.113.7, 10.0.0.2`)).toBe("203.0.113.7");
  });

  it("is a valid address or unknown for any header", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (text) => {
        const address = addressOf("10.0.0.1", text.replaceAll(",", ""));
        expect(address === undefined || isIP(address) !== 0).toBe(true);
      }),
    );
  });

  it("is never taken from a header that the client sent", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), fc.string())), (spoofed) => {
        const forwarded = [...spoofed, "203.0.113.7", "10.0.0.2"].join(", ");
        expect(addressOf("10.0.0.1", forwarded)).toBe("203.0.113.7");
      }),
    );
  });

  // With quadratic running time, this would exceed the timeout of the test.
  it("is parsed quickly even with thousands of spaces", () => {
    const blanks = `203.0.113.7${" ".repeat(15_000)}x`;
    for (let times = 0; times < 1000; times += 1) expect(addressOf("10.0.0.1", blanks)).toBeUndefined();
  });

  it("is unknown for a closed connection", () => {
    expect(addressOf(undefined, "203.0.113.7")).toBeUndefined();
  });

  it.each(["10.0.0.0/33", "proxy.example.org", "", "10.0.0.1/", "010.0.0.1"])(
    "cannot be determined with the invalid trusted proxy %j",
    (proxy) => {
      expect(() => new TrustedProxies(["10.0.0.1", proxy])).toThrow(
        `The trusted proxy ${JSON.stringify(proxy)} must be an IP address or a CIDR`,
      );
    },
  );
});

describe("a trusted proxy", () => {
  it("must begin with the first address of its range", () => {
    expect(() => new TrustedProxies(["10.1.2.3/8"])).toThrow(
      'The trusted proxy "10.1.2.3/8" must begin with the first address of its range, as in 10.0.0.0/8 instead of 10.1.2.3/8.',
    );
  });

  it("with an IPv4 address is not trusted because of ::/0", () => {
    const proxies = new TrustedProxies(["::/0"]);
    expect(proxies.has("10.0.0.1")).toBe(false);
    expect(proxies.has("::ffff:10.0.0.1")).toBe(false);
    expect(proxies.has("2001:db8::1")).toBe(true);
  });
});

describe("the rate-limit key of failed authentications", () => {
  it.each([
    ["203.0.113.7", "203.0.113.7"],
    ["::ffff:203.0.113.7", "203.0.113.7"],
    ["::FFFF:cb00:7107", "203.0.113.7"],
    ["0:0:0:0:0:ffff:203.0.113.7", "203.0.113.7"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
    ["2001:0DB8:0001:0002::", "2001:db8:1:2"],
    ["2001:db8:1:2::203.0.113.7", "2001:db8:1:2"],
    ["2001:db8::1", "2001:db8:0:0"],
    ["::1", "0:0:0:0"],
    ["::", "0:0:0:0"],
    ["fe80::1%eth0", "fe80:0:0:0"],
    ["fe80::1%br-1.100", "fe80:0:0:0"],
    ["::203.0.113.7", "0:0:0:0"],
    ["64:ff9b::203.0.113.7", "64:ff9b:0:0"],
    [undefined, ""],
  ])("for %s is %s", (address, source) => {
    expect(rateLimitKey(address)).toBe(source);
  });

  it("is the same for all addresses of a /64 in any notation, and different for the next /64", () => {
    const group = fc.integer({ min: 0, max: 0xffff });
    const groups = fc.array(group, { minLength: 4, maxLength: 4 });
    fc.assert(
      fc.property(groups, groups, groups, (network, a, b) => {
        fc.pre(network[0] !== 0);
        const write = (parts: number[], pad: number) =>
          parts.map((part) => part.toString(16).padStart(pad, "0")).join(":");
        const source = rateLimitKey(write([...network, ...a], 4));
        expect(rateLimitKey(write([...network, ...b], 1).toUpperCase())).toBe(source);
        expect(rateLimitKey(`${write(network, 1)}::`)).toBe(source);
        const neighbor = network.with(3, (network[3] ?? 0) ^ 1);
        expect(rateLimitKey(write([...neighbor, ...a], 1))).not.toBe(source);
      }),
    );
  });
});
