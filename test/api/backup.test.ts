import { randomUUID } from "node:crypto";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { backupConfiguration } from "../../src/api/resources/backup/schema.ts";
import { successEnvelope } from "../../src/api/resources/envelopes.ts";
import { isCode } from "../../src/kube/errors.ts";
import type { ConfigMap } from "../../src/kube/objects.ts";
import { CONFIG_MAPS, objectPath } from "../../src/kube/paths.ts";
import { recordLabels } from "../../src/records/labels.ts";
import type { Answer } from "./client.ts";
import { createWorld, type RunningApi, type World } from "./world.ts";

let world: World;
let api: RunningApi;
let other: RunningApi;
let organizationId: string;
let admin: string;
let adminKeyId: string;
let developer: string;
let stranger: string;
let nobody: string;

beforeAll(async () => {
  world = await createWorld("backup");
  [api, other] = await Promise.all([world.startReadyApi(), world.startReadyApi()]);
  organizationId = await world.addOrganization();
  ({ authorization: admin, id: adminKeyId } = await world.addKey({ organizationId }));
  ({ authorization: developer } = await world.addKey({ organizationId, roles: ["developer"] }));
  ({ authorization: stranger } = await world.addKey({ organizationId: await world.addOrganization() }));
  ({ authorization: nobody } = await world.addKey({ organizationId, roles: ["billing"] }));
  for (const key of [admin, developer, stranger, nobody]) await api.admits(key);
  await other.admits(nobody);
});

afterAll(async () => {
  await Promise.all([api?.stop(), other?.stop()]);
  await world?.remove();
});

interface How {
  readonly authorization?: string;
  readonly organization?: string;
  readonly of?: RunningApi;
}

function pathOf(service: string, organization = organizationId): string {
  return `/v1/organizations/${organization}/services/${service}/backupConfiguration`;
}

function get(service: string, { authorization = admin, organization, of = api }: How = {}): Promise<Answer> {
  return of.ask({ path: pathOf(service, organization), authorization });
}

function patch(
  service: string,
  body: unknown,
  { authorization = admin, organization, of = api }: How = {},
): Promise<Answer> {
  return of.ask({
    method: "PATCH",
    path: pathOf(service, organization),
    authorization,
    headers: { "Content-Type": "application/json; charset=utf-8" },
    body: JSON.stringify(body),
  });
}

function resultOf({ body }: Answer): unknown {
  return successEnvelope(backupConfiguration).parse(body).result;
}

/** A service that both processes know. */
async function addService(): Promise<string> {
  const service = await world.addService(organizationId);
  for (const of of [api, other]) {
    await waitFor(async () => (await get(service, { of })).status === 200, {
      what: "the service to be known",
    });
  }
  return service;
}

function recordPath(service: string): string {
  return objectPath(CONFIG_MAPS, world.records, `backup-${service}`);
}

