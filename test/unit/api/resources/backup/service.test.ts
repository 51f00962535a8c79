import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ClusterCache } from "../../../../../src/api/cluster/cluster-cache.ts";
import { RecordWriter } from "../../../../../src/api/cluster/record-writer.ts";
import { WriteQueue } from "../../../../../src/api/cluster/write-queue.ts";
import {
  type BackupServiceDeps,
  backupPolicy,
  updateBackupPolicy,
} from "../../../../../src/api/resources/backup/service.ts";
import type { ServiceParams } from "../../../../../src/api/resources/path-params.ts";
import { type BackupPolicy, DEFAULT_BACKUP_POLICY } from "../../../../../src/domain/backup-policy.ts";
import type { KubeRequest } from "../../../../../src/kube/client.ts";
import { KubeUnreachableError } from "../../../../../src/kube/errors.ts";
import { backupConfigMap } from "../../../../../src/records/backup.ts";
import { RESOURCE_LABEL, recordLabels } from "../../../../../src/records/labels.ts";
import { createLogger } from "../../../../../src/telemetry/log.ts";
import { FakeClock } from "../../../../support/fakes/fake-clock.ts";
import { FakeCluster, refusal } from "../../../../support/fakes/fake-cluster.ts";
import { organizationWith } from "../../../../support/fixtures/records.ts";

const RECORDS = "records";
const ORGANIZATION = "11111111-1111-4111-8111-111111111111";
const SERVICE = "22222222-2222-4222-8222-222222222222";
const PATH = `/api/v1/namespaces/${RECORDS}/configmaps`;

const place: ServiceParams = {
  organization: organizationWith({ id: ORGANIZATION }),
  service: { id: SERVICE, organizationId: ORGANIZATION, name: "orders", namespace: "pipes" },
};

const TWELVE: BackupPolicy = { ...DEFAULT_BACKUP_POLICY, periodInHours: 12 };

// The watches of this cluster deliver no changes: a read returns a write only because the process caches it.
let cluster: FakeCluster;
let ending: AbortController;

beforeEach(() => {
  cluster = new FakeCluster();
  ending = new AbortController();
});

afterEach(() => ending.abort());

async function start(): Promise<BackupServiceDeps> {
  const log = createLogger("silent", "api");
  const clock = new FakeClock();
  const cache = new ClusterCache({
    client: cluster,
    namespace: RECORDS,
    pipeNamespaces: [],
    maxAgeMs: 300_000,
    clock,
    log,
  });
  void cache.run(ending.signal);
  await clock.advance(0);
  return {
    cache,
    recordWriter: new RecordWriter(cluster, RECORDS),
    backupWrites: new WriteQueue(clock),
    log,
  };
}

function update(
  deps: BackupServiceDeps,
  change: Parameters<typeof updateBackupPolicy>[1],
): Promise<BackupPolicy> {
  const requester = { requestId: randomUUID(), apiKey: randomUUID(), permit: () => undefined };
  return updateBackupPolicy(place, change, requester, deps);
}

function stored(policy: BackupPolicy, resourceVersion: string) {
  const record = backupConfigMap(SERVICE, ORGANIZATION, policy);
  return { ...record, metadata: { ...record.metadata, namespace: RECORDS, uid: "u", resourceVersion } };
}

function methods(): string[] {
  return cluster.calls.map(({ method = "GET" }) => method);
}

/** Returns the steps in order, one per request; errors are thrown. */
function responses(...steps: readonly unknown[]): (request: KubeRequest) => unknown {
  const left = [...steps];
  return () => {
    const step = left.shift();
    if (step instanceof Error) throw step;
    return step;
  };
}

