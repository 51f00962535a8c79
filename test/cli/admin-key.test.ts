import { randomUUID } from "node:crypto";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import type { Secret } from "../../src/kube/objects.ts";
import { SECRETS } from "../../src/kube/paths.ts";
import { parseApiKey, sha256 } from "../../src/records/api-key.ts";
import { keyUsageConfigMap } from "../../src/records/key-usage.ts";
import type { RunningApi } from "../api/environment.ts";
import { basic, keyRecord } from "../support/fixtures/records.ts";
import { runCommands } from "../support/page-commands.ts";
import { AdminTestEnvironment } from "./admin-environment.ts";

let records: AdminTestEnvironment;
let api: RunningApi;
let organization: string;

beforeAll(async () => {
  records = await AdminTestEnvironment.create("cli-keys");
  organization = await records.environment.addOrganization();
  api = await records.environment.startReadyApi();
});

afterAll(async () => {
  await api?.stop();
  await records?.remove();
});

const madeKey = z.looseObject({ keyId: z.string(), keySecret: z.string(), id: z.guid() });
const shownKey = z.looseObject({
  id: z.guid(),
  state: z.string(),
  secrets: z.number(),
  secretName: z.string(),
  expireAt: z.string().optional(),
  allowFrom: z.array(z.string()),
});

interface MadeKey {
  readonly id: string;
  readonly keyId: string;
  readonly authorization: string;
}

async function makeKey(of = organization): Promise<MadeKey> {
  const made = await records.json(madeKey, `admin key create --organization ${of} --name ci --role admin`);
  const authorization = basic(made.keyId, made.keySecret);
  await until(authorization, 200);
  return { ...made, authorization };
}

/** Waits for this status, because the API receives changes to keys through its watch. */
async function until(authorization: string, status: number): Promise<void> {
  await waitFor(
    async () => (await api.send({ path: "/v1/organizations", authorization })).status === status,
    {
      what: `the API to return ${status} for the key`,
    },
  );
}

async function secretOf({ id }: MadeKey): Promise<Secret> {
  const { secretName } = await records.json(shownKey, `admin key show ${id}`);
  const secret = await records.object<Secret>(SECRETS, secretName);
  if (!secret) throw new Error(`there is no Secret ${secretName}`);
  return secret;
}

/** Checks that a command prints no result and does not change the key. */
async function refusal(key: MadeKey, words: string, ioOptions?: Parameters<AdminTestEnvironment["run"]>[1]) {
  const before = await secretOf(key);
  const { code, out, err } = await records.run(words, ioOptions);
  expect(out).toBe("");
  expect(await secretOf(key)).toEqual(before);
  return { code, err };
}

describe("admin key show", () => {
  it("prints everything about a key except its key ID and its secret", async () => {
    const key = await makeKey();
    const shown = await records.json(
      z.looseObject({ usedAt: z.string().optional() }),
      `admin key show ${key.id}`,
    );
    expect(shown).toMatchObject({
      id: key.id,
      organizationId: organization,
      name: "ci",
      keySuffix: key.keyId.slice(-4),
      state: "enabled",
      roles: ["admin"],
      allowFrom: [],
      secrets: 1,
    });
    const everything = (await records.run(`admin key show ${key.id}`)).out + JSON.stringify(shown);
    expect(everything).not.toContain(key.keyId);
  });

  it("prints the time of the last use", async () => {
    const of = await records.environment.addOrganization();
    const { id, record } = keyRecord({ organizationId: of });
    await records.environment.addRecord(record);
    const usedAt = new Date("2026-03-01T12:34:00Z");
    await records.environment.addRecord(keyUsageConfigMap(of, new Map([[id, usedAt]])));
    expect((await records.run(`admin key show ${id}`)).out).toMatch(/\nUSED AT +2026-03-01T12:34:00\.000Z\n/);
  });

  it("names the list command for an unknown ID", async () => {
    const id = randomUUID();
    expect(await records.run(`admin key show ${id}`)).toEqual({
      code: 1,
      out: "",
      err: `There is no API key with the ID ${id} in the namespace ${records.environment.records}. To list the IDs: pipe-scaling admin key list --organization <uuid> ${records.clusterFlags.join(" ")}\n`,
    });
  });

  it("names both Secrets if two have the same ID", async () => {
    const key = await makeKey();
    const secret = await secretOf(key);
    const { name } = keyRecord({ organizationId: organization }).record.metadata;
    const { labels = {} } = secret.metadata;
    const copy = { ...secret, kind: "Secret", metadata: { name, labels } };
    await records.environment.addRecord(copy);
    const { code, err } = await records.run(`admin key show ${key.id}`);
    expect(code).toBe(1);
    expect(err).toContain(name);
    expect(err).toContain(secret.metadata.name);
  });
});

