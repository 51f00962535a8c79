import { randomUUID } from "node:crypto";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect, it } from "vitest";
import { backupConfiguration } from "../../src/api/resources/backup/schema.ts";
import { successEnvelope } from "../../src/api/resources/envelopes.ts";
import { isCode } from "../../src/kube/errors.ts";
import type { ConfigMap } from "../../src/kube/objects.ts";
import { CONFIG_MAPS, objectPath } from "../../src/kube/paths.ts";
import { recordLabels } from "../../src/records/labels.ts";
import type { KeyRecord } from "../support/fixtures/records.ts";
import type { ApiResponse } from "./client.ts";
import type { RunningApi } from "./environment.ts";
import { setUpApi, setUpEnvironment, setUpTenant } from "./fixtures.ts";

const environment = setUpEnvironment("backup");
const { organizationId, admin, developer, withoutRole } = setUpTenant(environment);
const { admin: stranger } = setUpTenant(environment);
const api = setUpApi(environment);
const other = setUpApi(environment);

interface How {
  readonly key?: KeyRecord;
  readonly organization?: string;
  readonly of?: RunningApi;
}

function pathOf(service: string, organization = organizationId): string {
  return `/v1/organizations/${organization}/services/${service}/backupConfiguration`;
}

function get(service: string, { key = admin, organization, of = api }: How = {}): Promise<ApiResponse> {
  return of.send({ path: pathOf(service, organization), authorization: key.authorization });
}

function patch(
  service: string,
  body: unknown,
  { key = admin, organization, of = api }: How = {},
): Promise<ApiResponse> {
  return of.send({
    method: "PATCH",
    path: pathOf(service, organization),
    authorization: key.authorization,
    headers: { "Content-Type": "application/json; charset=utf-8" },
    body: JSON.stringify(body),
  });
}

function resultOf({ body }: ApiResponse): unknown {
  return successEnvelope(backupConfiguration).parse(body).result;
}

/** Creates a service and waits until both processes see it. */
async function addService(): Promise<string> {
  const service = await environment.addService(organizationId);
  for (const of of [api, other]) {
    await waitFor(async () => (await get(service, { of })).status === 200, {
      what: "the API to see the service",
    });
  }
  return service;
}

function recordPath(service: string): string {
  return objectPath(CONFIG_MAPS, environment.records, `backup-${service}`);
}

async function record(service: string): Promise<ConfigMap | undefined> {
  try {
    return await environment.admin.json<ConfigMap>({ path: recordPath(service) });
  } catch (error) {
    if (isCode(error, 404)) return undefined;
    throw error;
  }
}

function addBackup(service: string, data: Record<string, string>, labels = true): Promise<void> {
  const metadata = {
    name: `backup-${service}`,
    ...(labels ? { labels: recordLabels("backup", organizationId) } : {}),
  };
  return environment.addRecord({ kind: "ConfigMap", metadata, data });
}

const DEFAULTS = { backupPeriodInHours: 24, backupRetentionPeriodInHours: 24 };

describe("GET backupConfiguration", () => {
  it("returns the defaults, without a start time, for a service without a record", async () => {
    const service = await addService();
    for (const key of [admin, developer]) {
      const response = await get(service, { key });
      expect(response.status).toBe(200);
      expect(resultOf(response)).toEqual(DEFAULTS);
    }
    expect(await record(service)).toBeUndefined();
  });

  it("returns the values in the record, and defaults for all others", async () => {
    const service = await addService();
    await addBackup(service, { backupStartTime: "7:00" });
    const response = await waitFor(
      async () => {
        const seen = await get(service);
        return seen.text.includes("backupStartTime") && seen;
      },
      { what: "the API to see the record" },
    );
    expect(resultOf(response)).toEqual({ ...DEFAULTS, backupStartTime: "7:00" });
  });

  it("fails, like PATCH, only for a malformed record, which is logged once", async () => {
    const service = await addService();
    const sound = await addService();
    await addBackup(service, { backupPeriodInHours: "daily" });
    await waitFor(async () => (await get(service)).status === 500, { what: "the API to see the record" });
    expect((await patch(service, { backupPeriodInHours: 12 })).status).toBe(500);
    expect((await get(sound)).status).toBe(200);
    const logged = api.log.filter((line) => line["record"] === `${environment.records}/backup-${service}`);
    expect(logged).toMatchObject([{ problem: expect.stringContaining("backupPeriodInHours") }]);
  });
});

const LONG = { backupPeriodInHours: 48, backupRetentionPeriodInHours: 72, backupStartTime: "05:00" };

