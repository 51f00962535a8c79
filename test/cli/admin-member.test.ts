import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { CONFIG_MAPS } from "../../src/kube/paths.ts";
import { membersRecord } from "../api/member-records.ts";
import { AdminTestEnvironment } from "./admin-environment.ts";

let records: AdminTestEnvironment;

beforeAll(async () => {
  records = await AdminTestEnvironment.create("cli-members");
});

afterAll(() => records?.remove());

/** Creates an organization with these members and roles. */
async function organizationOf(members: Readonly<Record<string, "admin" | "developer">>): Promise<string> {
  const id = await records.environment.addOrganization({ name: "Acme" });
  await records.environment.addRecord(membersRecord(id, members));
  return id;
}

async function membersOf(id: string): Promise<string[]> {
  const schema = z.array(z.looseObject({ userId: z.string() }));
  return (await records.json(schema, `admin member list --organization ${id}`))
    .map(({ userId }) => userId)
    .sort();
}

describe("admin member list", () => {
  it("prints the members with their roles", async () => {
    const id = await organizationOf({ ada: "admin", bob: "developer" });
    const { code, out } = await records.run(`admin member list --organization ${id}`);
    expect(code).toBe(0);
    expect(out).toMatch(/^USER ID +NAME +EMAIL +ROLE +JOINED AT\n/);
    expect(out).toMatch(/^ada .* admin /m);
    expect(out).toMatch(/^bob .* developer /m);
  });

  it("prints an empty list for an organization without members", async () => {
    expect(await membersOf(await records.environment.addOrganization())).toEqual([]);
  });
});

describe("admin member add", () => {
  it.each([
    ["the first member", {}],
    ["another member", { ada: "admin" }],
  ] as const)("refuses %s whose entry would be too long, and says why", async (_what, members) => {
    const id = await organizationOf(members);
    const details = `--name ${"a".repeat(3000)} --email bob@example.com --role developer`;
    expect(await records.run(`admin member add --organization ${id} --user-id bob ${details}`)).toEqual({
      code: 1,
      out: "",
      err: "User bob was not added, because the record would be malformed: bob: is longer than 2048 bytes.\n",
    });
    expect(await membersOf(id)).toEqual(Object.keys(members));
  });

  it("adds the labels that an existing record lacks", async () => {
    const id = await records.environment.addOrganization();
    const record = membersRecord(id, { ada: "admin" });
    await records.environment.addRecord({ ...record, metadata: { name: record.metadata.name } });
    const words = `admin member add --organization ${id} --user-id bob --name Bob --email b@example.com`;
    expect((await records.run(`${words} --role developer`)).code).toBe(0);
    expect((await records.object(CONFIG_MAPS, `members-${id}`))?.metadata.labels).toEqual(
      record.metadata.labels,
    );
    expect(await membersOf(id)).toEqual(["ada", "bob"]);
  });
});

describe("admin member remove", () => {
  it("asks for confirmation, and removes only that member", async () => {
    const id = await organizationOf({ ada: "admin", bob: "developer", "a/b": "developer" });
    const words = `admin member remove a/b --organization ${id}`;
    expect((await records.run(words)).code).toBe(2);
    expect(await records.run(words, { input: true, answers: ["n"] })).toEqual({
      code: 1,
      out: "",
      err: `Remove user a/b from organization Acme (${id})? [y/N] Nothing was changed.\n`,
    });
    expect(await membersOf(id)).toEqual(["a/b", "ada", "bob"]);
    expect(await records.run(`${words} --yes`)).toEqual({
      code: 0,
      out: "",
      err: `User a/b is no longer a member of organization ${id}.\n`,
    });
    expect(await membersOf(id)).toEqual(["ada", "bob"]);
    expect(await records.run(`${words} --yes`)).toMatchObject({
      code: 1,
      err: `User a/b is not a member of organization ${id}. To list the members: pipe-scaling admin member list --organization ${id} ${records.clusterFlags.join(" ")}\n`,
    });
  });

  it.each(["constructor", "__proto__"])("finds no member with the user ID %s", async (userId) => {
    const id = await organizationOf({ ada: "admin" });
    expect((await records.run(`admin member remove ${userId} --organization ${id} --yes`)).err).toContain(
      "is not a member",
    );
  });

  it("never removes the last admin", async () => {
    const id = await organizationOf({ ada: "admin", bob: "developer" });
    const before = await records.object(CONFIG_MAPS, `members-${id}`);
    const { code, err } = await records.run(`admin member remove ada --organization ${id} --yes`);
    expect(code).toBe(1);
    expect(err).toBe(
      `User ada is the last admin of organization ${id}, so nothing was changed. Add another admin first. To change the role of a member, remove the member and add them again.\n`,
    );
    expect(await records.object(CONFIG_MAPS, `members-${id}`)).toEqual(before);
  });

  it("leaves one admin and all other members if many admins are removed concurrently", async () => {
    const admins = ["a", "b", "c", "d"];
    const roles = Object.fromEntries(admins.map((name) => [name, "admin" as const]));
    const id = await organizationOf({ ...roles, bob: "developer" });
    const ended = await Promise.all(
      admins.map((name) => records.run(`admin member remove ${name} --organization ${id} --yes`)),
    );
    expect(ended.map(({ code }) => code).sort()).toEqual([0, 0, 0, 1]);
    const left = await membersOf(id);
    expect(left).toHaveLength(2);
    expect(left).toContain("bob");
  });

  it("checks the members after the confirmation, not only before it", async () => {
    const id = await organizationOf({ ada: "admin", bob: "admin" });
    const { code, err } = await records.run(`admin member remove ada --organization ${id}`, {
      input: true,
      answers: ["y"],
      beforeAnswer: async () => {
        await records.run(`admin member remove bob --organization ${id} --yes`);
      },
    });
    expect(code).toBe(1);
    expect(err).toContain("User ada is the last admin");
    expect(await membersOf(id)).toEqual(["ada"]);
  });
});
