import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import type { ConfigMap, KubeObject } from "../../src/kube/objects.ts";
import { CONFIG_MAPS, collectionPath, objectPath, SECRETS } from "../../src/kube/paths.ts";
import { recordLabels } from "../../src/records/labels.ts";
import { PIPE_SCALINGS } from "../api/environment.ts";
import { AdminTestEnvironment } from "./admin-environment.ts";

let records: AdminTestEnvironment;

beforeAll(async () => {
  records = await AdminTestEnvironment.create("cli-organizations");
});

afterAll(() => records?.remove());

const shown = z.looseObject({ id: z.guid() });

async function addMembers(organization: string, members: Readonly<Record<string, string>>): Promise<void> {
  for (const [userId, role] of Object.entries(members)) {
    const words = `admin member add --organization ${organization} --user-id ${userId} --email u@example.com`;
    await records.json(shown.partial(), [...words.split(" "), "--name", `User ${userId}`, "--role", role]);
  }
}

/** All objects of one organization, or of all organizations. */
async function inventory(organization?: string): Promise<string[]> {
  const label = "pipes.clouddb.dev/organization";
  const query = { labelSelector: organization === undefined ? label : `${label}=${organization}` };
  const lists = await Promise.all(
    [CONFIG_MAPS, SECRETS].map((resource) =>
      records.environment.admin.json<{ readonly items: readonly KubeObject[] }>({
        path: collectionPath(resource, records.environment.records),
        query,
      }),
    ),
  );
  return lists
    .flatMap(({ items }) => items.map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`))
    .sort();
}

describe("admin organization show", () => {
  it("prints the tier, the services, the members and the number of keys", async () => {
    const id = await records.environment.addOrganization({ name: "Acme", tier: "basic" });
    const service = await records.environment.addService(id);
    await addMembers(id, { ada: "admin", bob: "developer" });
    await records.environment.addKey({ organizationId: id });
    expect(await records.json(shown, `admin organization show ${id}`)).toEqual({
      id,
      name: "Acme",
      createdAt: "2026-01-31T12:00:00.000Z",
      tier: "basic",
      byocConfig: [],
      privateEndpoints: [],
      apiKeys: 1,
      services: [{ id: service, name: "orders", namespace: records.environment.pipes }],
      members: [
        expect.objectContaining({ userId: "ada", role: "admin" }),
        expect.objectContaining({ userId: "bob", role: "developer" }),
      ],
    });
    const { out } = await records.run(`admin organization show ${id}`);
    expect(out).toMatch(/^ID +\S+\nNAME +Acme\n/);
    expect(out).toMatch(/\nSERVICES\nID +NAME +NAMESPACE\n\S+ +orders +\S+\n\nMEMBERS\nUSER ID +NAME/);
  });

  it("prints the well-formed records and reports malformed ones", async () => {
    const id = await records.environment.addOrganization();
    const members = {
      kind: "ConfigMap",
      metadata: { name: `members-${id}`, labels: recordLabels("members", id) },
      data: { ada: "- not a member" },
    };
    await records.environment.addRecord(members);
    const { code, out, err } = await records.run(`admin organization show ${id}`);
    expect(code).toBe(0);
    expect(out).toMatch(/\nSERVICES {2}none\n\nMEMBERS {2}none\n$/);
    expect(err).toContain(`An entry of members-${id} is malformed and was skipped: ada: `);
  });

  it("names the list command for an unknown organization", async () => {
    const id = randomUUID();
    const { code, err } = await records.run(`admin organization show ${id}`);
    expect(code).toBe(1);
    expect(err).toContain(
      `There is no organization with the ID ${id} in the namespace ${records.environment.records}`,
    );
    expect(err).toContain("admin organization list");
  });
});

describe("admin organization update", () => {
  it("changes only the tier, the name or both", async () => {
    const id = await records.environment.addOrganization({ name: "Acme", tier: "basic" });
    const extra = { body: { data: { byocConfig: "[]", other: "kept" } } };
    await records.environment.admin.json({
      method: "PATCH",
      path: objectPath(CONFIG_MAPS, records.environment.records, `organization-${id}`),
      patchType: "application/merge-patch+json",
      ...extra,
    });
    const dataAfter = async (change: string) => {
      await records.json(shown, `admin organization update ${id} ${change}`);
      return (await records.object<ConfigMap>(CONFIG_MAPS, `organization-${id}`))?.data;
    };
    const before = { name: "Acme", createdAt: "2026-01-31T12:00:00.000Z", byocConfig: "[]", other: "kept" };
    expect(await dataAfter("--tier scale")).toEqual({ ...before, tier: "scale" });
    expect(await dataAfter("--name Globex")).toEqual({ ...before, tier: "scale", name: "Globex" });
    expect(await dataAfter("--name Acme --tier basic")).toEqual({ ...before, tier: "basic" });
  });

  it("changes the rollout window, keeps it with other changes, and removes it", async () => {
    const window = '{schedule: "0 2 * * 6", duration: 4h}';
    const words = ["admin", "organization", "create", "--name", "Acme", "--tier", "basic"];
    const created = await records.json(shown, [...words, "--rollout-window", window]);
    const { id } = created;
    const saturdays = { schedule: "0 2 * * 6", duration: "4h", timeZone: "UTC", appliesTo: "restarts" };
    expect(created).toMatchObject({ name: "Acme", rolloutWindow: saturdays });
    const shownWindow = async () => {
      const organization = await records.json(shown, `admin organization show ${id}`);
      return [organization["rolloutWindow"], organization["rolloutWindowState"]];
    };
    expect(await shownWindow()).toEqual([saturdays, expect.stringMatching(/^(open|closed) until 20.*Z$/)]);

    expect(await records.json(shown, `admin organization update ${id} --name Globex`)).toMatchObject({
      name: "Globex",
      rolloutWindow: saturdays,
    });
    const always = '{schedule: "* * * * *", duration: 15m, timeZone: Europe/Berlin, appliesTo: all}';
    await records.json(shown, ["admin", "organization", "update", id, "--rollout-window", always]);
    expect(await shownWindow()).toEqual([
      { schedule: "* * * * *", duration: "15m", timeZone: "Europe/Berlin", appliesTo: "all" },
      expect.stringMatching(/^open until 20.*Z$/),
    ]);
    const { data } = (await records.object<ConfigMap>(CONFIG_MAPS, `organization-${id}`)) ?? {};
    expect(data?.["rolloutWindow"]).toBe(
      '{ schedule: "* * * * *", duration: "15m", timeZone: "Europe/Berlin", appliesTo: "all" }',
    );

    const removed = await records.json(shown, `admin organization update ${id} --rollout-window none`);
    expect(removed).not.toHaveProperty("rolloutWindow");
    expect(await shownWindow()).toEqual([undefined, undefined]);
    expect((await records.object<ConfigMap>(CONFIG_MAPS, `organization-${id}`))?.data).not.toHaveProperty(
      "rolloutWindow",
    );
  });

  it("preserves all changes if several commands run concurrently", async () => {
    const id = await records.environment.addOrganization({ tier: "basic" });
    const ended = await Promise.all(
      ["--tier scale", "--name Globex"].flatMap((change) =>
        Array.from({ length: 4 }, () => records.run(`admin organization update ${id} ${change}`)),
      ),
    );
    expect(ended.map(({ code }) => code)).toEqual(ended.map(() => 0));
    expect((await records.object<ConfigMap>(CONFIG_MAPS, `organization-${id}`))?.data).toMatchObject({
      tier: "scale",
      name: "Globex",
    });
  });

  it.each([
    ["", 2, "Nothing to change. Specify --tier, --name or --rollout-window."],
    [
      "--tier gold",
      2,
      'is "gold", but it must be one of the built-in tiers (--tiers-file names others): basic, scale, enterprise.',
    ],
    ["--rollout-window always", 2, 'is "always", but it must be a YAML map such as {schedule: '],
    ['--rollout-window {"schedule":"x"}', 2, "its duration is missing, or none."],
  ])("rejects %j, and changes nothing", async (change, exitCode, sentence) => {
    const id = await records.environment.addOrganization();
    const before = await inventory(id);
    const { code, err } = await records.run(`admin organization update ${id} ${change}`.trim());
    expect(code).toBe(exitCode);
    expect(err).toContain(sentence);
    expect(await inventory(id)).toEqual(before);
  });
});

describe("admin organization delete", () => {
  /** Creates an organization with every kind of record. */
  async function withEverything(): Promise<string> {
    const id = await records.environment.addOrganization({ name: "Acme" });
    const service = await records.environment.addService(id);
    await records.environment.addScaling(service, {}, 2);
    await addMembers(id, { ada: "admin", bob: "developer" });
    await records.environment.addKey({ organizationId: id });
    for (const [name, kind] of [
      [`backup-${service}`, "backup"],
      [`key-usage-${id}`, "key-usage"],
    ] as const) {
      const record = { kind: "ConfigMap", metadata: { name, labels: recordLabels(kind, id) }, data: {} };
      await records.environment.addRecord(record);
    }
    return id;
  }

  it("does not delete an organization with services without --with-services, and changes nothing", async () => {
    const id = await withEverything();
    const before = await inventory();
    expect(await records.run(`admin organization delete ${id} --yes`)).toEqual({
      code: 1,
      out: "",
      err: `Organization ${id} has 1 service, so nothing was deleted. Delete the services first (\`pipe-scaling admin service list --organization ${id} ${records.clusterFlags.join(" ")}\`), or specify --with-services.\n`,
    });
    expect(await inventory()).toEqual(before);
  });

  it("lists what it will delete, asks for confirmation, and keeps PipeScalings and records of other organizations", async () => {
    const id = await withEverything();
    const other = await inventory(await withEverything());
    const words = `admin organization delete ${id} --with-services`;
    const before = await inventory(id);
    expect((await records.run(words)).code).toBe(2);
    const no = await records.run(words, { input: true, answers: ["n"] });
    expect(no).toEqual({
      code: 1,
      out: "",
      err: `Delete organization Acme (${id}) with 1 service, 1 API key, 2 members? [y/N] Nothing was changed.\n`,
    });
    expect(await inventory(id)).toEqual(before);

    const [scaling] = before.flatMap((name) => /^service-(\S+)/.exec(name)?.[1] ?? []);
    const scalingBefore = await records.object(PIPE_SCALINGS, scaling ?? "", records.environment.pipes);
    const yes = await records.run(words, { input: true, answers: ["yes"] });
    expect(yes).toMatchObject({ code: 0, err: expect.stringContaining(`Organization ${id} is deleted.\n`) });
    expect(await inventory(id)).toEqual([]);
    expect(await inventory()).toEqual(expect.arrayContaining(other));
    expect(scalingBefore).toBeDefined();
    expect(await records.object(PIPE_SCALINGS, scaling ?? "", records.environment.pipes)).toEqual(
      scalingBefore,
    );
  });

  it("deletes an organization without services with its members and keys", async () => {
    const id = await records.environment.addOrganization();
    await records.environment.addKey({ organizationId: id });
    await addMembers(id, { ada: "admin" });
    expect((await records.run(`admin organization delete ${id} --yes`)).code).toBe(0);
    expect(await inventory(id)).toEqual([]);
  });

  it("deletes records without labels, and what an organization has left", async () => {
    const id = await records.environment.addOrganization();
    const service = await records.environment.addService(id);
    const names = [`backup-${service}`, `key-usage-${id}`, `members-${id}`];
    const addRecords = async () => {
      for (const name of names) {
        await records.environment.addRecord({ kind: "ConfigMap", metadata: { name }, data: {} });
      }
    };
    const found = async () => await Promise.all(names.map((name) => records.object(CONFIG_MAPS, name)));
    await addRecords();
    const words = `admin organization delete ${id} --with-services --yes`;
    expect((await records.run(words)).code).toBe(0);
    expect(await found()).toEqual([undefined, undefined, undefined]);

    await addRecords();
    expect((await records.run(words)).code).toBe(0);
    expect((await records.run(`admin service delete ${service} --yes`)).code).toBe(0);
    expect(await found()).toEqual([undefined, undefined, undefined]);
    expect((await records.run(words)).err).toContain("There is no organization");
  });

  it("does not delete an organization that changes before the confirmation", async () => {
    const id = await records.environment.addOrganization();
    const { code, err } = await records.run(`admin organization delete ${id}`, {
      input: true,
      answers: ["y"],
      beforeAnswer: async () => {
        await records.run(`admin organization update ${id} --name Important`);
      },
    });
    expect(code).toBe(1);
    expect(err).toContain("has changed since this command read it, so nothing was deleted");
    expect((await records.object<ConfigMap>(CONFIG_MAPS, `organization-${id}`))?.data).toMatchObject({
      name: "Important",
    });
  });
});