describe("a change to the backup configuration", () => {
  it("creates the record with one request, and the next read returns it", async () => {
    cluster.behavior = responses(stored(TWELVE, "5"));
    const deps = await start();
    expect(await update(deps, { periodInHours: 12 })).toEqual(TWELVE);
    expect(backupPolicy(place.service, deps.cache)).toEqual(TWELVE);
    expect(cluster.calls).toMatchObject([
      { method: "POST", path: PATH, body: { data: { backupPeriodInHours: "12" } } },
    ]);
  });

  it("updates the record with one request, with the cached resource version", async () => {
    const { metadata } = cluster.add("configmaps", RECORDS, stored(TWELVE, "4"));
    const after = { ...TWELVE, retentionPeriodInHours: 48 };
    cluster.behavior = responses(stored(after, "5"));
    const deps = await start();
    expect(await update(deps, { retentionPeriodInHours: 48 })).toEqual(after);
    expect(backupPolicy(place.service, deps.cache)).toEqual(after);
    expect(cluster.calls).toMatchObject([
      {
        method: "PATCH",
        path: `${PATH}/backup-${SERVICE}`,
        patchType: "application/merge-patch+json",
        body: {
          metadata: { uid: metadata.uid, resourceVersion: metadata.resourceVersion },
          data: { backupPeriodInHours: "12", backupRetentionPeriodInHours: "48", backupStartTime: null },
        },
      },
    ]);
  });

  it("adds only labels that the record lacks, and keeps the organization before a move of the service", async () => {
    const { [RESOURCE_LABEL]: kind, ...ofOrganization } = recordLabels("backup", randomUUID());
    const labelsAfter = async (labels: Readonly<Record<string, string>>) => {
      const record = stored(TWELVE, "4");
      const found = { ...record, metadata: { ...record.metadata, labels } };
      cluster = new FakeCluster();
      // The record is not in the cache, because the cache does not select it or is stale.
      cluster.behavior = responses(refusal(409), found, stored(TWELVE, "5"));
      await update(await start(), { periodInHours: 12 });
      return cluster.calls.at(-1)?.body;
    };
    const added = recordLabels("backup", ORGANIZATION);
    expect(await labelsAfter({})).toMatchObject({ metadata: { labels: added } });
    expect(await labelsAfter(ofOrganization)).toHaveProperty("metadata.labels", { [RESOURCE_LABEL]: kind });
    expect(await labelsAfter({ [RESOURCE_LABEL]: "backup", ...ofOrganization })).toHaveProperty(
      "metadata.labels",
      {},
    );
  });

  it("is read from the cache without a request", async () => {
    cluster.add("configmaps", RECORDS, stored(TWELVE, "4"));
    expect(backupPolicy(place.service, (await start()).cache)).toEqual(TWELVE);
    expect(cluster.calls).toEqual([]);
  });

  it("returns what was stored, also if a webhook has changed it", async () => {
    const capped = { ...TWELVE, retentionPeriodInHours: 48 };
    cluster.behavior = responses(stored(capped, "5"));
    expect(await update(await start(), { retentionPeriodInHours: 72 })).toEqual(capped);
  });

  it("is not confirmed if the record is being deleted, and is made when it is gone", async () => {
    const { metadata, ...record } = stored(TWELVE, "5");
    const deleted = { ...record, metadata: { ...metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
    cluster.behavior = responses(deleted);
    const deps = await start();
    const first = update(deps, { periodInHours: 12 });
    await expect(first).rejects.toMatchObject({ status: 503, reason: "NotConfirmed" });
    cluster.behavior = responses(refusal(404), refusal(404), stored(TWELVE, "7"));
    expect(await update(deps, { periodInHours: 12 })).toEqual(TWELVE);
    expect(methods()).toEqual(["POST", "PATCH", "GET", "POST"]);
  });

  it("is retried with the current record after a conflict", async () => {
    const after = { ...TWELVE, retentionPeriodInHours: 48 };
    cluster.behavior = responses(refusal(409), stored(TWELVE, "5"), stored(after, "6"));
    expect(await update(await start(), { retentionPeriodInHours: 48 })).toEqual(after);
    expect(methods()).toEqual(["POST", "GET", "PATCH"]);
  });

  it("recreates the record if it was deleted", async () => {
    cluster.add("configmaps", RECORDS, stored(TWELVE, "4"));
    const after = { ...DEFAULT_BACKUP_POLICY, retentionPeriodInHours: 48 };
    cluster.behavior = responses(refusal(404), refusal(404), stored(after, "6"));
    expect(await update(await start(), { retentionPeriodInHours: 48 })).toEqual(after);
    expect(methods()).toEqual(["PATCH", "GET", "POST"]);
  });

  it("is not rejected because of a stale cache", async () => {
    cluster.add("configmaps", RECORDS, stored({ ...DEFAULT_BACKUP_POLICY, startTime: "3:00" }, "4"));
    const after = { ...DEFAULT_BACKUP_POLICY, periodInHours: 12 };
    cluster.behavior = responses(stored(DEFAULT_BACKUP_POLICY, "5"), stored(after, "6"));
    expect(await update(await start(), { periodInHours: 12 })).toEqual(after);
    expect(methods()).toEqual(["GET", "PATCH"]);
  });

  it("fails with 503 if every attempt conflicts", async () => {
    cluster.behavior = ({ method }) => {
      if (method === undefined) return stored(TWELVE, "5");
      throw refusal(409);
    };
    await expect(update(await start(), { retentionPeriodInHours: 48 })).rejects.toMatchObject({
      reason: "Contended",
    });
  });

  it.each([
    ["no response", new KubeUnreachableError("no response"), "NotConfirmed"],
    ["missing permissions", refusal(403), "Unavailable"],
    ["an error from the API server", refusal(500), "NotConfirmed"],
    ["a rejection by an admission policy", refusal(422), "PolicyDenied"],
  ])("is not retried after %s", async (_what, error, reason) => {
    cluster.behavior = responses(error);
    await expect(update(await start(), { periodInHours: 12 })).rejects.toMatchObject({ reason });
    expect(methods()).toEqual(["POST"]);
  });
});