describe("PATCH backupConfiguration", () => {
  it("stores only values that differ from the defaults, and returns them in the next read", async () => {
    const service = await addService();

    const response = await patch(service, LONG);

    const expected = { ...LONG };
    expect(response.status).toBe(200);
    expect(resultOf(response)).toEqual(expected);
    expect(resultOf(await get(service, { key: developer }))).toEqual(expected);
    const written = await record(service);
    expect(written?.data).toEqual({
      backupPeriodInHours: "48",
      backupRetentionPeriodInHours: "72",
      backupStartTime: "05:00",
    });
    expect(written?.metadata.labels).toEqual(recordLabels("backup", organizationId));
    const audit = api.log.find((line) => line["audit"] === "backup" && line["service"] === service);
    expect(audit).toMatchObject({
      requestId: response.headers["x-request-id"],
      apiKey: admin.id,
      organization: organizationId,
    });
  });

  it("changes the record of a service that has moved here from another organization", async () => {
    const service = await addService();
    const labels = recordLabels("backup", randomUUID());
    const metadata = { name: `backup-${service}`, labels };
    await environment.addRecord({ kind: "ConfigMap", metadata, data: { backupStartTime: "7:00" } });
    const change = { backupRetentionPeriodInHours: 48 };
    const expected = { ...DEFAULTS, ...change, backupStartTime: "7:00" };
    const response = await patch(service, change);
    expect(response.status).toBe(200);
    expect(resultOf(response)).toEqual(expected);
    expect((await record(service))?.metadata.labels).toEqual(labels);
  });

  it("keeps absent fields, and resets fields that are null", async () => {
    const service = await addService();
    await patch(service, { backupRetentionPeriodInHours: 48, backupStartTime: "5:00" });
    expect(resultOf(await patch(service, { backupRetentionPeriodInHours: 1080 }))).toEqual({
      ...DEFAULTS,
      backupRetentionPeriodInHours: 1080,
      backupStartTime: "5:00",
    });
    const reset = {
      backupPeriodInHours: null,
      backupRetentionPeriodInHours: null,
      backupStartTime: null,
    };
    expect(resultOf(await patch(service, { ...reset, backupStartTime: "23:00" }))).toEqual({
      ...DEFAULTS,
      backupStartTime: "23:00",
    });
    expect(resultOf(await patch(service, reset))).toEqual(DEFAULTS);
    expect((await record(service))?.data ?? {}).toEqual({});
    expect(resultOf(await get(service))).toEqual(DEFAULTS);
  });

  it.each([
    [12, 24],
    [24, 24],
    [48, 48],
  ])("changes a stored period of %i hours to %i if only a start time is sent", async (before, after) => {
    const service = await addService();
    await patch(service, { backupPeriodInHours: before, backupRetentionPeriodInHours: 72 });
    expect(resultOf(await patch(service, { backupStartTime: "3:00" }))).toEqual({
      backupPeriodInHours: after,
      backupRetentionPeriodInHours: 72,
      backupStartTime: "3:00",
    });
  });

  it("rejects a start time with any other period, and changes nothing", async () => {
    const service = await addService();
    const rule = { status: 400, body: { error: expect.stringMatching(/backupStartTime .* 24 or 48/) } };
    expect(await patch(service, { backupPeriodInHours: 36, backupStartTime: "3:00" })).toMatchObject(rule);
    expect(await record(service)).toBeUndefined();
    await patch(service, { backupStartTime: "3:00" });
    const before = await record(service);
    expect(await patch(service, { backupPeriodInHours: 12 })).toMatchObject(rule);
    expect(await record(service)).toEqual(before);
    expect((await patch(service, { backupPeriodInHours: 12, backupStartTime: null })).status).toBe(200);
  });

  it("rejects a retention that is shorter than the period, sent or stored, and raises one that is not sent", async () => {
    const service = await addService();
    const refusal = /^backupRetentionPeriodInHours.* must not be shorter than backupPeriodInHours.*\.$/;
    const rule = { status: 400, body: { error: expect.stringMatching(refusal) } };
    const shorter = { backupPeriodInHours: 48, backupRetentionPeriodInHours: 24 };
    expect(await patch(service, shorter)).toMatchObject(rule);
    expect(await record(service)).toBeUndefined();
    const raised = { status: 200, body: { result: { backupRetentionPeriodInHours: 48 } } };
    // The default retention is 24 hours.
    expect(await patch(service, { backupPeriodInHours: 36 })).toMatchObject(raised);
    expect(await patch(service, { ...shorter, backupRetentionPeriodInHours: null })).toMatchObject(raised);
    await patch(service, LONG);
    const before = await record(service);
    expect(await patch(service, { backupRetentionPeriodInHours: 24 })).toMatchObject(rule);
    expect(await record(service)).toEqual(before);
    expect((await patch(service, { backupRetentionPeriodInHours: 48 })).status).toBe(200);
  });

  it.each([
    [{ backupPeriodInHours: 7 }, "backupPeriodInHours must be one of 6, 8, 12, 16, 20, 24, 36, 48"],
    [{ backupPeriodInHours: "24" }, "backupPeriodInHours"],
    [{ backupPeriodInHours: [24] }, "backupPeriodInHours"],
    [{ backupRetentionPeriodInHours: 0 }, "from 24 to 1080, a multiple of 24"],
    [{ backupRetentionPeriodInHours: 23.5 }, "backupRetentionPeriodInHours"],
    [{ backupRetentionPeriodInHours: 1104 }, "backupRetentionPeriodInHours"],
    [{ backupRetentionPeriodInHours: 36 }, "backupRetentionPeriodInHours"],
    [{ backupStartTime: "24:00" }, "backupStartTime"],
    [{ backupStartTime: "5:30" }, "backupStartTime"],
    [{ backupStartTime: "005:00" }, "backupStartTime"],
    [{ backupStartTime: "5:00\n" }, "backupStartTime"],
    [{ backupStartTime: "5" }, "backupStartTime"],
    [{ backupStartTime: "" }, "backupStartTime"],
    [{ backupStartTime: 5 }, "backupStartTime"],
    [{ backupStart: "5:00" }, '"backupStart" is not a field'],
    [{}, "must have backupPeriodInHours"],
    [[], "must be a JSON object"],
    [null, "must be a JSON object"],
  ])("rejects %j", async (body, error) => {
    const service = await addService();
    const response = await patch(service, body);
    expect(response).toMatchObject({
      status: 400,
      body: { status: 400, error: expect.stringContaining(error) },
    });
    expect(await record(service)).toBeUndefined();
  });

  it("keeps concurrent changes of two processes", async () => {
    for (let round = 0; round < 5; round += 1) {
      const service = await addService();
      const responses = await Promise.all([
        patch(service, { backupPeriodInHours: 12 }),
        patch(service, { backupRetentionPeriodInHours: 72 }, { of: other }),
        patch(service, { backupRetentionPeriodInHours: 72 }, { of: api }),
        patch(service, { backupPeriodInHours: 12 }, { of: other }),
      ]);
      expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      expect((await record(service))?.data).toEqual({
        backupPeriodInHours: "12",
        backupRetentionPeriodInHours: "72",
      });
    }
  });

  it("uses the stored record instead of a stale cache", async () => {
    const service = await addService();
    await patch(service, { backupStartTime: "3:00" });
    // One process may not have observed the write of the other one yet, and must not undo it.
    await patch(service, { backupPeriodInHours: 12, backupStartTime: null }, { of: other });
    const response = await patch(service, { backupRetentionPeriodInHours: 48 });
    expect(resultOf(response)).toEqual({ backupPeriodInHours: 12, backupRetentionPeriodInHours: 48 });
  });

  it("updates a record without labels, which the watch does not include", async () => {
    const service = await addService();
    await addBackup(service, { backupPeriodInHours: "12" }, false);
    const response = await patch(service, { backupRetentionPeriodInHours: 48 });
    expect(resultOf(response)).toEqual({ backupPeriodInHours: 12, backupRetentionPeriodInHours: 48 });
    expect((await record(service))?.metadata.labels).toEqual(recordLabels("backup", organizationId));
  });

  it("recreates the record if it was deleted meanwhile", async () => {
    const service = await addService();
    for (let round = 0; round < 5; round += 1) {
      await patch(service, { backupPeriodInHours: 12 });
      await environment.admin.json({ method: "DELETE", path: recordPath(service) });
      expect((await patch(service, { backupRetentionPeriodInHours: 48 })).status).toBe(200);
      expect((await record(service))?.data).toEqual({ backupRetentionPeriodInHours: "48" });
    }
  });
});

