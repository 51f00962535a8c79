import { closeSync, truncateSync, writeFileSync } from "node:fs";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { join } from "node:path";
import type { RequestHandler, Response } from "express";
import { describe, expect, it, onTestFinished } from "vitest";
import { send, sendResult } from "../../../../src/api/middleware/respond.ts";
import { openFile, type ResponseBody } from "../../../../src/api/middleware/response-body.ts";
import { UnsentBodies } from "../../../../src/api/middleware/unsent-bodies.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { temporaryFolder } from "../../../support/fixtures/kubeconfig.ts";
import { appOf, serve } from "../../../support/servers/express-app.ts";
import { open, startServer } from "../../../support/servers/http-server.ts";

it.each(["Acme", "Æ", "Zürich", "株式会社", "😀"])(
  "a response that contains %s is complete and encoded in UTF-8",
  async (name) => {
    const app = appOf([(_request, response) => sendResult(response, { name })], {
      clock: new FakeClock(),
    });
    const bytes = await (await fetch(await serve(app))).arrayBuffer();
    const body = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    expect(JSON.parse(body)).toMatchObject({ status: 200, result: { name } });
  },
);

describe("long responses that are not read", () => {
  const MIB = 2 ** 20;
  /** Longer than the buffers of a connection, and different for each request. */
  const longResponse: RequestHandler = (request, response) =>
    send(response, 200, ["Content-Type", "text/plain"], request.url.padEnd(14 * MIB, "x"));

  const requestFor = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;

  /** Resolves when the response has begun, of which no more is read. */
  async function requestWithoutReading(port: number, path: string) {
    const opened = await open(port);
    const begun = opened.until("HTTP/1.1 200 OK");
    opened.socket.write(requestFor(path));
    await begun;
    opened.socket.pause();
    return opened;
  }

  it("end beyond 32 MiB in total, the oldest first, while a client that reads gets its own", async () => {
    const { url, port, lines } = await startServer([longResponse]);
    const oldest = await requestWithoutReading(port, "/1");
    const newer = await requestWithoutReading(port, "/2");
    const response = await fetch(`${url}/3`);
    await expect
      .poll(() => lines)
      .toMatchObject([
        { level: "warn", status: 503, because: expect.stringContaining("did not read its response") },
      ]);
    expect((await response.text()).length).toBe(14 * MIB);
    newer.socket.resume();
    await newer.until("x".repeat(10));
    expect(newer.socket.destroyed).toBe(false);
    oldest.socket.resume();
    await oldest.closed;
    expect(oldest.received().length).toBeLessThan(14 * MIB);
  });

  it("do not end while others have made no progress for longer", () => {
    const bodies = new UnsentBodies(25);
    const request = () => Object.assign(new IncomingMessage(new Socket()), { context: {} });
    const response = () => new ServerResponse(request()) as Response;
    const [stuck, read, added] = [response(), response(), response()];
    bodies.add(read, 10);
    bodies.add(stuck, 10);
    bodies.progress(read);
    bodies.add(added, 10);
    expect([stuck, read, added].map(({ req }) => req.socket.destroyed)).toEqual([true, false, false]);
  });

  it("take the memory of one if they are pipelined, so that they do not end", async () => {
    const { port, lines } = await startServer([longResponse]);
    const { socket, received, closed } = await open(port);
    const last = requestFor("/3").replace("Host", "Connection: close\r\nHost");
    socket.write(["/1", "/2"].map(requestFor).join("") + last);
    await closed;
    expect(received().length).toBeGreaterThan(3 * 14 * MIB);
    expect(lines).toMatchObject([{ status: 200 }, { status: 200 }, { status: 200 }]);
  });
});

describe("a response that is longer than what is written at once", () => {
  /** 460 KB, which is no multiple of the length of a part. */
  const TEXT = "Zürich, 株式会社, ".repeat(20_001);

  /** Writes the text to a file that is open until the test ends. */
  function fileOf(text: string) {
    const path = join(temporaryFolder(), "long.txt");
    writeFileSync(path, text);
    const body = openFile(path);
    onTestFinished(() => closeSync(body.fd));
    return { path, body };
  }

  const BODIES: readonly (readonly [string, () => ResponseBody])[] = [
    ["a string", () => TEXT],
    ["a buffer", () => Buffer.from(TEXT)],
    ["a file", () => fileOf(TEXT).body],
  ];

  const respondWith =
    (body: ResponseBody): RequestHandler =>
    (_request, response) =>
      send(response, 200, ["Content-Type", "text/plain; charset=utf-8"], body);

  it.each(BODIES)("is complete if it is %s", async (_what, body) => {
    const { url } = await startServer([respondWith(body())]);
    const response = await fetch(url);
    expect(response.headers.get("content-length")).toBe(String(Buffer.byteLength(TEXT)));
    expect(await response.text()).toBe(TEXT);
  });

  it.each(BODIES)("has no body for HEAD if it is %s", async (_what, body) => {
    const { port } = await startServer([respondWith(body())]);
    const { socket, received, closed } = await open(port);
    socket.write("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    await closed;
    expect(received()).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(received()).toMatch(/\r\n\r\n$/);
  });

  it.each(BODIES)("is complete if the body of the request is not read and it is %s", async (_what, body) => {
    const { url } = await startServer([respondWith(body())]);
    const response = await fetch(url, { method: "POST", body: "x".repeat(100_000) });
    expect(response.headers.get("connection")).toBe("close");
    expect(await response.text()).toBe(TEXT);
  });

  it.each(BODIES)("is in its place among pipelined responses if it is %s", async (_what, body) => {
    const first = Promise.withResolvers<void>();
    const longOne = respondWith(body());
    const { port } = await startServer([
      async (request, response, next) => {
        if (request.url === "/first") await first.promise;
        if (request.url === "/long") longOne(request, response, next);
        else sendResult(response, request.url);
      },
    ]);
    const { socket, received, until } = await open(port);
    for (const path of ["/first", "/long", "/long", "/last"])
      socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
    first.resolve();
    await until('"result":"/last"}');
    const [, one, two, three, four] = received().split(/HTTP\/1\.1 200 OK\r\n/);
    expect(one).toContain('"result":"/first"}');
    expect(two?.split("\r\n\r\n")[1]).toBe(TEXT);
    expect(three?.split("\r\n\r\n")[1]).toBe(TEXT);
    expect(four).toContain('"result":"/last"}');
  });

  it("ends with its connection if its file cannot be read to the end, and the log has the reason", async () => {
    const { path, body } = fileOf(TEXT);
    const { port, lines } = await startServer([respondWith(body)]);
    truncateSync(path, 50_000);
    const { socket, received, closed } = await open(port);
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await closed;
    expect(received().length).toBeLessThan(60_000);
    expect(lines).toMatchObject([
      { level: "error", status: 500, err: { message: "the file is shorter than before" } },
    ]);
  });
});
