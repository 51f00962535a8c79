import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { type ApiRequest, type ApiResponse, exchangeRaw, openRaw, parseRaw } from "./client.ts";
import { setUpApi, setUpEnvironment, setUpTenant } from "./fixtures.ts";

const environment = setUpEnvironment("bodies");
const { serviceId, path, admin } = setUpTenant(environment);
const api = setUpApi(environment);
const { authorization } = admin;

const JSON_TYPE = { "Content-Type": "application/json" };

function patch(body: string | Buffer | undefined, send: Partial<ApiRequest> = {}): Promise<ApiResponse> {
  return api.send({ method: "PATCH", path, authorization, headers: JSON_TYPE, body, ...send });
}

async function resourceVersion(): Promise<string> {
  return (await environment.scaling(serviceId)).metadata.resourceVersion;
}

/** Checks that a rejected body changes nothing and gets a short error. */
async function expectRefusal(
  status: number,
  send: () => Promise<ApiResponse>,
  text = "",
): Promise<ApiResponse> {
  const before = await resourceVersion();
  const response = await send();
  expect(response).toMatchObject({ status, body: { status, error: expect.stringContaining(text) } });
  // The error itself is at most 500 characters.
  expect(response.text.length).toBeLessThan(600);
  expect(await resourceVersion()).toBe(before);
  return response;
}

const CPU_RULE = "replicaCpuMillicores must be an integer from 1000 to 24000, a multiple of 1000";
const MEMORY_RULE = "replicaMemoryGb must be a number from 4 to 96, a multiple of 4";

describe("numbers", () => {
  it.each(["4000", "4000.0", "4e3", "4E+3", "40000e-1", "4000.0000000000001"])(
    "are accepted: %s",
    async (number) => {
      const response = await patch(`{"replicaCpuMillicores": ${number}}`);
      expect(response).toMatchObject({
        status: 200,
        body: { result: { replicaCpuMillicores: 4000, replicaMemoryGb: 16 } },
      });
      expect(response.text).toContain('"replicaCpuMillicores":4000,');
    },
  );

  it.each([
    "-0",
    "0",
    "1e400",
    "9007199254740993",
    "4000.5",
    '"4000"',
    "[4000]",
    "null",
    "true",
    "{}",
    "500",
    "25000",
    "-4000",
  ])("are rejected with the rule of the field: %s", async (number) => {
    await expectRefusal(400, () => patch(`{"replicaCpuMillicores": ${number}}`), CPU_RULE);
    await expectRefusal(400, () => patch(`{"replicaMemoryGb": ${number}}`), MEMORY_RULE);
  });

  it.each(["NaN", "Infinity", "0x10", "04000", "+4000", "4000.", ".5", "4_000", "4000n", "1e", "-"])(
    "are rejected as invalid JSON: %s",
    async (number) => {
      await expectRefusal(400, () => patch(`{"replicaCpuMillicores": ${number}}`), "not JSON");
    },
  );

  it("are accepted at both bounds", async () => {
    for (const cores of [1, 24]) {
      const size = { replicaCpuMillicores: cores * 1000, replicaMemoryGb: cores * 4 };
      expect(await patch(JSON.stringify(size))).toMatchObject({ status: 200, body: { result: size } });
    }
  });
});

