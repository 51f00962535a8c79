import { randomUUID } from "node:crypto";
import { afterEach, describe, expect, it, vi } from "vitest";
import { toMembersView } from "../../../../../src/api/cluster/views.ts";
import { WriteQueue } from "../../../../../src/api/cluster/write-queue.ts";
import { type MembersServiceDeps, removeMember } from "../../../../../src/api/resources/members/service.ts";
import { KubeUnreachableError } from "../../../../../src/kube/errors.ts";
import type { ConfigMap } from "../../../../../src/kube/objects.ts";
import { ORGANIZATION_LABEL, RESOURCE_LABEL, recordLabels } from "../../../../../src/records/labels.ts";
import { memberEntry } from "../../../../../src/records/members.ts";
import { createLogger } from "../../../../../src/telemetry/log.ts";
import { membersRecord, type Roles } from "../../../../api/member-records.ts";
import { FakeClock } from "../../../../support/fakes/fake-clock.ts";
import { organizationWith } from "../../../../support/fixtures/records.ts";

const ORGANIZATION = "11111111-1111-4111-8111-111111111111";
const ROLES: Roles = { ada: "admin", bob: "developer" };

afterEach(() => vi.restoreAllMocks());

const LABELS = recordLabels("members", ORGANIZATION);

function stored(resourceVersion: string, roles: Roles, uid = "u"): ConfigMap {
  const record = membersRecord(ORGANIZATION, roles);
  return { ...record, metadata: { ...record.metadata, uid, resourceVersion } };
}

/** Removes a member in a process that has cached version 1, and counts the entries that are parsed meanwhile. */
async function remove(
  userId: string,
  live: ConfigMap,
  patch: MembersServiceDeps["recordWriter"]["patch"],
  first = stored("1", ROLES),
) {
  const read = vi.fn(async () => live);
  const lines: Record<string, unknown>[] = [];
  let cached = toMembersView(first);
  const deps: MembersServiceDeps = {
    cache: {
      record: () => cached,
      observeRecord: (object) => {
        if (object.kind === "members") cached = object;
      },
    },
    recordWriter: { read, patch },
    memberWrites: new WriteQueue(new FakeClock()),
    log: createLogger("info", "api", { write: (line) => lines.push(JSON.parse(line)) }),
  };
  const organization = organizationWith({ id: ORGANIZATION });
  const requester = { requestId: "r", apiKey: "k", permit: () => undefined };
  const parse = vi.spyOn(memberEntry, "safeParse");
  const [settled] = await Promise.allSettled([removeMember({ organization, userId }, requester, deps)]);
  const observed = cached.metadata.resourceVersion;
  return { settled, reads: read.mock.calls.length, parsed: parse.mock.calls.length, observed, lines };
}

const unexpected = () => Promise.reject(new Error("no write was expected"));

describe("a removal of a member", () => {
  it.each([
    ["an absent member", "cy", "NoSuchMember"],
    ["the last admin", "ada", "LastAdmin"],
  ])(
    "is refused for %s after a live read, without parsing the cached version again",
    async (_, userId, reason) => {
      const { settled, reads, parsed } = await remove(userId, stored("1", ROLES), unexpected);
      expect(settled).toMatchObject({ status: "rejected", reason: { reason } });
      expect({ reads, parsed }).toEqual({ reads: 1, parsed: 0 });
    },
  );

  it.each([
    ["has another version", stored("2", { ...ROLES, cy: "admin" })],
    ["was replaced by one with the same version", stored("1", { ...ROLES, cy: "admin" }, "another")],
  ])("is decided by the live record if it %s", async (_, live) => {
    const after = stored("3", ROLES);
    const { settled, parsed } = await remove("cy", live, async () => after);
    expect(settled).toMatchObject({ status: "fulfilled" });
    expect(parsed).toBe(5);
  });

  it("is not confirmed if its response is lost and the record is still the cached version", async () => {
    const lost = () => Promise.reject(new KubeUnreachableError("no response"));
    const { settled, reads, parsed } = await remove("bob", stored("1", ROLES), lost);
    expect(settled).toMatchObject({ status: "rejected", reason: { reason: "NotConfirmed" } });
    expect({ reads, parsed }).toEqual({ reads: 1, parsed: 0 });
  });

  it.each([
    ["names another one", { ...LABELS, [ORGANIZATION_LABEL]: randomUUID() }, {}],
    ["is in upper case", { ...LABELS, [ORGANIZATION_LABEL]: "A".repeat(8) }, {}],
    ["is the only label", { [ORGANIZATION_LABEL]: randomUUID() }, { [RESOURCE_LABEL]: "members" }],
    ["is absent", { [RESOURCE_LABEL]: "members" }, { [ORGANIZATION_LABEL]: ORGANIZATION }],
    ["is right", LABELS, {}],
  ])(
    "adds only labels that the record lacks if the label of the organization %s",
    async (_, labels, added) => {
      const { metadata, ...record } = stored("1", ROLES);
      const found = { ...record, metadata: { ...metadata, labels } };
      const patch = vi.fn(async () => stored("2", { ada: "admin" }));
      const { settled } = await remove("bob", found, patch, found);
      expect(settled).toMatchObject({ status: "fulfilled" });
      expect(patch).toHaveBeenCalledWith(expect.anything(), { labels: added, data: { bob: null } });
    },
  );

  it.each([
    ["keeps the member", ROLES],
    ["keeps the member in another role", { ...ROLES, bob: "admin" }],
  ] satisfies [string, Roles][])("is not confirmed if a webhook %s", async (_, roles) => {
    const { settled, observed, lines } = await remove("bob", stored("1", ROLES), async () =>
      stored("2", roles),
    );
    expect(settled).toMatchObject({ status: "rejected", reason: { status: 503, reason: "NotConfirmed" } });
    expect(observed, "so that the list of members is right").toBe("2");
    expect(lines).toMatchObject([{ level: "warn", msg: "removal of a member not confirmed" }]);
  });

  it("parses the response to its write", async () => {
    const after = stored("2", { ada: "admin" });
    const { settled, reads, parsed } = await remove("bob", after, async () => after);
    expect(settled).toMatchObject({ status: "fulfilled" });
    expect({ reads, parsed }).toEqual({ reads: 0, parsed: 1 });
  });
});
