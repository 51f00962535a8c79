import { randomUUID } from "node:crypto";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { successEnvelope } from "../../src/api/resources/envelopes.ts";
import { listMembers } from "../../src/api/resources/members/routes.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import { CONFIG_MAPS, objectPath } from "../../src/kube/paths.ts";
import { recordLabels } from "../../src/records/labels.ts";
import { memberKey } from "../../src/records/members.ts";
import { type ApiResponse, exchangeRaw, parseRaw } from "./client.ts";
import { setUpApi, setUpEnvironment } from "./fixtures.ts";
import {
  addMember,
  addMembers,
  entriesOf,
  membersRecord,
  type Roles,
  readMembers,
} from "./member-records.ts";

const environment = setUpEnvironment("members");
const api = setUpApi(environment);
const other = setUpApi(environment);

interface Place {
  readonly organizationId: string;
  readonly admin: string;
}

/**
 * Creates an organization with these members and a key that both processes accept. They may not have received the
 * members yet: a request is never rejected because of stale members in the cache.
 */
async function organizationOf(roles: Roles, entries: Record<string, string> = {}): Promise<Place> {
  const organizationId = await environment.addOrganization();
  await addMembers(environment, organizationId, roles, entries);
  const { authorization } = await environment.addKey({ organizationId });
  await Promise.all([api, other].map((each) => each.waitForOrganization(authorization)));
  return { organizationId, admin: authorization };
}

function remove({ organizationId, admin }: Place, userId: string, of = api): Promise<ApiResponse> {
  return of.send({
    method: "DELETE",
    path: `/v1/organizations/${organizationId}/members/${userId}`,
    authorization: admin,
  });
}

const NO_MEMBER = {
  status: 404,
  body: { error: "There is no such member in this organization.", status: 404 },
};
const LAST_ADMIN = { status: 400, body: { error: expect.stringContaining("last admin"), status: 400 } };

/** Waits until the API sees this number of members, and returns them. */
async function listOnce({ organizationId, admin }: Place, count: number) {
  const path = `/v1/organizations/${organizationId}/members`;
  return await waitFor(
    async () => {
      const response = await api.send({ path, authorization: admin });
      expect(response.status).toBe(200);
      const { result } = successEnvelope(listMembers.result).parse(response.body);
      return result.length === count && result;
    },
    { what: "the API to see the members" },
  );
}

describe("GET members", () => {
  it("lists every member with its role, in the order in which they joined", async () => {
    const later = { name: "Zoe", email: "zoe@example.com", role: "owner", joinedAt: "2026-03-01T00:00:00Z" };
    const place = await organizationOf(
      { bob: "developer", "a/b": "admin" },
      { aaa: stringify({ userId: "aaa", ...later }), malformed: "userId: someone" },
    );
    const ada = { name: "Ada", email: "ada@example.com", joinedAt: "2026-02-01T00:00:00.000Z" };
    expect(await listOnce(place, 3)).toEqual([
      { userId: "a/b", ...ada, role: "admin" },
      { userId: "bob", ...ada, role: "developer" },
      { userId: "aaa", ...later, joinedAt: "2026-03-01T00:00:00.000Z" },
    ]);
  });

  it("no longer lists a member that the caller has removed", async () => {
    const place = await organizationOf({ ada: "admin", "c/d": "developer" });
    const [, last] = await listOnce(place, 2);
    expect((await remove(place, encodeURIComponent(last?.userId ?? ""))).status).toBe(200);
    const path = `/v1/organizations/${place.organizationId}/members`;
    const { text } = await api.send({ path, authorization: place.admin });
    expect(text).toContain('"ada"');
    expect(text).not.toContain("c/d");
  });

  it("is empty for an organization without a members record", async () => {
    const organizationId = await environment.addOrganization();
    const { authorization: admin } = await environment.addKey({ organizationId });
    await api.waitForOrganization(admin);
    expect(await listOnce({ organizationId, admin }, 0)).toEqual([]);
  });
});

