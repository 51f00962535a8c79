import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { httpSyntax } from "../../../../src/api/middleware/http-syntax.ts";
import { sendResult } from "../../../../src/api/middleware/respond.ts";
import { type ApiResponse, exchangeRaw, parseRaw } from "../../../api/client.ts";
import { startServer } from "../../../support/servers/http-server.ts";

const { cert, key } = certificatePair("localhost");

/** Returns a function that sends raw bytes to a server that responds 200 to any request with valid syntax. */
async function startSyntax({ isTls = false } = {}): Promise<(bytes: string) => Promise<ApiResponse>> {
  const { url } = await startServer(
    [httpSyntax, (_request, response) => sendResult(response)],
    isTls ? { tls: { cert: Buffer.from(cert), key: Buffer.from(key) } } : {},
  );
  return async (bytes) => parseRaw(await exchangeRaw(url, bytes));
}

function get(host: string, version = "1.1"): string {
  return `GET / HTTP/${version}\r\n${host}Connection: close\r\n\r\n`;
}

describe.each([
  ["plain HTTP", false],
  ["TLS", true],
])("a server with %s", (_transport, isTls) => {
  it.each([
    "",
    "a",
    "API.example.com",
    "api.example.com:8443",
    "a:",
    "10.0.0.1:8080",
    "[::1]",
    "[::1]:8080",
    "[2001:db8::ffff:10.0.0.1]",
    "a_b~c!$&'()*+,;=-.",
    "%61pi",
  ])("accepts the host %j", async (host) => {
    const send = await startSyntax({ isTls });
    expect(await send(get(`Host: ${host}\r\n`))).toMatchObject({ status: 200 });
  });

  it.each([
    "a b",
    "a,b c",
    "a\tb",
    "a/b",
    "http://a",
    "user@a",
    "a?b",
    "a#b",
    "a:80:90",
    "a:8x",
    "::1",
    "[::1",
    "[a]",
    "[1:2]",
    "[10.0.0.1]",
    "[::1]a",
    "a%zz",
    "a%2",
    "<a>",
    '"a"',
    "a\\b",
    "ä",
  ])("rejects the host %j with 400, in HTTP/1.1 and 1.0", async (host) => {
    const send = await startSyntax({ isTls });
    for (const version of ["1.1", "1.0"]) {
      expect(await send(get(`Host: ${host}\r\n`, version))).toMatchObject({
        status: 400,
        headers: { connection: "close" },
        body: {
          error: "The Host header must be a host name or an IP address, with or without a port.",
          status: 400,
        },
      });
    }
  });

  it("needs a Host header in HTTP/1.1, but not in HTTP/1.0", async () => {
    const send = await startSyntax({ isTls });
    expect(await send(get("", "1.1"))).toMatchObject({ status: 400 });
    expect(await send(get("", "1.0"))).toMatchObject({ status: 200 });
  });

  it("rejects two Host headers with 400 in each version", async () => {
    const send = await startSyntax({ isTls });
    for (const version of ["1.1", "1.0"]) {
      expect(await send(get("Host: a\r\nhOST: a\r\n", version))).toMatchObject({ status: 400 });
    }
  });

  it("accepts 128 headers, and rejects more with 431, so that none is dropped silently", async () => {
    const send = await startSyntax({ isTls });
    const sendHeaders = (count: number) => send(get(`Host: a\r\n${"aa:\r\n".repeat(count - 2)}`));
    expect(await sendHeaders(128)).toMatchObject({ status: 200 });
    for (const count of [129, 130, 4000]) {
      expect(await sendHeaders(count)).toMatchObject({
        status: 431,
        headers: { connection: "close" },
        body: {
          error: "The headers must not be longer than 16384 bytes, and there must not be more than 128.",
          status: 431,
        },
      });
    }
  });

  it.each(["FOO", "get", "GETX", "PATCHES", "M", "a-b.c_d", "!#$%&'*+.^`|~", "X".repeat(300), "DESCRIBE"])(
    "responds to the unknown method %s with 405 and the methods of the API",
    async (method) => {
      const send = await startSyntax({ isTls });
      expect(await send(`${method} /path?query HTTP/1.1\r\nHost: a\r\n\r\n`)).toMatchObject({
        status: 405,
        headers: { allow: "DELETE, GET, HEAD, PATCH, PUT", connection: "close" },
        body: { error: "This API has only the methods DELETE, GET, HEAD, PATCH, PUT.", status: 405 },
      });
    },
  );

  it.each([
    ["a method that is not a token", "F@O / HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["a request line without a version", "FOO /\r\nHost: a\r\n\r\n"],
    ["a request line without a target", "FOO HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["another version", "FOO / HTTP/2.0\r\nHost: a\r\n\r\n"],
    ["another protocol", "FOO / RTSP/1.0\r\n\r\n"],
    ["a request line that is not complete", `FOO /${"x".repeat(100)}`],
    ["a method without a space after it", "GET/ HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["bytes that are not text", "\x16\x03\x01\x02\x00\x01\x00\r\n"],
  ])("responds to %s with 400", async (_what, bytes) => {
    const send = await startSyntax({ isTls });
    expect(await send(bytes)).toMatchObject({ status: 400, headers: { connection: "close" } });
  });

  it("responds with 405 to an unknown method after an empty line, which HTTP allows", async () => {
    const send = await startSyntax({ isTls });
    expect(await send("\r\nFOO / HTTP/1.1\r\nHost: a\r\n\r\n")).toMatchObject({ status: 405 });
  });
});

describe("a random host", () => {
  const name = fc.string({ unit: fc.constantFrom(..."aZ09-._~!$&'()*+,;=", "%4f"), maxLength: 20 });
  const address = fc.ipV6().map((text) => `[${text}]`);
  const port = fc.oneof(
    fc.constant(""),
    fc.nat(65_535).map((number) => `:${number}`),
  );
  const host = fc.tuple(fc.oneof(name, address), port).map((parts) => parts.join(""));

  it("is accepted if it matches the grammar of RFC 9110", async () => {
    const send = await startSyntax();
    await fc.assert(
      fc.asyncProperty(host, async (text) => {
        expect(await send(get(`Host: ${text}\r\n`))).toMatchObject({ status: 200 });
      }),
    );
  });

  it("is rejected with 400 if it contains a character outside of the grammar", async () => {
    const send = await startSyntax();
    const forbidden = fc.constantFrom(...' \t/@?#<>\\^`{|}"ä');
    await fc.assert(
      fc.asyncProperty(host, forbidden, name, async (before, character, after) => {
        // Spaces around the value of a header do not belong to it.
        const text = `a${before}${character}${after}a`;
        expect(await send(get(`Host: ${text}\r\n`))).toMatchObject({ status: 400 });
      }),
    );
  });
});
