import { afterEach, describe, expect, test, vi } from "vitest";
import { createLogger } from "../../../src/telemetry/log.ts";
import { noAddress } from "../../support/fixtures/no-address.ts";

afterEach(() => {
  vi.useRealTimers();
});

describe("a log line", () => {
  const lines: string[] = [];
  const log = createLogger("info", "test", { write: (line) => lines.push(line) });

  test.each([
    { authorization: "hunter2" },
    { Authorization: "hunter2" },
    { secret: "hunter2" },
    { keyId: "hunter2" },
    { keySecret: "hunter2" },
    { headers: { authorization: "hunter2" } },
    { request: { headers: { authorization: "hunter2" } } },
    { req: { rawHeaders: ["Authorization", "hunter2"] } },
    { err: Object.assign(new Error("it failed"), { request: { authorization: "hunter2" } }) },
    { err: new Error("invalid header Authorization: Basic hunter2") },
    { err: new Error("it failed", { cause: new Error("token Bearer hunter2 is no longer valid") }) },
    { err: "refused: Basic hunter2" },
  ])("never contains the credential in %j", (fields) => {
    lines.length = 0;
    log.info(fields, "something happened");
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain("hunter2");
    expect(lines[0]).toContain("something happened");
  });
});

test("a log line about a name with several addresses has the error of the first address", () => {
  const lines: string[] = [];
  const log = createLogger("info", "test", { write: (line) => lines.push(line) });
  const cause = noAddress();
  log.warn({ err: cause }, "no connection");
  log.warn({ err: new Error("no response", { cause }) }, "no connection");
  expect(lines.map((line) => JSON.parse(line).err)).toMatchObject([
    { type: "AggregateError", message: "connect ECONNREFUSED ::1:1" },
    { message: "no response", cause: "AggregateError: connect ECONNREFUSED ::1:1" },
  ]);
});

test("each log line has its time in UTC, with milliseconds", () => {
  const lines: string[] = [];
  const log = createLogger("info", "api", { write: (line) => lines.push(line) });
  const times = ["2026-03-01T10:00:00.000Z", "2026-03-01T10:00:00.001Z", "2026-03-01T11:00:00.000Z"];
  vi.useFakeTimers();
  for (const time of times) {
    vi.setSystemTime(time);
    log.info("request");
  }
  expect(lines.map((line) => JSON.parse(line).time)).toEqual(times);
});