describe("the validation of a body", () => {
  it.each([
    ["no fields", "{}", "must have replicaCpuMillicores, replicaMemoryGb or both"],
    [
      "two contradictory fields",
      '{"replicaCpuMillicores":4000,"replicaMemoryGb":8}',
      "replicaMemoryGb must be exactly 4 times the number of cores: 16 for",
    ],
    ["an unknown field", '{"replicaCpuMillicores":4000,"replicas":3}', '"replicas" is not a field'],
    ["a name in another case", '{"ReplicaCpuMillicores":4000}', '"ReplicaCpuMillicores" is not a field'],
    [
      "a __proto__ field",
      '{"replicaCpuMillicores":4000,"__proto__":{"replicaMemoryGb":16}}',
      '"__proto__" is not a field',
    ],
    [
      "duplicate keys with different values",
      '{"replicaCpuMillicores":4000,"replicaCpuMillicores":8000}',
      'the key "replicaCpuMillicores" occurs twice',
    ],
    [
      "duplicate keys, one of them escaped",
      '{"replicaCpuMillicores":4000,"replic\\u0061CpuMillicores":8000}',
      "occurs twice",
    ],
    ["null", "null", "must be a JSON object"],
    ["an array", '[{"replicaCpuMillicores":4000}]', "must be a JSON object"],
    ["a string", '"x"', "must be a JSON object"],
    ["a number", "4000", "must be a JSON object"],
    ["a comment", '{"replicaCpuMillicores":4000/* four */}', "not JSON"],
    ["text after the object", '{"replicaCpuMillicores":4000}x', "not JSON"],
    ["a second document", '{"replicaCpuMillicores":4000}{}', "not JSON"],
    ["a trailing comma", '{"replicaCpuMillicores":4000,}', "not JSON"],
    ["single quotes", "{'replicaCpuMillicores':4000}", "not JSON"],
    ["only spaces", "   ", "not JSON"],
    ["a byte order mark", '\ufeff{"replicaCpuMillicores":4000}', "not JSON"],
    ["a list of arrays 30,000 deep", "[".repeat(30_000) + "]".repeat(30_000), ""],
    ["a field 10,000 deep", `{"replicaCpuMillicores":${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}}`, ""],
    ["a name of 60,000 characters", `{"${"a".repeat(60_000)}":1}`, "is not a field"],
    [
      "a name of 30,000 characters twice",
      `{"${"a".repeat(30_000)}":1,"${"a".repeat(30_000)}":2}`,
      "occurs twice",
    ],
  ])("rejects %s", async (_what, body, text) => {
    await expectRefusal(400, () => patch(body), text);
  });

  it("accepts the same key twice with the same value", async () => {
    expect((await patch('{"replicaMemoryGb":16,"replicaMemoryGb":16.0}')).status).toBe(200);
  });

  it("reports five of a thousand validation errors", async () => {
    const fields = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`field${at}`, at]));
    const { body } = await expectRefusal(400, () => patch(JSON.stringify(fields)), "and 996 more");
    expect(JSON.stringify(body).match(/is not a field/g)).toHaveLength(5);
  });

  it("reports a field once, even if it breaks several rules", async () => {
    const { text } = await expectRefusal(400, () => patch('{"replicaCpuMillicores":25500}'), CPU_RULE);
    expect(text.match(/replicaCpuMillicores/g)).toHaveLength(1);
  });

  it("reports both fields in one response", async () => {
    const response = await expectRefusal(
      400,
      () => patch('{"replicaCpuMillicores":1,"replicaMemoryGb":"a"}'),
      CPU_RULE,
    );
    expect(response.text).toContain(MEMORY_RULE);
  });

  it("rejects bytes that are not UTF-8", async () => {
    const body = Buffer.concat([Buffer.from('{"a'), Buffer.from([0xc3, 0x28]), Buffer.from('":1}')]);
    await expectRefusal(400, () => patch(body), "not UTF-8");
  });

  it.each([
    ["with a Content-Type", JSON_TYPE],
    ["without a Content-Type", {}],
    ["of length 0", { ...JSON_TYPE, "Content-Length": 0 }],
  ])("rejects a missing body %s", async (_what, headers) => {
    await expectRefusal(400, () => patch(undefined, { headers }), "must have a body");
  });
});

