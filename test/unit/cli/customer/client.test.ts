import { describe, expect, test } from "vitest";
import * as z from "zod";
import { ERRORS } from "../../../../src/api/error-table.ts";
import type { Access } from "../../../../src/cli/customer/access.ts";
import { ApiClient } from "../../../../src/cli/customer/client.ts";
import { ErrorResponse, NoResponse } from "../../../../src/cli/customer/errors.ts";
import { nothing, organizations } from "../../../../src/cli/customer/responses.ts";
import type { ApiRequest, RawResponse } from "../../../../src/cli/customer/transport.ts";
import { Interruption } from "../../../../src/cli/io.ts";
import { done, type FakeResponse, REQUEST_ID, refused } from "../../../support/fakes/fake-http-server.ts";

const ACCESS: Access = {
  url: "https://api.example.com",
  authorization: "Basic secret",
  keySuffix: "x7Qd",
  ca: undefined,
  profile: "prod",
  flags: " --profile prod",
};
const GET: ApiRequest = { method: "GET", path: "/v1/organizations" };
const GET_SERVICE: ApiRequest = { method: "GET", path: "/v1/organizations/o/services/s/pipesCdcScaling" };
const PATCH: ApiRequest = { method: "PATCH", path: "/v1/x", body: {} };

function raw({ status = 200, headers = {}, body }: FakeResponse): RawResponse {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return {
    status,
    headers: { "content-type": "application/json", ...Object.fromEntries(lower) },
    text,
  };
}

/** A client of an API that sends these responses in order, and then repeats the last one. */
function clientOf(responses: readonly (FakeResponse | Error)[], signal = new AbortController().signal) {
  const logged: string[] = [];
  const waits: number[] = [];
  let sent = 0;
  const api = new ApiClient({
    access: ACCESS,
    transport: {
      async send() {
        const response = responses[Math.min(sent, responses.length - 1)];
        sent += 1;
        if (response === undefined || response instanceof Error) throw response;
        return raw(response);
      },
    },
    tell: (sentence) => logged.push(sentence),
    async wait(ms) {
      waits.push(ms);
      signal.throwIfAborted();
    },
    signal,
  });
  return { api, logged, waits, sent: () => sent };
}

const anything = z.unknown();