async function record(service: string): Promise<ConfigMap | undefined> {
  try {
    return await world.admin.json<ConfigMap>({ path: recordPath(service) });
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
  return world.addRecord({ kind: "ConfigMap", ...{ metadata, data } });
}

const DEFAULTS = { backupPeriodInHours: 24, backupRetentionPeriodInHours: 24 };

describe("GET backupConfiguration", () => {
  it("answers the defaults, without a start time, where nobody has said otherwise", async () => {
    const service = await addService();
    for (const authorization of [admin, developer]) {
      const answer = await get(service, { authorization });
      expect(answer.status).toBe(200);
      expect(resultOf(answer)).toEqual(DEFAULTS);
    }
    expect(await record(service)).toBeUndefined();
  });

  it("answers what a record says, and the defaults for the rest", async () => {
    const service = await addService();
    await addBackup(service, { backupStartTime: "7:00" });
    const answer = await waitFor(
      async () => {
        const seen = await get(service);
        return seen.text.includes("backupStartTime") && seen;
      },
      { what: "the record to be known" },
    );
    expect(resultOf(answer)).toEqual({ ...DEFAULTS, backupStartTime: "7:00" });
  });

  it("fails a malformed record alone, for reading and for writing, and tells it once in the log", async () => {
    const service = await addService();
    const sound = await addService();
    await addBackup(service, { backupPeriodInHours: "daily" });
    await waitFor(async () => (await get(service)).status === 500, { what: "the record to be known" });
    expect((await patch(service, { backupPeriodInHours: 12 })).status).toBe(500);
    expect((await get(sound)).status).toBe(200);
    const told = api.log.filter((line) => line["record"] === `${world.records}/backup-${service}`);
    expect(told).toMatchObject([{ problem: expect.stringContaining("backupPeriodInHours") }]);
  });
});

describe("PATCH backupConfiguration", () => {
  it("writes just what differs from the defaults, and shows it in the next read", async () => {
    const service = await addService();

    const answer = await patch(service, { backupPeriodInHours: 48, backupStartTime: "05:00" });

    const expected = { ...DEFAULTS, backupPeriodInHours: 48, backupStartTime: "05:00" };
    expect(answer.status).toBe(200);
    expect(resultOf(answer)).toEqual(expected);
    expect(resultOf(await get(service, { authorization: developer }))).toEqual(expected);
    const written = await record(service);
    expect(written?.data).toEqual({ backupPeriodInHours: "48", backupStartTime: "05:00" });
    expect(written?.metadata.labels).toEqual(recordLabels("backup", organizationId));
    const audit = api.log.find((line) => line["audit"] === "backup" && line["service"] === service);
    expect(audit).toMatchObject({
      requestId: answer.headers["x-request-id"],
      apiKey: adminKeyId,
      organization: organizationId,
    });
  });

  it("keeps what is absent, and resets what is null", async () => {
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
  ])("turns a stored period of %i hours into %i if only a start time is sent", async (before, after) => {
    const service = await addService();
    await patch(service, { backupPeriodInHours: before });
    expect(resultOf(await patch(service, { backupStartTime: "3:00" }))).toEqual({
      ...DEFAULTS,
      backupPeriodInHours: after,
      backupStartTime: "3:00",
    });
  });

  it("refuses a start time beside any other period, and changes nothing", async () => {
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
  ])("refuses %j", async (body, error) => {
    const service = await addService();
    const answer = await patch(service, body);
    expect(answer).toMatchObject({
      status: 400,
      body: { status: 400, error: expect.stringContaining(error) },
    });
    expect(await record(service)).toBeUndefined();
  });

  it("loses none of what two processes change at once", async () => {
    for (let round = 0; round < 5; round += 1) {
      const service = await addService();
      const answers = await Promise.all([
        patch(service, { backupPeriodInHours: 48 }),
        patch(service, { backupRetentionPeriodInHours: 72 }, { of: other }),
        patch(service, { backupRetentionPeriodInHours: 72 }, { of: api }),
        patch(service, { backupPeriodInHours: 48 }, { of: other }),
      ]);
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      expect((await record(service))?.data).toEqual({
        backupPeriodInHours: "48",
        backupRetentionPeriodInHours: "72",
      });
    }
  });

  it("decides on what is there, not on what it has last seen", async () => {
    const service = await addService();
    await patch(service, { backupStartTime: "3:00" });
    // One process may not have seen the other's write yet: whichever way, it must not undo it.
    await patch(service, { backupPeriodInHours: 12, backupStartTime: null }, { of: other });
    const answer = await patch(service, { backupRetentionPeriodInHours: 48 });
    expect(resultOf(answer)).toEqual({ backupPeriodInHours: 12, backupRetentionPeriodInHours: 48 });
  });

  it("adopts a record without labels, which its watch does not see", async () => {
    const service = await addService();
    await addBackup(service, { backupPeriodInHours: "12" }, false);
    const answer = await patch(service, { backupRetentionPeriodInHours: 48 });
    expect(resultOf(answer)).toEqual({ backupPeriodInHours: 12, backupRetentionPeriodInHours: 48 });
    expect((await record(service))?.metadata.labels).toEqual(recordLabels("backup", organizationId));
  });

  it("makes a record anew that was removed meanwhile", async () => {
    const service = await addService();
    for (let round = 0; round < 5; round += 1) {
      await patch(service, { backupPeriodInHours: 12 });
      await world.admin.json({ method: "DELETE", path: recordPath(service) });
      expect((await patch(service, { backupRetentionPeriodInHours: 48 })).status).toBe(200);
      expect((await record(service))?.data).toEqual({ backupRetentionPeriodInHours: "48" });
    }
  });
});

describe("whose backup configuration it is", () => {
  it("answers the same for a service that is absent and for another's, to reading and to writing", async () => {
    const service = await addService();
    const answers: Answer[] = [];
    for (const path of [service, randomUUID()]) {
      answers.push(await get(path, { authorization: stranger }));
      answers.push(await patch(path, { backupPeriodInHours: 12 }, { authorization: stranger }));
      answers.push(await get(path, { organization: randomUUID() }));
    }
    for (const answer of answers) expect(answer).toMatchObject({ status: 404, text: answers[0]?.text });
    const absent = await get(randomUUID());
    expect(absent).toMatchObject({
      status: 404,
      body: { error: "There is no such service in this organization." },
    });
    expect(await record(service)).toBeUndefined();
  });

  it("lets a developer read and not write, and any other role neither", async () => {
    const service = await addService();
    const change = { backupPeriodInHours: 12 };
    expect((await get(service, { authorization: developer })).status).toBe(200);
    expect((await patch(service, change, { authorization: developer })).status).toBe(403);
    expect((await get(service, { authorization: nobody })).status).toBe(403);
    expect((await patch(service, change, { authorization: nobody })).status).toBe(403);
    expect(await record(service)).toBeUndefined();
  });

  it("answers 400 for ids that are none", async () => {
    expect((await get("nothing")).status).toBe(400);
    expect((await get(randomUUID(), { organization: "%zz" })).status).toBe(400);
  });
});