describe("admin key disable and admin key enable", () => {
  it("make the API reject the key, and accept it again", async () => {
    const key = await makeKey();
    expect(await records.run(`admin key disable ${key.id}`)).toEqual({
      code: 0,
      out: "",
      err: `API key ci (${key.id}) is disabled.\n`,
    });
    await until(key.authorization, 401);
    expect((await records.run(`admin key enable ${key.id}`)).code).toBe(0);
    await until(key.authorization, 200);
  });

  it("change nothing if the key already has this state", async () => {
    const key = await makeKey();
    const before = await secretOf(key);
    expect((await records.run(`admin key enable ${key.id}`)).err).toBe(
      `API key ci (${key.id}) is enabled already.\n`,
    );
    expect(await secretOf(key)).toEqual(before);
  });

  it("preserve all changes if they run concurrently with other commands", async () => {
    const key = await makeKey();
    const changes = ["--name other", "--expire-at 2099-01-01T00:00:00Z", "--allow-from 127.0.0.0/8"];
    const all = [`disable ${key.id}`, ...changes.map((change) => `update ${key.id} ${change}`)];
    const ended = await Promise.all(all.map((words) => records.run(`admin key ${words}`)));
    expect(ended.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    expect(await records.json(shownKey, `admin key show ${key.id}`)).toMatchObject({
      name: "other",
      state: "disabled",
      allowFrom: ["127.0.0.0/8"],
      expireAt: "2099-01-01T00:00:00.000Z",
    });
  });
});

describe("admin key update", () => {
  it("changes the given fields, keeps the others, and can remove restrictions", async () => {
    const key = await makeKey();
    const update = (change: string) => records.json(shownKey, `admin key update ${key.id} ${change}`);
    const limited = await update("--expire-at 2099-01-01T01:00:00+01:00 --allow-from 203.0.113.7");
    expect(limited).toMatchObject({
      name: "ci",
      state: "enabled",
      roles: ["admin"],
      allowFrom: ["203.0.113.7"],
      expireAt: "2099-01-01T00:00:00.000Z",
    });
    await until(key.authorization, 403);
    const free = await update("--expire-at never --allow-from all");
    expect(free).toMatchObject({ allowFrom: [] });
    expect(free.expireAt).toBeUndefined();
    await until(key.authorization, 200);
  });

  it("changes the role", async () => {
    const key = await makeKey();
    await records.json(shownKey, `admin key update ${key.id} --role developer`);
    const patch = {
      method: "PATCH",
      path: `/v1/organizations/${organization}/services/${randomUUID()}/backupConfiguration`,
      authorization: key.authorization,
      headers: { "Content-Type": "application/json" },
      body: "{}",
    };
    await waitFor(async () => (await api.send(patch)).status === 403, { what: "the API to see the role" });
    await until(key.authorization, 200);
  });

  it.each([
    ["", "Nothing to change. Specify --name, --role, --expire-at or --allow-from."],
    [
      "--expire-at 2020-01-01T00:00:00Z",
      "it must be a date and time to come, such as 2030-01-31T12:00:00Z, or never",
    ],
    ["--allow-from nowhere", "must be an IP address or a CIDR, such as 10.0.0.0/8 or 2001:db8::1, or all"],
  ])("rejects %j", async (change, sentence) => {
    const key = await makeKey();
    const { code, err } = await refusal(key, `admin key update ${key.id} ${change}`.trim());
    expect(code).toBe(2);
    expect(err).toContain(sentence);
  });

  it("does not change a malformed record, which must be edited first", async () => {
    const { id, record } = keyRecord({ organizationId: organization });
    const malformed = { ...record, stringData: { ...record.stringData, createdAt: "yesterday" } };
    await records.environment.addRecord(malformed);
    const { code, err } = await records.run(`admin key update ${id} --name x`);
    expect(code).toBe(1);
    const advice =
      /is malformed: .*createdAt: must be.* Fix it with `(kubectl edit secret api-key-.*)`, and write values as plain text under a new key stringData,/;
    expect(err).toMatch(advice);
    const [, command = ""] = advice.exec(err) ?? [];
    const line = "'stringData: {createdAt: \"2026-01-31T12:00:00Z\"}'";
    const variables = { KUBE_EDITOR: `printf '%s\\n' ${line} >>` };
    await runCommands(records.environment.cluster, [command], { variables });
    expect((await records.run(`admin key update ${id} --name x`)).code).toBe(0);
    expect((await records.run(`admin key delete ${id} --yes`)).code).toBe(0);
  });
});

describe("admin key rotate", () => {
  const rotated = z.looseObject({ keySecret: z.string(), id: z.guid() });

  async function rotate(key: MadeKey): Promise<string> {
    const { keySecret } = await records.json(rotated, `admin key rotate ${key.id}`);
    return basic(key.keyId, keySecret);
  }

  it("adds a second secret, and both work until the older one is removed", async () => {
    const key = await makeKey();
    const newer = await rotate(key);
    await until(newer, 200);
    await until(key.authorization, 200);
    expect(await records.json(shownKey, `admin key show ${key.id}`)).toMatchObject({ secrets: 2 });

    expect(await records.run(`admin key rotate ${key.id} --finish --yes`)).toEqual({
      code: 0,
      out: "",
      err: `Dropped the older secret of API key ci (${key.id}).\n`,
    });
    await until(key.authorization, 401);
    await until(newer, 200);
  });

  it("cancels a rotation", async () => {
    const key = await makeKey();
    const newer = await rotate(key);
    await until(newer, 200);
    expect((await records.run(`admin key rotate ${key.id} --cancel --yes`)).code).toBe(0);
    await until(newer, 401);
    await until(key.authorization, 200);
  });

  it("prints the secret once, and stores only its hash", async () => {
    const key = await makeKey();
    const { code, out, err } = await records.run(`admin key rotate ${key.id}`);
    expect(code).toBe(0);
    expect(err).toBe(
      `Save the key secret now. It cannot be shown again. If it is lost, drop it: pipe-scaling admin key rotate ${key.id} --cancel ${records.clusterFlags.join(" ")}\nBoth secrets work until you drop the older one: pipe-scaling admin key rotate ${key.id} --finish ${records.clusterFlags.join(" ")}\n`,
    );
    const keySecret = /^KEY SECRET +(\S{43})$/m.exec(out)?.[1] ?? "";
    const { metadata, data } = await secretOf(key);
    const parsed = parseApiKey(metadata.name, metadata.labels, data);
    expect(parsed).toMatchObject({
      ok: true,
      value: { secretHashes: [expect.anything(), sha256(keySecret)] },
    });
    expect(JSON.stringify(data)).not.toContain(Buffer.from(keySecret).toString("base64"));
    expect((await records.run(`admin key list --organization ${organization}`)).out).not.toContain(keySecret);
  });

  it("adds only one secret if many commands run concurrently, and the others report the rotation in progress", async () => {
    const key = await makeKey();
    const ended = await Promise.all(
      Array.from({ length: 8 }, () => records.run(`admin key rotate ${key.id}`)),
    );
    expect(ended.filter(({ code }) => code === 0)).toHaveLength(1);
    for (const { code, out, err } of ended) {
      if (code === 0) continue;
      expect(out).toBe("");
      expect(err).toContain(`API key ${key.id} is being rotated already. End that rotation first`);
    }
  });

  it.each(["--finish", "--cancel"])(
    "keeps the only secret with %s if no rotation is in progress",
    async (flag) => {
      const key = await makeKey();
      const { code, err } = await refusal(key, `admin key rotate ${key.id} ${flag} --yes`);
      expect(code).toBe(1);
      expect(err).toContain("has only one secret, so nothing was changed");
    },
  );

  it("rejects --finish together with --cancel", async () => {
    const key = await makeKey();
    const { code, err } = await refusal(key, `admin key rotate ${key.id} --finish --cancel`);
    expect(code).toBe(2);
    expect(err).toContain("--finish and --cancel cannot be combined");
  });

  it("asks for confirmation before it removes a secret, and keeps changes made in the meantime", async () => {
    const key = await makeKey();
    await rotate(key);
    const finish = `admin key rotate ${key.id} --finish`;
    expect(await refusal(key, finish)).toMatchObject({
      code: 2,
      err: expect.stringContaining("Confirm with --yes"),
    });
    const no = await refusal(key, finish, { input: true, answers: ["no"] });
    expect(no).toEqual({
      code: 1,
      err: `Drop the older secret of API key ci (${key.id}), and reject clients that still use it? [y/N] Nothing was changed.\n`,
    });
    // Before this command gets its answer, another one finishes this rotation and starts the next.
    const slow = await records.run(finish, {
      input: true,
      answers: ["y"],
      beforeAnswer: async () => {
        await records.run(`${finish} --yes`);
        await rotate(key);
      },
    });
    expect(slow.code).toBe(1);
    expect(slow.err).toContain("were changed by another writer, so this command changed nothing");
    expect(await records.json(shownKey, `admin key show ${key.id}`)).toMatchObject({ secrets: 2 });
  });
});

describe("admin key delete", () => {
  it("asks for confirmation, and deletes the key, which the API then rejects", async () => {
    const key = await makeKey();
    const words = `admin key delete ${key.id}`;
    expect(await refusal(key, words)).toMatchObject({
      code: 2,
      err: expect.stringContaining("Confirm with --yes"),
    });
    for (const response of ["n", "", "nope"]) {
      const { code, err } = await refusal(key, words, { input: true, answers: [response] });
      expect(code).toBe(1);
      expect(err).toBe(
        `Delete API key ci (${key.id}) of organization ${organization}? [y/N] Nothing was changed.\n`,
      );
    }
    const { secretName } = await records.json(shownKey, `admin key show ${key.id}`);
    const done = await records.run(words, { input: true, answers: ["y"] });
    expect(done).toMatchObject({ code: 0, err: expect.stringMatching(`API key ${key.id} is deleted.\n$`) });
    expect(await records.object(SECRETS, secretName)).toBeUndefined();
    await until(key.authorization, 401);
    expect((await records.run(`${words} --yes`)).code).toBe(1);
  });

  it("does not delete a key that changes before the confirmation", async () => {
    const key = await makeKey();
    const { code, err } = await records.run(`admin key delete ${key.id}`, {
      input: true,
      answers: ["y"],
      beforeAnswer: async () => {
        await records.run(`admin key update ${key.id} --name important`);
      },
    });
    expect(code).toBe(1);
    expect(err).toContain(`API key ${key.id} has changed since this command read it, so it was not deleted`);
    await until(key.authorization, 200);
  });
});