describe("DELETE members", () => {
  it("removes one member, keeps the others, and returns no result", async () => {
    const place = await organizationOf({ ada: "admin", bob: "developer", "cy@example.com": "developer" });

    const response = await remove(place, "cy%40example.com");

    expect(response).toMatchObject({ status: 200 });
    expect(response.body).toEqual({ requestId: response.headers["x-request-id"], status: 200 });
    expect(await entriesOf(environment, place.organizationId)).toEqual(["ada", "bob"]);
    const audit = api.log.find((line) => line["audit"] === "members" && line["user"] === "cy@example.com");
    expect(audit).toMatchObject({
      requestId: response.headers["x-request-id"],
      organization: place.organizationId,
    });
  });

  it("returns 404 the second time, from either process", async () => {
    const place = await organizationOf({ ada: "admin", bob: "developer" });
    expect((await remove(place, "bob")).status).toBe(200);
    expect(await remove(place, "bob")).toMatchObject(NO_MEMBER);
    expect(await remove(place, "bob", other)).toMatchObject(NO_MEMBER);
    expect(await entriesOf(environment, place.organizationId)).toEqual(["ada"]);
  });

  it("removes a member that was just added", async () => {
    const place = await organizationOf({ ada: "admin" });
    await addMember(environment, place.organizationId, "new", "admin");
    expect((await remove(place, "new")).status).toBe(200);
  });

  it("never removes the last admin", async () => {
    const place = await organizationOf({ ada: "admin", bob: "admin", cy: "developer" });
    expect((await remove(place, "ada")).status).toBe(200);
    expect(await remove(place, "bob")).toMatchObject(LAST_ADMIN);
    expect((await remove(place, "cy")).status).toBe(200);
    expect(await remove(place, "bob", other)).toMatchObject(LAST_ADMIN);
    expect(await entriesOf(environment, place.organizationId)).toEqual(["bob"]);
  });

  it("fails only for malformed entries, and does not count them as admins", async () => {
    const broken = { eve: "userId: eve\nname: Eve\nemail: e@example.com\nrole: admin\njoinedAt: once\n" };
    const place = await organizationOf(
      { ada: "admin", bob: "developer" },
      { ...broken, fay: "userId: someone" },
    );
    expect((await remove(place, "eve")).status).toBe(500);
    expect((await remove(place, "fay")).status).toBe(500);
    expect(await remove(place, "ada")).toMatchObject(LAST_ADMIN);
    expect((await remove(place, "bob")).status).toBe(200);
    expect(await entriesOf(environment, place.organizationId)).toEqual(["ada", "eve", "fay"]);
  });

  it("returns 404 for an organization without a members record", async () => {
    const organizationId = await environment.addOrganization();
    const { authorization: admin } = await environment.addKey({ organizationId });
    await api.waitForOrganization(admin);
    expect(await remove({ organizationId, admin }, "ada")).toMatchObject(NO_MEMBER);
  });

  it("updates a record whose label names another organization, and keeps the label", async () => {
    const organizationId = await environment.addOrganization();
    const { data, metadata, kind } = membersRecord(organizationId, { ada: "admin", bob: "developer" });
    const labels = recordLabels("members", randomUUID());
    await environment.addRecord({ kind, metadata: { name: metadata.name, labels }, data });
    const { authorization: admin } = await environment.addKey({ organizationId });
    await api.waitForOrganization(admin);
    expect((await remove({ organizationId, admin }, "bob")).status).toBe(200);
    const { metadata: kept } = await readMembers(environment, organizationId);
    expect(kept.labels).toEqual(labels);
  });

  it("updates a record without labels, which the watch does not include, and adds the labels", async () => {
    const organizationId = await environment.addOrganization();
    const { data, metadata, kind } = membersRecord(organizationId, { ada: "admin", bob: "developer" });
    await environment.addRecord({ kind, metadata: { name: metadata.name }, data });
    const { authorization: admin } = await environment.addKey({ organizationId });
    await api.waitForOrganization(admin);
    expect((await remove({ organizationId, admin }, "bob")).status).toBe(200);
    const path = objectPath(CONFIG_MAPS, environment.records, metadata.name);
    const { metadata: labeled } = await environment.admin.json<KubeObject>({ path });
    expect(labeled.labels).toEqual(metadata.labels);
    expect((await remove({ organizationId, admin }, "ada")).status).toBe(400);
  });
});

