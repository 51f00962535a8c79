import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { membersRecord } from "../../../api/member-records.ts";
import type { FakeResponse } from "../../../support/fakes/fake-http-server.ts";
import { historyEntry } from "../../../support/fixtures/history-entry.ts";
import { keyRecord, organizationRecord, serviceRecord } from "../../../support/fixtures/records.ts";
import { type FakeRecord, FakeRecords, status } from "./fake-records.ts";

const ACME = randomUUID();
const SERVICE = randomUUID();
const KEY = keyRecord({ organizationId: ACME });
const ROLES = { ada: "admin", bob: "developer" };
const MEMBER = `admin member add --organization ${ACME} --user-id cy --name Cy --email cy@example.com --role admin`;
const organization = organizationRecord({ id: ACME });
const service = serviceRecord({ id: SERVICE, organizationId: ACME, namespace: "pipes" });

/** A record that was deleted, and that a finalizer keeps. */
function deleted(record: FakeRecord): FakeRecord {
  return { ...record, metadata: { ...record.metadata, deletionTimestamp: "2026-01-31T12:00:00Z" } };
}

describe("a key that is being deleted", () => {
  it.each(["enabled", "disabled"] as const)(
    "has the state deleting, although it is stored as %s",
    async (state) => {
      const key = keyRecord({ organizationId: ACME, state });
      const records = new FakeRecords(organization, deleted(key.record));
      const listed = await records.run(`admin key list --organization ${ACME} --output json`);
      expect(JSON.parse(listed.out)).toMatchObject([{ id: key.id, state: "deleting" }]);
      const shown = await records.run(`admin key show ${key.id} --output json`);
      expect(JSON.parse(shown.out)).toMatchObject({ id: key.id, state: "deleting" });
    },
  );

  it("does not count toward the maximum of keys, unlike the others", async () => {
    const keys = Array.from({ length: 99 }, () => keyRecord({ organizationId: ACME }).record);
    const create = `admin key create --organization ${ACME} --name ci --role admin`;
    const isCreated = async (...others: readonly FakeRecord[]) => {
      const records = new FakeRecords(organization, ...keys, ...others);
      records.intercept = ({ method }) => (method === "POST" ? { body: {} } : undefined);
      return (await records.run(create)).code === 0;
    };
    expect(await isCreated(deleted(KEY.record))).toBe(true);
    expect(await isCreated(KEY.record)).toBe(false);
  });
});

describe("a record that is being deleted", () => {
  it.each([
    [`admin key enable ${KEY.id}`, "secret", KEY.record],
    [`admin key disable ${KEY.id}`, "secret", KEY.record],
    [`admin key update ${KEY.id} --name b`, "secret", KEY.record],
    [`admin key rotate ${KEY.id}`, "secret", KEY.record],
    [`admin organization update ${ACME} --name b`, "configmap", organization],
    [`admin service update ${SERVICE} --name b`, "configmap", service],
  ] as const)("is not changed by %s, which says what keeps it", async (words, resource, record) => {
    const { code, out, err, writes } = await new FakeRecords(deleted(record)).run(words);
    expect({ code, out, writes }).toEqual({ code: 1, out: "", writes: [] });
    expect(err).toMatch(
      new RegExp(
        `^The (API key|organization|service) \\S+ is being deleted, so nothing was changed\\. To see the finalizers that keep it, run \`kubectl get ${resource} ${record.metadata.name} --namespace \\S+ --output yaml --kubeconfig \\S+\`\\. If you still need the \\1, create another one\\.\n$`,
      ),
    );
  });

  it.each([
    `admin key create --organization ${ACME} --name ci --role admin`,
    `admin service create --organization ${ACME} --name orders --pipes-namespace pipes`,
    MEMBER,
  ])("of an organization gets nothing new from %s", async (words) => {
    const { code, out, err, writes } = await new FakeRecords(deleted(organization)).run(words);
    expect({ code, out, writes }).toEqual({ code: 1, out: "", writes: [] });
    expect(err).toContain(`The organization ${ACME} is being deleted, so nothing was changed.`);
  });

  it("does not keep a member of a deleted organization from being removed", async () => {
    const records = new FakeRecords(deleted(organization), membersRecord(ACME, ROLES));
    expect((await records.run(`admin member remove bob --organization ${ACME} --yes`)).code).toBe(0);
  });

  it("of members gets no member, and the command says what keeps it", async () => {
    const members = membersRecord(ACME, ROLES);
    const { code, out, err, writes } = await new FakeRecords(organization, deleted(members)).run(MEMBER);
    expect({ code, out, writes }).toEqual({ code: 1, out: "", writes: [] });
    expect(err).toMatch(
      new RegExp(
        `^The list of members of organization ${ACME} is being deleted, so nothing was changed\\. To see the finalizers that keep it, run \`kubectl get configmap ${members.metadata.name} --namespace \\S+ --output yaml --kubeconfig \\S+\`\\. When it is gone, add the members again\\.\n$`,
      ),
    );
  });

  it.each([
    ["", organization],
    [" of an organization that is being deleted, too", deleted(organization)],
  ])("of members%s, loses a member that is removed, because the API still reads it", async (_, owner) => {
    const records = new FakeRecords(owner, deleted(membersRecord(ACME, ROLES)));
    const { code, err, writes } = await records.run(`admin member remove bob --organization ${ACME} --yes`);
    expect({ code, err }).toEqual({
      code: 0,
      err: `User bob is no longer a member of organization ${ACME}.\n`,
    });
    expect(writes).toMatchObject([{ method: "PATCH", body: { data: { bob: null } } }]);
  });

  it("is not changed either if the deletion comes between the read and the write", async () => {
    const records = new FakeRecords(KEY.record);
    let writes = 0;
    records.intercept = ({ method }) => {
      if (method !== "PATCH") return undefined;
      writes += 1;
      records.put(deleted(KEY.record));
      return status(409, "Conflict", "changed");
    };
    const { code, err } = await records.run(`admin key enable ${KEY.id}`);
    expect({ code, writes }).toEqual({ code: 1, writes: 1 });
    expect(err).toContain("is being deleted, so nothing was changed.");
  });
});

