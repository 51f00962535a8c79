import { describe, expect, it } from "vitest";
import { errorEnvelope } from "../../src/api/resources/envelopes.ts";
import { type ApiResponse, exchangeRaw, parseRaw } from "./client.ts";
import { setUpApi, setUpEnvironment, setUpTenant } from "./fixtures.ts";

const environment = setUpEnvironment("http-syntax");
const { authorization } = setUpTenant(environment).admin;
const api = setUpApi(environment);

function expectRefusal(response: ApiResponse, status: number): void {
  expect(response).toMatchObject({ status, body: { status } });
  errorEnvelope.parse(response.body);
  expect(response.headers).toMatchObject({
    "content-type": "application/json",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    date: expect.stringMatching(/ GMT$/),
    "x-request-id": expect.stringMatching(/^[0-9a-f-]{36}$/),
  });
}

const PATCH_PATH =
  "/v1/organizations/11111111-1111-4111-8111-111111111111/services/11111111-1111-4111-8111-111111111111/pipesCdcScaling";

describe("an invalid HTTP request", () => {
  it.each([
    [
      "Content-Length with Transfer-Encoding",
      "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ["two Content-Lengths", "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"],
    ["an encoding after chunked", "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"],
    ["a folded header", "X-Fold: a\r\n b\r\n\r\n"],
    ["a bare line feed", "X-Bare: a\nX-More: b\r\n\r\n"],
    ["a header without a name", ": a\r\n\r\n"],
    ["a header with NUL", "X-Nul: a\0b\r\n\r\n"],
    ["a chunk whose length is not a number", "Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n"],
  ])("gets 400 and closes the connection: %s", async (_what, rest) => {
    const head = `PATCH ${PATCH_PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\n`;
    const response = parseRaw(await exchangeRaw(api.url, head + rest));
    expectRefusal(response, 400);
    expect(response.headers["connection"]).toBe("close");
  });

  it.each([
    ["no request line", "hello\r\n\r\n"],
    ["no Host", `GET /v1/organizations HTTP/1.1\r\nAuthorization: x\r\n\r\n`],
    ["two Hosts", `GET /v1/organizations HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n`],
    ["no Host outside /v1", "GET / HTTP/1.1\r\n\r\n"],
    ["HTTP/2.0 in a request line", "GET / HTTP/2.0\r\nHost: a\r\n\r\n"],
    ["the HTTP/2 connection preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"],
    [
      "a Transfer-Encoding in HTTP/1.0",
      "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    [
      "another Transfer-Encoding inside chunked",
      "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    ],
  ])("gets 400 and closes the connection: %s", async (_what, request) => {
    const response = parseRaw(await exchangeRaw(api.url, request));
    expectRefusal(response, 400);
    expect(response.headers["connection"]).toBe("close");
  });

  it("gets 431 and closes the connection if it has 17 KB of headers", async () => {
    const request = `GET / HTTP/1.1\r\nHost: a\r\nX-Long: ${"a".repeat(17_000)}\r\n\r\n`;
    expectRefusal(parseRaw(await exchangeRaw(api.url, request)), 431);
  });

  it.each([
    ["short headers", "a: b\r\n".repeat(6700)],
    ["headers without a value", "a:\r\n".repeat(10_000)],
  ])(
    "gets 431 and closes the connection if it has 40 KB of %s, with or without a key",
    async (_what, headers) => {
      for (const given of ["", `Authorization: ${authorization}\r\n`]) {
        const request = `GET /v1/organizations HTTP/1.1\r\nHost: a\r\n${given}${headers}\r\n`;
        const response = parseRaw(await exchangeRaw(api.url, request));
        expectRefusal(response, 431);
        expect(response.headers["connection"]).toBe("close");
      }
    },
  );

  it("gets 417 and closes the connection if it has an unknown expectation", async () => {
    const request = `GET /v1/organizations HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\nExpect: tea\r\n\r\n`;
    expectRefusal(parseRaw(await exchangeRaw(api.url, request)), 417);
  });

  it("gets 431 if it has a second Authorization header after more headers than the server reads", async () => {
    const padding = "a:\r\n".repeat(200);
    const request = `GET /v1/organizations HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n${padding}Authorization: ${authorization}\r\n\r\n`;
    expectRefusal(parseRaw(await exchangeRaw(api.url, request)), 431);
  });

  it("gets 401 if it has a second Authorization header after as many headers as are allowed", async () => {
    const padding = "a:\r\n".repeat(125);
    const request = `GET /v1/organizations HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n${padding}Authorization: ${authorization}\r\n\r\n`;
    expectRefusal(parseRaw(await exchangeRaw(api.url, request)), 401);
  });

  it("is logged with the request ID of the response", async () => {
    const response = parseRaw(await exchangeRaw(api.url, "hello\r\n\r\n"));
    expect(api.log.filter(({ requestId }) => requestId === response.headers["x-request-id"])).toMatchObject([
      { status: 400 },
    ]);
  });
});

describe("a valid but rare HTTP request", () => {
  const close = "Connection: close\r\n\r\n";

  it("may have a request target in absolute form", async () => {
    const request = `GET http://elsewhere:1/v1/organizations?x HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n${close}`;
    expect(parseRaw(await exchangeRaw(api.url, request)).status).toBe(200);
  });

  it.each([
    ["*", 404],
    ["http://elsewhere:1", 404],
    ["http://[::1", 404],
    ["foo://bar/v1/organizations", 404],
    ["foo://[::1/v1/organizations", 404],
  ])("gets a JSON response for the request target %s: %i", async (target, status) => {
    const text = await exchangeRaw(api.url, `OPTIONS ${target} HTTP/1.1\r\nHost: a\r\n${close}`);
    expectRefusal(parseRaw(text), status);
  });

  it.each([
    ["with", "Host: a\r\n"],
    ["without", ""],
  ])("may use HTTP/1.0 %s a Host header", async (_what, host) => {
    const request = `GET /v1/organizations HTTP/1.0\r\n${host}Authorization: ${authorization}\r\n\r\n`;
    expect(parseRaw(await exchangeRaw(api.url, request)).status).toBe(200);
  });

  it("gets 405 with the methods of the API if its method is unknown, with or without a key", async () => {
    for (const given of ["", `Authorization: ${authorization}\r\n`]) {
      const request = `FOO /v1/organizations HTTP/1.1\r\nHost: a\r\n${given}\r\n`;
      const response = parseRaw(await exchangeRaw(api.url, request));
      expectRefusal(response, 405);
      expect(response.headers).toMatchObject({ allow: "DELETE, GET, HEAD, PATCH, PUT", connection: "close" });
    }
  });

  it("may have the transfer coding chunked in any case, with spaces around it", async () => {
    const request = `GET /v1/organizations HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\nTransfer-Encoding: \t Chunked \t\r\nConnection: close\r\n\r\n0\r\n\r\n`;
    expect(parseRaw(await exchangeRaw(api.url, request)).status).toBe(200);
  });

  it("gets one response and closes the connection if it is an upgrade request", async () => {
    const head = `GET /v1/organizations HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n`;
    const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    const text = await exchangeRaw(api.url, `${head}${upgrade}${head}\r\n`);
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200"]);
    expect(parseRaw(text).headers["connection"]).toBe("close");
  });

  it("may have a body if it is an upgrade request", async () => {
    const body = "{}";
    const text = await exchangeRaw(
      api.url,
      `PATCH ${PATCH_PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n${body}`,
    );
    expectRefusal(parseRaw(text), 404);
    expect(text.match(/HTTP\/1\.1 \d+/g)).toHaveLength(1);
  });

  it("never switches to another protocol", async () => {
    const request = `GET /v1/organizations HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n\r\n`;
    expect(parseRaw(await exchangeRaw(api.url, request)).status).toBe(200);
  });
});
