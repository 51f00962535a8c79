import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isExcepted } from "../../src/kube/no-proxy.ts";

/* The rules are those of golang.org/x/net/http/httpproxy, which kubectl goes by. */

describe("NO_PROXY", () => {
  it.each([
    ["*", "https://api.example"],
    ["other, api.example", "https://api.example"],
    ["example", "https://api.example"],
    [".example", "https://api.example"],
    ["*.example", "https://api.example"],
    ["API.Example", "https://api.example."],
    ["api.example:443", "https://api.example"],
    ["api.example:8443", "https://api.example:8443"],
    ["10.1.2.3", "https://10.1.2.3:6443"],
    ["10.0.0.0/8", "https://10.1.2.3:6443"],
    ["10.1.2.3:6443", "https://10.1.2.3:6443"],
    ["fd00::/8", "https://[fd00::1]:6443"],
    ["fd00:0::1", "https://[fd00::1]"],
    ["[fd00::1]", "https://[fd00::1]"],
    ["[fd00::1]:6443", "https://[fd00::1]:6443"],
  ])("%s excepts %s", (noProxy, server) => expect(isExcepted(noProxy, new URL(server))).toBe(true));

  it.each([
    ["", "https://api.example"],
    [" , ", "https://api.example"],
    [".api.example", "https://api.example"],
    ["*.api.example", "https://api.example"],
    ["pi.example", "https://api.example"],
    ["api.example.org", "https://api.example"],
    ["api.example:8443", "https://api.example"],
    ["10.0.0.0/8", "https://11.1.2.3"],
    ["10.0.0.0/33", "https://10.0.0.0"],
    ["10.0.0.0/x", "https://10.0.0.0"],
    ["10.1.2.3:443", "https://10.1.2.3:6443"],
    ["3", "https://10.1.2.3"],
    ["fd00::/8", "https://10.1.2.3"],
    ["[fd00::1]:443", "https://[fd00::1]:6443"],
  ])("%s does not except %s", (noProxy, server) => {
    expect(isExcepted(noProxy, new URL(server))).toBe(false);
  });

  it("excepts each address that it names, and takes any text", () => {
    fc.assert(
      fc.property(fc.ipV4(), fc.string(), (address, text) => {
        const server = new URL(`https://${address}`);
        expect(isExcepted(`${text},${address}`, server)).toBe(true);
        expect(isExcepted(`0.0.0.0/0,${text}`, server)).toBe(true);
        expect(typeof isExcepted(text, server)).toBe("boolean");
      }),
    );
  });
});
