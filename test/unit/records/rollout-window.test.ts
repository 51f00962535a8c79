import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type RolloutWindow, WINDOW_SCOPES } from "../../../src/domain/rollout-window.ts";
import {
  organizationConfigMap,
  organizationConfigMapName,
  parseOrganization,
} from "../../../src/records/organization.ts";
import { formatRolloutWindow, parseRolloutWindow } from "../../../src/records/rollout-window.ts";
import { parseService, serviceConfigMap } from "../../../src/records/service.ts";
import { organizationRecord, serviceRecord } from "../../support/fixtures/records.ts";

const SATURDAYS: RolloutWindow = {
  schedule: "0 2 * * 6",
  durationMs: 4 * 3_600_000,
  timeZone: "Europe/Berlin",
  appliesTo: "restarts",
};

describe("parseRolloutWindow", () => {
  it.each([
    '{schedule: "0 2 * * 6", duration: 4h, timeZone: Europe/Berlin}',
    "schedule: 0 2 * * 6\nduration: 240m\ntimeZone: Europe/Berlin\n",
    '{"schedule": "0 2 * * 6", "duration": "4h", "timeZone": "Europe/Berlin"}',
  ])("reads the YAML map %j", (text) => {
    expect(parseRolloutWindow(text)).toEqual({ ok: true, value: SATURDAYS });
  });

  it("reads what waits for the window", () => {
    expect(parseRolloutWindow('{schedule: "0 2 * * 6", duration: 4h, appliesTo: all}')).toMatchObject({
      value: { appliesTo: "all" },
    });
  });

  it("uses UTC if no time zone is given", () => {
    expect(parseRolloutWindow('{schedule: "0 2 * * 6", duration: 4h}')).toEqual({
      ok: true,
      value: { ...SATURDAYS, timeZone: "UTC" },
    });
  });

  it.each([
    ["", /^it must be a YAML map such as \{schedule: /],
    ["always", /^it must be a YAML map such as /],
    ["[1, 2]", /^it must be a YAML map such as /],
    ["{schedule: * 2 * * 6, duration: 4h}", /^it must be a YAML map .* with the schedule in quotes$/],
    ["{duration: 4h}", /^its schedule is missing$/],
    ['{schedule: "0 2 * * 6"}', /^its duration is missing$/],
    ['{schedule: "0 2 * *", duration: 4h}', /^its schedule must be a cron expression of five fields /],
    ['{schedule: "0 2 30 2 *", duration: 4h}', /^its schedule never fires: it matches no date$/],
    [
      '{schedule: "0 2 * * 6", duration: 4h, timeZone: CEST}',
      /^its timeZone must be the IANA name of a time zone, such as Europe\/Berlin$/,
    ],
    ['{schedule: "0 2 * * 6", duration: 4h, appliesTo: rollouts}', /^its appliesTo must be restarts or all$/],
    [
      '{schedule: "0 2 * * 6", duration: 4h, timezone: Europe/Berlin}',
      /^it has the unknown key timezone: the valid keys are schedule, duration, timeZone and appliesTo$/,
    ],
    ["{schedule: x, duration: y}", /^its schedule must be .*; its duration must be /],
  ])("rejects %j with a sentence about the problem", (text, problem) => {
    expect(parseRolloutWindow(text)).toEqual({ ok: false, problem: expect.stringMatching(problem) });
  });

  it.each(["14m", "169h", "0h", "4", "4d", "4 h", "1h30m", "-4h", "PT4H", "99999999h"])(
    "rejects the duration %j and lists the allowed durations",
    (duration) => {
      expect(parseRolloutWindow(`{schedule: "0 2 * * 6", duration: ${duration}}`)).toEqual({
        ok: false,
        problem: "its duration must be a duration from 15m to 168h, such as 90m or 4h",
      });
    },
  );

  it.each(["15m", "168h"])("accepts the minimum or maximum duration %s", (duration) => {
    expect(parseRolloutWindow(`{schedule: "0 2 * * 6", duration: ${duration}}`)).toMatchObject({ ok: true });
  });

  it("never throws for any text", () => {
    const words = fc.constantFrom(
      "schedule",
      "duration",
      "timeZone",
      "{",
      "}",
      ":",
      " ",
      "*",
      "&a",
      "4h",
      "\n",
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(words).map((each) => each.join("")),
        ),
        (text) => {
          parseRolloutWindow(text);
        },
      ),
    );
  });
});

describe("formatRolloutWindow", () => {
  it("returns one readable line", () => {
    expect(formatRolloutWindow(SATURDAYS)).toBe(
      '{ schedule: "0 2 * * 6", duration: "4h", timeZone: "Europe/Berlin", appliesTo: "restarts" }',
    );
  });

  it("returns text that parseRolloutWindow accepts", () => {
    const windows = fc.record({
      schedule: fc.constantFrom("*/5 * * * *", "0 2 * * SAT#1", `${"0,".repeat(200)}1 2 * * 6`),
      durationMs: fc.integer({ min: 15, max: 7 * 24 * 60 }).map((minutes) => minutes * 60_000),
      timeZone: fc.constantFrom("UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires"),
      appliesTo: fc.constantFrom(...WINDOW_SCOPES),
    });
    fc.assert(
      fc.property(windows, (window) => {
        const text = formatRolloutWindow(window);
        expect(text).not.toContain("\n");
        expect(parseRolloutWindow(text)).toEqual({ ok: true, value: window });
      }),
    );
  });
});

describe("the records of organizations and services", () => {
  const malformed = { rolloutWindow: '{schedule: "0 2 * * 6", duration: 1m}' };
  const problem = "rolloutWindow: its duration must be a duration from 15m to 168h, such as 90m or 4h";

  it("contain the rollout window of an organization, and are malformed if the window is malformed", () => {
    const id = randomUUID();
    const organization = { id, name: "Acme", createdAt: new Date(0), tier: "basic" };
    const { data } = organizationConfigMap({ ...organization, rolloutWindow: SATURDAYS });
    expect(parseOrganization(organizationConfigMapName(id), data)).toMatchObject({
      ok: true,
      value: { ...organization, rolloutWindow: SATURDAYS },
    });
    const record = organizationRecord({ id });
    expect(parseOrganization(record.metadata.name, { ...record.data, ...malformed })).toEqual({
      ok: false,
      problem,
    });
  });

  it("contain the rollout window of a service, and are malformed if the window is malformed", () => {
    const service = {
      id: randomUUID(),
      organizationId: randomUUID(),
      name: "orders",
      namespace: "pipes",
      rolloutWindow: SATURDAYS,
    };
    const { metadata, data } = serviceConfigMap(service);
    expect(parseService(metadata.name, metadata.labels, data)).toEqual({ ok: true, value: service });
    expect(parseService(metadata.name, metadata.labels, { ...data, ...malformed })).toEqual({
      ok: false,
      problem,
    });
  });

  it("have no key for the rollout window if no window is set", () => {
    expect(organizationRecord().data).not.toHaveProperty("rolloutWindow");
    const record = serviceRecord({ organizationId: randomUUID(), namespace: "pipes" });
    expect(record.data).not.toHaveProperty("rolloutWindow");
  });
});