async function messageOf(pending: Promise<unknown>): Promise<string> {
  return await pending.then(
    () => "it succeeded",
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}

describe("a request with the response 200", () => {
  test("returns the result and the request ID", async () => {
    const { api } = clientOf([
      done([{ id: "o", name: "Acme", createdAt: "2026-01-31T12:00:00.000Z", x: 1 }]),
    ]);
    expect(await api.request(GET, organizations)).toEqual({
      requestId: REQUEST_ID,
      result: [{ id: "o", name: "Acme", createdAt: "2026-01-31T12:00:00.000Z", x: 1 }],
    });
  });

  test("may have no result", async () => {
    const { api } = clientOf([{ body: { requestId: REQUEST_ID, status: 200 } }]);
    expect(await api.request({ method: "DELETE", path: "/v1/x" }, nothing)).toMatchObject({
      result: undefined,
    });
  });
});

describe("the retry of a request", () => {
  test.each([
    ["429 with Retry-After", GET, refused(429, "Too many.", { "Retry-After": "3" }), 3000],
    ["429 with X-RateLimit-Reset alone", GET, refused(429, "Too many.", { "X-RateLimit-Reset": "7" }), 7000],
    ["429 to a write", PATCH, refused(429, "Too many.", { "Retry-After": "1" }), 1000],
    ["503 to a read", GET, refused(503, "Not now.", { "Retry-After": "2" }), 2000],
    ["503 to a write", PATCH, refused(503, "Not now.", { "Retry-After": "2" }), 2000],
    ["503 with a date", GET, refused(503, "Not now.", { "Retry-After": "Fri, 31 Dec 1999" }), 5000],
    ["a gateway's 502", GET, { status: 502, body: "<html>" }, 5000],
    ["a gateway's 429", GET, { status: 429, body: "<html>", headers: { "Retry-After": "3" } }, 3000],
    ["a gateway's 429 in other JSON", PATCH, { status: 429, body: { message: "Slow down" } }, 5000],
  ])("happens after a reported delay and succeeds: %s", async (_, request, response, waitMs) => {
    const { api, logged, waits } = clientOf([response, response, done(1)]);
    expect((await api.request(request, anything)).result).toBe(1);
    expect(waits).toEqual([waitMs, waitMs]);
    expect(logged[0]).toMatch(new RegExp(` Trying again in ${waitMs / 1000} s\\.$`));
  });

  test("stops after five attempts, or if the total delay would exceed a minute", async () => {
    const soon = clientOf([refused(503, "Not now.", { "Retry-After": "1" })]);
    expect(await messageOf(soon.api.request(GET, anything))).toContain("Not now. (status 503");
    expect([soon.sent(), soon.waits]).toEqual([5, [1000, 1000, 1000, 1000]]);
    const late = clientOf([refused(429, "Too many.", { "Retry-After": "40" })]);
    expect(await messageOf(late.api.request(GET, anything))).toContain("Too many.");
    expect(late.waits).toEqual([40_000]);
    const tooLate = clientOf([refused(429, "Too many.", { "Retry-After": "86400" })]);
    expect(await messageOf(tooLate.api.request(GET, anything))).toContain("Too many.");
    expect(tooLate.sent()).toBe(1);
  });

  test.each([
    ["400", refused(400, "No.")],
    ["401", refused(401, "No.")],
    ["409", refused(409, "No.")],
    ["500", refused(500, "Oh.", { "Retry-After": "1" })],
    ["a gateway's 500", { status: 500, body: "<html>" }],
    ["no response", new NoResponse("It is gone.")],
  ])("does not happen after %s", async (_, response) => {
    const { api, sent } = clientOf([response]);
    await expect(api.request(PATCH, anything)).rejects.toThrow();
    expect(sent()).toBe(1);
  });

  const DELETE: ApiRequest = { method: "DELETE", path: "/v1/x" };
  const gone = refused(404, ERRORS.NoSuchMember.sentence(), { "X-Request-Id": "request-2" });

  const notConfirmed = refused(503, ERRORS.NotConfirmed.sentence());

  test.each([
    ["the API did not confirm it", notConfirmed, REQUEST_ID],
    ["a gateway's 504", { status: 504, body: "<html>" }, "request-2"],
    ["a gateway's 504 in JSON", { status: 504, body: { error: "Timeout", status: 504 } }, "request-2"],
  ])(
    "counts 404 as a success of a deletion that may have been made before: %s",
    async (_, first, requestId) => {
      const { api, sent } = clientOf([first, refused(503, "Not now."), gone]);
      expect(await api.request(DELETE, nothing)).toEqual({ requestId, result: undefined });
      expect(sent()).toBe(3);
    },
  );

  test.each([
    ["the deletion was not sent before", DELETE, [gone]],
    ["a rate limit rejected the first attempt", DELETE, [refused(429, "Too many."), gone]],
    ["a gateway rejected the first attempt", DELETE, [{ status: 429, body: "<html>" }, gone]],
    ["the request is no deletion", PATCH, [notConfirmed, gone]],
    ["the first attempt changed nothing", DELETE, [refused(503, ERRORS.Unavailable.sentence()), gone]],
    ["there is no such service", DELETE, [notConfirmed, refused(404, ERRORS.NoSuchService.sentence())]],
  ])("fails after 404 if %s", async (_, request, responses) => {
    const { api } = clientOf(responses);
    await expect(api.request(request, nothing)).rejects.toThrow(/^There is no such (member|service) /);
  });

  test.each([
    ["the API", refused(503, ERRORS.EndNotConfirmed.sentence())],
    ["an older API", notConfirmed],
    ["a gateway", { status: 504, body: "<html>" }],
    ["a gateway that the API did not respond to", { status: 524, body: "<html>" }],
    ["a gateway with JSON like that of the API", refused(504, "Gateway Timeout")],
  ])(
    "does not happen if the end of a boost is in doubt, because it could end another one: %s",
    async (_, response) => {
      const { api, sent } = clientOf([response]);
      const message = await messageOf(api.request({ method: "DELETE", path: "/v1/x/boost" }, nothing));
      expect(message).toMatch(
        /Get the boost before you repeat the request|Before you repeat the command, run it without --end/,
      );
      expect(message).not.toContain("It is safe to repeat the command");
      expect(sent()).toBe(1);
    },
  );

  test("does not happen after an interrupt", async () => {
    const stop = new AbortController();
    const { api, sent } = clientOf([refused(503, "Not now.")], stop.signal);
    const pending = api.request(GET, anything);
    stop.abort(new Interruption("SIGINT", 130));
    await expect(pending).rejects.toBe(stop.signal.reason);
    await expect(api.request(GET, anything)).rejects.toBe(stop.signal.reason);
    expect(sent()).toBe(1);
  });
});

test("a write in progress is not interrupted, and its response is reported", async () => {
  const stop = new AbortController();
  const logged: string[] = [];
  const api = new ApiClient({
    access: ACCESS,
    transport: {
      async send(_, signal) {
        stop.abort(new Interruption("SIGINT", 130));
        expect(signal).toBeUndefined();
        return raw(done(1));
      },
    },
    tell: (sentence) => logged.push(sentence),
    wait: async () => undefined,
    signal: stop.signal,
  });
  expect((await api.request(PATCH, anything)).result).toBe(1);
  expect(logged).toEqual([
    "Waiting for the response to the change. If you press Ctrl-C again, the outcome is unknown.",
  ]);
});

describe("the error message for", () => {
  const ID = `request ${REQUEST_ID}`;

  test("401 lists possible problems with the key, and identifies the key without revealing its ID", async () => {
    const { api } = clientOf([refused(401, "Authentication failed.")]);
    expect(await messageOf(api.request(GET, anything))).toBe(
      `https://api.example.com does not accept the key that ends in x7Qd of the profile prod: it is unknown, disabled or expired, or its secret is wrong. Check the address, ask an admin of the organization for the state of the key (\`pipe-scaling keys\`), or set another secret with \`pipe-scaling profile set prod\`. (status 401, ${ID})`,
    );
  });

  test.each([
    [
      403,
      GET,
      "The roles of this key do not allow this operation: it needs the role admin.",
      `The roles of this key do not allow this operation: it needs the role admin. The roles and the ipAccessList of the key decide this: \`pipe-scaling keys --profile prod\` shows both, unless they forbid that, too. (status 403, ${ID})`,
    ],
    [
      404,
      GET,
      "There is no such organization.",
      `There is no such organization. Check the address and the ID: \`pipe-scaling organizations --profile prod\` shows the organization of the key. (status 404, ${ID})`,
    ],
    [
      404,
      GET_SERVICE,
      "There is no such service in this organization.",
      `There is no such service in this organization. Check the ID: \`pipe-scaling services --profile prod\` lists the services, and \`pipe-scaling organizations --profile prod\` shows the organization of the key. (status 404, ${ID})`,
    ],
    [
      404,
      GET,
      ERRORS.NoSuchPath.sentence(),
      `${ERRORS.NoSuchPath.sentence()} Check the address of the API and its base path, and whether the API is older than this program (\`pipe-scaling --version\`). (status 404, ${ID})`,
    ],
    [400, PATCH, "The size is too large.", `The size is too large. (status 400, ${ID})`],
    [
      500,
      PATCH,
      "Something went wrong on our side.",
      `Something went wrong on our side. The change may or may not have been made. It is safe to repeat the command. (status 500, ${ID})`,
    ],
    [503, PATCH, ERRORS.NotConfirmed.sentence(), `${ERRORS.NotConfirmed.sentence()} (status 503, ${ID})`],
    [500, GET, "Something went wrong on our side.", `Something went wrong on our side. (status 500, ${ID})`],
  ])("%i is the API's message and the next step", async (status, request, message, sentence) => {
    const { api } = clientOf([refused(status, message)]);
    expect(await messageOf(api.request(request, anything))).toBe(sentence);
  });

  const inDoubt =
    "is not available. The change may or may not have been made. It is safe to repeat the command.";

  test.each([
    [429, GET, "gets too many requests."],
    [429, PATCH, "gets too many requests."],
    [500, GET, "is not available."],
    [500, PATCH, inDoubt],
    [503, PATCH, inDoubt],
    [524, PATCH, inDoubt],
  ])("%i of a gateway says what is known about the request: %j", async (status, request, sentence) => {
    for (const body of ["<html>", { message: "no" }]) {
      const { api } = clientOf([{ status, body }]);
      const expected = `https://api.example.com ${sentence} (status ${status})`;
      expect(await messageOf(api.request(request, anything))).toBe(expected);
      // A watch tries again only after these.
      await expect(api.requestOnce(request, anything)).rejects.toBeInstanceOf(ErrorResponse);
    }
  });

  test("a response with control codes contains none of them", async () => {
    const { api } = clientOf([refused(400, "\u001b[2Jred\u0007\n", { "X-Request-Id": "\u001b]0;a" })]);
    expect(await messageOf(api.request(GET, anything))).not.toMatch(/\p{Cc}/u);
  });

  test.each([
    ["an HTML page", { body: "<html>" }, "(status 200, application/json)"],
    ["other JSON", { body: { hello: 1 } }, "(status 200"],
    ["a 404 page", { status: 404, body: "<html>", headers: { "Content-Type": "text/html" } }, "text/html"],
    ["the error of another server", { status: 403, body: { message: "no" } }, "(status 403"],
    [
      "a redirect",
      { status: 301, body: "", headers: { Location: "https://api.example.com/login" } },
      'to "https://api.example.com/login"',
    ],
  ])("%s reports that the server is not this API", async (_, response: FakeResponse, part) => {
    const { api } = clientOf([response]);
    const message = await messageOf(api.request(GET, anything));
    expect(message).toMatch(
      /^The server at https:\/\/api\.example\.com is not this API \(status .*\)\. Specify the address of the API without \/v1\.$/,
    );
    expect(message).toContain(part);
  });

  test("an unexpected result names the field and suggests another version of pipe-scaling", async () => {
    const { api } = clientOf([done([{ id: 5, name: "a", createdAt: "" }])]);
    expect(await messageOf(api.request(GET, organizations))).toMatch(
      /does not match this version of pipe-scaling: result\.0\.id: .*expected string.*\. Use the pipe-scaling version of the API\. \(request /,
    );
  });
});