describe("a request for a backup configuration", () => {
  it("of another tenant gets the same response as for an absent one, for reads and writes", async () => {
    const service = await addService();
    const responses: ApiResponse[] = [];
    for (const path of [service, randomUUID()]) {
      responses.push(await get(path, { key: stranger }));
      responses.push(await patch(path, { backupPeriodInHours: 12 }, { key: stranger }));
      responses.push(await get(path, { organization: randomUUID() }));
    }
    for (const response of responses)
      expect(response).toMatchObject({ status: 404, text: responses[0]?.text });
    const absent = await get(randomUUID());
    expect(absent).toMatchObject({
      status: 404,
      body: { error: "There is no such service in this organization." },
    });
    expect(await record(service)).toBeUndefined();
  });

  it("may only read with the role developer, and is denied with other roles", async () => {
    const service = await addService();
    const change = { backupPeriodInHours: 12 };
    expect((await get(service, { key: developer })).status).toBe(200);
    expect((await patch(service, change, { key: developer })).status).toBe(403);
    expect((await get(service, { key: withoutRole })).status).toBe(403);
    expect((await patch(service, change, { key: withoutRole })).status).toBe(403);
    expect(await record(service)).toBeUndefined();
  });

  it("gets 400 for malformed IDs", async () => {
    expect((await get("nothing")).status).toBe(400);
    expect((await get(randomUUID(), { organization: "%zz" })).status).toBe(400);
  });
});