describe("a user ID", () => {
  it.each([
    "constructor",
    "__proto__",
    "hasOwnProperty",
    "a%2Fb",
    "..%2f",
    "%2e%2e",
    "%00",
    "_5F",
    "%25zz",
    "x".repeat(300),
    "%F0%9F%98%80",
  ])("that no member has results in 404: %s", async (userId) => {
    const place = await organizationOf({ ada: "admin" });
    expect(await remove(place, userId)).toMatchObject(NO_MEMBER);
    expect(await entriesOf(environment, place.organizationId)).toEqual(["ada"]);
  });

  it.each(["%zz", "%", "%c0%af", "%ff", "%ed%a0%80", "a%2"])(
    "that is not UTF-8 is rejected with 400: %s",
    async (userId) => {
      const place = await organizationOf({ ada: "admin" });
      expect(await remove(place, userId)).toMatchObject({
        status: 400,
        body: { error: expect.stringContaining("userId") },
      });
    },
  );

  it("that is not percent-encoded is rejected with 400", async () => {
    const { organizationId, admin } = await organizationOf({ ada: "admin", ü: "developer" });
    const path = `/v1/organizations/${organizationId}/members/ü`;
    const head = `DELETE ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${admin}\r\nConnection: close\r\n\r\n`;
    expect(parseRaw(await exchangeRaw(api.url, head))).toMatchObject({ status: 400, body: { status: 400 } });
    expect(await entriesOf(environment, organizationId)).toHaveLength(2);
  });

  it("with any characters identifies exactly one member", async () => {
    const users = ["constructor", "__proto__", "a/b", "x/../", "a_2Fb", "%zz", "ü 😀", "A", "a", "\u0000"];
    const roles = Object.fromEntries(users.map((userId) => [userId, "developer"]));
    const place = await organizationOf({ ada: "admin", ...roles });
    for (const userId of Object.keys(roles)) {
      expect((await remove(place, encodeURIComponent(userId))).status).toBe(200);
      expect(await entriesOf(environment, place.organizationId)).not.toContain(memberKey(userId));
    }
    expect(await entriesOf(environment, place.organizationId)).toEqual(["ada"]);
  });

  it("that is empty results in the 404 for an unknown path", async () => {
    const place = await organizationOf({ ada: "admin" });
    expect(await remove(place, "")).toMatchObject({
      status: 404,
      body: { error: expect.stringMatching(/^This API has no such path: /) },
    });
  });
});

describe("a request for members", () => {
  it("gets the same response for an absent organization and for another tenant's", async () => {
    const own = await organizationOf({ ada: "admin", bob: "developer" });
    const { admin } = await organizationOf({ eve: "admin" });
    const foreign = await remove({ ...own, admin }, "bob");
    const absent = await remove({ organizationId: randomUUID(), admin }, "bob");
    expect(foreign.status).toBe(404);
    expect(absent).toMatchObject({ status: 404, text: foreign.text });
    expect((await remove({ organizationId: "x", admin }, "bob")).status).toBe(400);
    expect(await entriesOf(environment, own.organizationId)).toEqual(["ada", "bob"]);
  });

  it.each(["developer", "billing"])("gets 403 with the role %s for any path", async (role) => {
    const { organizationId } = await organizationOf({ ada: "admin", bob: "developer" });
    const { authorization: admin } = await environment.addKey({ organizationId, roles: [role] });
    await api.waitForKey(admin);
    for (const userId of ["bob", "unknown", "%zz"]) {
      expect((await remove({ organizationId, admin }, userId)).status).toBe(403);
    }
    expect(await entriesOf(environment, organizationId)).toEqual(["ada", "bob"]);
  });

  it("gets 405 with the allowed method for any other method", async () => {
    const { organizationId, admin } = await organizationOf({ ada: "admin" });
    const path = `/v1/organizations/${organizationId}/members/ada`;
    for (const method of ["GET", "PATCH", "POST"]) {
      const response = await api.send({ method, path, authorization: admin });
      expect(response).toMatchObject({ status: 405, headers: { allow: "DELETE" } });
    }
  });
});

describe("two concurrent processes", () => {
  it("never remove both of the last two admins", async () => {
    for (let round = 0; round < 8; round += 1) {
      const place = await organizationOf({ ada: "admin", bob: "admin" });
      const responses = await Promise.all([remove(place, "ada"), remove(place, "bob", other)]);
      expect(responses.map(({ status }) => status).sort()).toEqual([200, 400]);
      expect(await entriesOf(environment, place.organizationId)).toHaveLength(1);
    }
  });

  it("remove a member only once", async () => {
    for (let round = 0; round < 4; round += 1) {
      const place = await organizationOf({ ada: "admin", bob: "developer" });
      const responses = await Promise.all([remove(place, "bob"), remove(place, "bob", other)]);
      expect(responses.map(({ status }) => status).sort()).toEqual([200, 404]);
    }
  });

  it("complete all concurrent removals", async () => {
    const users = ["b", "c", "d", "e", "f", "g"];
    const place = await organizationOf({
      a: "admin",
      ...Object.fromEntries(users.map((user) => [user, "developer"])),
    });
    const responses = await Promise.all(users.map((user, at) => remove(place, user, at % 2 ? api : other)));
    expect(responses.map(({ status }) => status)).toEqual(users.map(() => 200));
    expect(await entriesOf(environment, place.organizationId)).toEqual(["a"]);
  });
});