describe("a PipeScaling that is being deleted", () => {
  const COMMANDS = [`admin service rollback ${SERVICE}`, `admin service open-window ${SERVICE}`];

  function scalingOf(deletionTimestamp?: string) {
    const [current, previous] = [historyEntry(4), historyEntry(2)];
    const { replicaCpuMillicores, replicaMemoryGb } = current;
    return {
      metadata: {
        ...{ name: SERVICE, namespace: "pipes", uid: "uid-1", resourceVersion: "7", generation: 3 },
        deletionTimestamp,
      },
      spec: { replicaCpuMillicores, replicaMemoryGb },
      status: { observedGeneration: 3, history: [current, previous], desired: current },
    };
  }

  /** Runs a command against a PipeScaling. @param onWrite the response to a write */
  async function run(words: string, read: () => object, onWrite: () => FakeResponse = () => ({ body: {} })) {
    const records = new FakeRecords(organization, service);
    records.intercept = ({ method, path }) => {
      if (!path.includes(`/namespaces/pipes/pipescalings/${SERVICE}`)) return undefined;
      return method === "GET" ? { body: read() } : onWrite();
    };
    return await records.run(words);
  }

  const refusal = new RegExp(
    `^The PipeScaling of service ${SERVICE} is being deleted, so nothing was changed\\. To see the finalizers that keep it, run \`kubectl get pipescaling ${SERVICE} --namespace pipes --output yaml --kubeconfig \\S+\`\\. When it is gone, the controller creates another one if the service has pipes, with their size and an empty history\\.\n$`,
  );

  it.each([...COMMANDS, `admin service rollback ${SERVICE} --dry-run`])(
    "is not changed by %s, which would be lost",
    async (words) => {
      const { code, out, err, writes } = await run(words, () => scalingOf("2026-01-31T12:00:00Z"));
      expect({ code, out, writes }).toEqual({ code: 1, out: "", writes: [] });
      expect(err).toMatch(refusal);
      expect((await run(words, () => scalingOf())).code).toBe(0);
    },
  );

  it.each(COMMANDS)("is not changed either if the deletion comes before the write of %s", async (words) => {
    let scaling = scalingOf();
    const { code, out, err, writes } = await run(
      words,
      () => scaling,
      () => {
        scaling = scalingOf("2026-01-31T12:00:00Z");
        return status(409, "Conflict", "changed");
      },
    );
    expect({ code, out, writes: writes.length }).toEqual({ code: 1, out: "", writes: 1 });
    expect(err).toMatch(refusal);
  });
});