describe("the Content-Type", () => {
  const body = '{"replicaCpuMillicores":4000}';

  it.each([
    "application/json",
    "Application/JSON; Charset=UTF-8",
    'application/json; charset="UTF-8"',
    "application/json;charset=utf-8",
    "application/json; charset=utf8",
    'application/json; charset="UTF8"',
    "application/merge-patch+json",
  ])("may be %s", async (type) => {
    expect((await patch(body, { headers: { "Content-Type": type } })).status).toBe(200);
  });

  it.each([
    {},
    { "Content-Type": "application/x-www-form-urlencoded" },
    { "Content-Type": "text/json" },
    { "Content-Type": "json" },
    { "Content-Type": "application/json-patch+json" },
    { "Content-Type": "application/json; charset=utf-7" },
    { "Content-Type": "application/json; charset=utf-16" },
    { "Content-Type": "application/json; charset=latin1" },
    { "Content-Type": 'application/json; charset=""' },
    { ...JSON_TYPE, "Content-Encoding": "gzip" },
    { ...JSON_TYPE, "Content-Encoding": "identity, gzip" },
  ])("is rejected with 415 if the headers are %j", async (headers) => {
    const response = await expectRefusal(415, () => patch(body, { headers }));
    expect(response.headers["accept-patch"]).toBe("application/json, application/merge-patch+json");
  });

  it("is rejected with 415 if it occurs twice", async () => {
    const type = "Content-Type: application/json\r\n";
    const text = await exchangeRaw(
      api.url,
      `PATCH ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\nConnection: close\r\n${type}${type}Content-Length: 2\r\n\r\n{}`,
    );
    expect(parseRaw(text).status).toBe(415);
  });

  it("is rejected with 415 if the body is compressed", async () => {
    const headers = { ...JSON_TYPE, "Content-Encoding": "gzip" };
    await expectRefusal(415, () => patch(gzipSync(body), { headers }));
  });

  it("may be combined with Content-Encoding: identity", async () => {
    const headers = { ...JSON_TYPE, "Content-Encoding": "identity" };
    expect((await patch(body, { headers })).status).toBe(200);
  });

  it("is independent of the Accept header", async () => {
    const headers = { ...JSON_TYPE, Accept: "text/html", "Accept-Encoding": "br" };
    const response = await patch(body, { headers });
    expect(response).toMatchObject({ status: 200, headers: { "content-type": "application/json" } });
    expect(response.headers).not.toHaveProperty("content-encoding");
  });
});

describe("Expect: 100-continue", () => {
  const body = '{"replicaCpuMillicores":4000}';

  function headOf(length: number, authorizing = `Authorization: ${authorization}\r\n`): string {
    return `PATCH ${path} HTTP/1.1\r\nHost: a\r\n${authorizing}Content-Type: application/json\r\nContent-Length: ${length}\r\nExpect: 100-continue\r\n\r\n`;
  }

  it.each([
    [401, headOf(body.length, "")],
    [413, headOf(65_537)],
    [415, headOf(body.length).replace("application/json", "text/plain")],
    [404, headOf(body.length).replace(serviceId, "11111111-1111-4111-8111-111111111111")],
  ])("gets %i instead of 100 if the request is rejected, and the connection closes", async (status, head) => {
    const text = await exchangeRaw(api.url, head);
    expect(text).not.toContain("100 Continue");
    expect(parseRaw(text)).toMatchObject({ status, headers: { connection: "close" } });
  });

  it("gets 100 before the body if the request is accepted", async () => {
    const connection = await openRaw(api.url);
    connection.write(headOf(body.length).replace("Expect", "Connection: close\r\nExpect"));
    await connection.received("HTTP/1.1 100 Continue\r\n\r\n");
    connection.write(body);
    await connection.closed;
    expect(parseRaw(connection.text().replace("HTTP/1.1 100 Continue\r\n\r\n", ""))).toMatchObject({
      status: 200,
      body: { result: { replicaCpuMillicores: 4000 } },
    });
  });
});

describe("the length of a body", () => {
  const padded = (bytes: number) => '{"replicaCpuMillicores":4000}'.padEnd(bytes, " ");

  it.each([false, true])("may be 65,536 bytes, chunked: %s", async (chunked) => {
    expect((await patch(padded(65_536), { chunked })).status).toBe(200);
  });

  it.each([
    [65_537, false],
    [65_537, true],
    [10_000_000, false],
    [10_000_000, true],
  ])("is rejected with 413 if it is %i bytes, chunked: %s", async (bytes, chunked) => {
    await expectRefusal(413, () => patch(padded(bytes), { chunked }));
  });

  it("is rejected with 413 before the body arrives if Content-Length exceeds the limit", async () => {
    const connection = await openRaw(api.url);
    connection.write(
      `PATCH ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 65537\r\n\r\n`,
    );
    await connection.received("HTTP/1.1 413");
  });

  it("is checked after the Content-Type and before the content", async () => {
    await expectRefusal(415, () => patch(padded(70_000), { headers: { "Content-Type": "text/plain" } }));
    await expectRefusal(413, () => patch("x".repeat(70_000)));
  });
});
