import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createApp } from "../../../src/api/app.ts";
import { ClusterCache } from "../../../src/api/cluster/cluster-cache.ts";
import { LiveReader } from "../../../src/api/cluster/live-reader.ts";
import { PipeScalingWriter } from "../../../src/api/cluster/pipe-scaling-writer.ts";
import { RecordWriter } from "../../../src/api/cluster/record-writer.ts";
import { WriteQueue } from "../../../src/api/cluster/write-queue.ts";
import { ApiMetrics } from "../../../src/api/metrics.ts";
import { TrustedProxies } from "../../../src/api/middleware/client-ip.ts";
import { RateLimits } from "../../../src/api/middleware/rate-limit/limits.ts";
import { sizeOfCores } from "../../../src/domain/size.ts";
import { BUILT_IN_TIERS } from "../../../src/domain/tier.ts";
import type { KubeRequest } from "../../../src/kube/client.ts";
import type { KubeObject } from "../../../src/kube/objects.ts";
import { sha256 } from "../../../src/records/api-key.ts";
import { ORGANIZATION_LABEL } from "../../../src/records/labels.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { type ApiResponse, clientOf, openRaw, parseRaw } from "../../api/client.ts";
import { membersRecord } from "../../api/member-records.ts";
import { FakeClock } from "../../support/fakes/fake-clock.ts";
import { FakeCluster, refusal } from "../../support/fakes/fake-cluster.ts";
import { keyRecord, organizationRecord, serviceRecord } from "../../support/fixtures/records.ts";
import { DEFAULT_LIMITS, serve } from "../../support/servers/express-app.ts";

const RECORDS = "records";
const PIPES = "pipes";
const ORGANIZATION = "11111111-1111-4111-8111-111111111111";
const OTHER_ORGANIZATION = "33333333-3333-4333-8333-333333333333";
const SERVICE = "22222222-2222-4222-8222-222222222222";
const SERVICE_PATH = `/v1/organizations/${ORGANIZATION}/services/${SERVICE}`;
const MINUTE_MS = 60_000;
/** A boost that lasts longer than the tests. */
const BOOST = { replicaCpuMillicores: 16_000, replicaMemoryGb: 64, until: "2026-01-02T00:00:00Z" };
const BOOSTED = { metadata: { name: SERVICE, generation: 1 }, spec: { boost: BOOST } };

interface Write {
  readonly method: string;
  readonly path: string;
  readonly body: string;
}

const WRITES: Readonly<Record<string, Write>> = {
  "a rescale": {
    method: "PATCH",
    path: `${SERVICE_PATH}/pipesCdcScaling`,
    body: '{"replicaCpuMillicores":4000}',
  },
  "a boost": {
    method: "PUT",
    path: `${SERVICE_PATH}/pipesCdcScaling/boost`,
    body: JSON.stringify(BOOST),
  },
  "the end of a boost": {
    method: "DELETE",
    path: `${SERVICE_PATH}/pipesCdcScaling/boost`,
    body: "{}",
  },
  "a backup configuration change": {
    method: "PATCH",
    path: `${SERVICE_PATH}/backupConfiguration`,
    body: '{"backupPeriodInHours":12}',
  },
  "a member removal": {
    method: "DELETE",
    path: `/v1/organizations/${ORGANIZATION}/members/cy%40example.com`,
    body: "{}",
  },
};

let cluster: FakeCluster;
let clock: FakeClock;
let ending: AbortController;
let url: string;
let organization: KubeObject;
let service: KubeObject;

beforeEach(async () => {
  cluster = new FakeCluster();
  clock = new FakeClock();
  ending = new AbortController();
  organization = cluster.add("configmaps", RECORDS, organizationRecord({ id: ORGANIZATION, tier: "scale" }));
  cluster.add("configmaps", RECORDS, organizationRecord({ id: OTHER_ORGANIZATION, tier: "scale" }));
  const place = { id: SERVICE, organizationId: ORGANIZATION, namespace: PIPES };
  service = cluster.add("configmaps", RECORDS, serviceRecord(place));
  const members = { "cy@example.com": "developer", "ada@example.com": "admin" };
  cluster.add("configmaps", RECORDS, membersRecord(ORGANIZATION, members));
  cluster.add("pipescalings", PIPES, BOOSTED);
  cluster.behavior = accept;
});

afterEach(() => ending.abort());

async function start(): Promise<void> {
  const log = createLogger("silent", "api");
  const maxAgeMs = 5 * MINUTE_MS;
  const cache = new ClusterCache({
    client: cluster,
    namespace: RECORDS,
    pipeNamespaces: [],
    maxAgeMs,
    clock,
    log,
  });
  void cache.run(ending.signal);
  await clock.advance(0);
  const app = createApp({
    cache,
    clock,
    log,
    limits: new RateLimits({ ...DEFAULT_LIMITS, rateLimit: 1000 }),
    trustedProxies: new TrustedProxies([]),
    metrics: new ApiMetrics(new Registry()),
    recordSpan: undefined,
    isShuttingDown: () => false,
    disableDocsPage: false,
    tiers: BUILT_IN_TIERS,
    maximumSize: sizeOfCores(24),
    pathAliases: new Map(),
    maxBoostMs: 30 * 86_400_000,
    liveReader: new LiveReader(cluster),
    scalingWriter: new PipeScalingWriter(cluster),
    scalingWrites: new WriteQueue(clock),
    recordWriter: new RecordWriter(cluster, RECORDS),
    memberWrites: new WriteQueue(clock),
    backupWrites: new WriteQueue(clock),
  });
  url = await serve(app);
}

/** The API server's response to a write: the object with the next resource version. */
function accept({ body }: KubeRequest): object {
  const { metadata, data = {}, ...others } = Object(body);
  const kept = Object.entries(data).filter(([, value]) => value !== null);
  return {
    ...others,
    data: Object.fromEntries(kept),
    metadata: { name: `backup-${SERVICE}`, uid: "u", generation: 2, ...metadata, resourceVersion: "9" },
  };
}

/** A key in the cluster, and a way to change or delete it. */
function addKey() {
  const { record, authorization } = keyRecord({ organizationId: ORGANIZATION });
  const encode = (data: object) =>
    Object.fromEntries(
      Object.entries(data).map(([key, text]) => [key, Buffer.from(String(text)).toString("base64")]),
    );
  const secret = cluster.add("secrets", RECORDS, { ...record, ...{ data: encode(record.stringData) } });
  return {
    authorization,
    change: (data: object) =>
      cluster.send("secrets", "MODIFIED", {
        ...secret,
        ...{ data: encode({ ...record.stringData, ...data }) },
      }),
    move: () => cluster.send("secrets", "MODIFIED", inOtherOrganization(secret)),
    remove: () => cluster.send("secrets", "DELETED", secret),
  };
}

type Key = ReturnType<typeof addKey>;

/** Changes while a write waits, and the status of its response. */
const CHANGES: readonly (readonly [string, (key: Key) => void, number])[] = [
  ["the key is disabled", (key) => key.change({ state: "disabled" }), 401],
  ["the key is deleted", (key) => key.remove(), 401],
  ["the key becomes malformed", (key) => key.change({ roles: "[" }), 401],
  ["the key expires", (key) => key.change({ expireAt: new Date(clock.now()).toISOString() }), 401],
  ["the secret is replaced", (key) => key.change({ secretHash: `sha256:${sha256("another")}` }), 401],
  ["the role is taken away", (key) => key.change({ roles: '["developer"]' }), 403],
  ["the address is forbidden", (key) => key.change({ ipAccessList: '[{"source":"192.0.2.1"}]' }), 403],
  ["the key moves to another organization", (key) => key.move(), 404],
  ["the organization is deleted", () => cluster.send("configmaps", "DELETED", organization), 404],
];

const SERVICE_CHANGES: typeof CHANGES = [
  ["the service is deleted", () => cluster.send("configmaps", "DELETED", service), 404],
  [
    "the service moves to another organization",
    () => cluster.send("configmaps", "MODIFIED", inOtherOrganization(service)),
    404,
  ],
  ["the service moves to another namespace", () => changeService({ namespace: "elsewhere" }), 503],
  ["the tier of the organization changes", () => changeOrganization({ tier: "basic" }), 503],
];

function changeService(data: object): void {
  cluster.send("configmaps", "MODIFIED", withData(service, data));
}

function changeOrganization(data: object): void {
  cluster.send("configmaps", "MODIFIED", withData(organization, data));
}

function withData(object: KubeObject, data: object): KubeObject {
  return { ...object, ...{ data: { ...("data" in object ? Object(object.data) : {}), ...data } } };
}

function inOtherOrganization({ metadata, ...others }: KubeObject): KubeObject {
  const labels = { ...metadata.labels, [ORGANIZATION_LABEL]: OTHER_ORGANIZATION };
  return { ...others, metadata: { ...metadata, labels } };
}

const CASES = Object.entries(WRITES).flatMap(([what, write]) =>
  [...CHANGES, ...(write.path.startsWith(SERVICE_PATH) ? SERVICE_CHANGES : [])].map(
    ([when, change, status]) => [what, when, status, write, change] as const,
  ),
);

function send({ method, path, body }: Write, { authorization }: Key): Promise<ApiResponse> {
  const headers = { "Content-Type": "application/json" };
  return clientOf(url)({ method, path, authorization, headers, body });
}

/** Sends the headers, waits until the server reads the body, and then sends the body. */
async function sendSlowly({ method, path, body }: Write, key: Key, meanwhile: () => Promise<void>) {
  const connection = await openRaw(url);
  const headers = [
    "Host: x",
    `Authorization: ${key.authorization}`,
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
    "Expect: 100-continue",
    "Connection: close",
  ];
  connection.write(`${method} ${path} HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n`);
  await connection.received("100 Continue\r\n\r\n");
  await meanwhile();
  connection.write(body);
  await connection.closed;
  return parseRaw(connection.text().replaceAll("HTTP/1.1 100 Continue\r\n\r\n", ""));
}

function writes(): readonly KubeRequest[] {
  return cluster.calls.filter(({ method = "GET" }) => method !== "GET");
}

describe("a write whose body arrives slowly", () => {
  it.each(Object.entries(WRITES))("is made if nothing changes meanwhile: %s", async (_what, write) => {
    const key = addKey();
    await start();
    expect(await sendSlowly(write, key, async () => undefined)).toMatchObject({ status: 200 });
    expect(writes()).toHaveLength(1);
  });

  it.each(CASES)(
    "is not made: %s, when %s meanwhile, gets %i",
    async (_what, _when, status, write, change) => {
      const key = addKey();
      await start();
      const response = await sendSlowly(write, key, async () => {
        change(key);
        await clock.advance(1000);
      });
      expect(response).toMatchObject({ status, body: { status } });
      expect(writes()).toEqual([]);
    },
  );
});

describe("a write that waits for its turn", () => {
  /** Sends a write while another one with another key is in flight, which ends after `meanwhile`. */
  async function sendBehindAnother(
    write: Write,
    key: Key,
    other: Key,
    meanwhile: () => Promise<void>,
    before = write,
  ) {
    const held = Promise.withResolvers<void>();
    cluster.behavior = async (request) => {
      if (writes().length === 1) await held.promise;
      return accept(request);
    };
    const first = send(before, other);
    await expect.poll(() => writes().length).toBe(1);
    const second = send(write, key);
    // The second one is in the queue once a third request has been served.
    await send({ method: "GET", path: "/v1/organizations", body: "" }, other);
    await meanwhile();
    held.resolve();
    return await Promise.all([first, second]);
  }

  it.each(CASES.filter(([, , status]) => status < 404))(
    "is not made: %s, when %s meanwhile, gets %i",
    async (_what, _when, status, write, change) => {
      const [key, other] = [addKey(), addKey()];
      await start();
      const [first, second] = await sendBehindAnother(write, key, other, async () => {
        change(key);
        await clock.advance(1000);
      });
      expect(first).toMatchObject({ status: 200 });
      expect(second).toMatchObject({ status, body: { status } });
      expect(writes()).toHaveLength(1);
    },
  );

  it("is not made if it is a boost that ends meanwhile, and would only end the one in effect", async () => {
    const [key, other] = [addKey(), addKey()];
    await start();
    const until = new Date(clock.now() + 5000).toISOString();
    const boost = {
      method: "PUT",
      path: `${SERVICE_PATH}/pipesCdcScaling/boost`,
      body: JSON.stringify({ replicaCpuMillicores: 8000, until }),
    };
    const rescale = {
      method: "PATCH",
      path: `${SERVICE_PATH}/pipesCdcScaling`,
      body: '{"replicaCpuMillicores":4000}',
    };
    const [first, second] = await sendBehindAnother(boost, key, other, () => clock.advance(5000), rescale);
    expect(first).toMatchObject({ status: 200 });
    expect(second).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining("until must be in the future") },
    });
    expect(writes()).toHaveLength(1);
  });
});

describe("a write that is tried again after a conflict", () => {
  /** Responds to a write with a conflict, before which something changes, and to the read after it with an object. */
  function conflict(current: (path: string) => object, change: () => void): void {
    cluster.behavior = async ({ method, path }) => {
      if (method === "PATCH" || method === "POST") {
        change();
        await clock.advance(1000);
        throw refusal(409);
      }
      const { metadata, ...others } = Object(current(path));
      return { ...others, metadata: { ...metadata, uid: "u", resourceVersion: "7" } };
    };
  }

  function writable(path: string): object {
    if (path.includes("members-"))
      return membersRecord(ORGANIZATION, { "cy@example.com": "developer", "ada@example.com": "admin" });
    return path.includes("backup-") ? { metadata: { name: `backup-${SERVICE}` } } : BOOSTED;
  }

  /** Objects whose state does not allow the writes of these tests. */
  function unwritable(path: string): object {
    if (path.includes("members-")) return membersRecord(ORGANIZATION, { "cy@example.com": "admin" });
    if (path.includes("backup-"))
      return { metadata: { name: `backup-${SERVICE}` }, data: { backupStartTime: "2:00" } };
    return { metadata: { name: SERVICE, namespace: PIPES }, spec: { suspend: true } };
  }

  it.each(CASES)(
    "is not made: %s, when %s meanwhile, gets %i",
    async (_what, _when, status, write, change) => {
      const key = addKey();
      conflict(writable, () => change(key));
      await start();
      expect(await send(write, key)).toMatchObject({ status, body: { status } });
      expect(writes()).toHaveLength(1);
    },
  );

  it.each(CASES)(
    "does not reveal the state of an object that its caller may not change any more: %s, when %s meanwhile, gets %i",
    async (_what, _when, status, write, change) => {
      const key = addKey();
      conflict(unwritable, () => change(key));
      await start();
      const { body } = await send(write, key);
      expect(body).toMatchObject({ status });
      expect(JSON.stringify(body)).not.toMatch(/suspended|last admin|backupStartTime/);
    },
  );
});

describe("a read that waits for the cluster", () => {
  const HISTORY = { method: "GET", path: `${SERVICE_PATH}/pipesCdcScaling/history`, body: "" };
  const size = { replicaCpuMillicores: 4000, replicaMemoryGb: 16, summary: "4 cpu / 16 Gi" };
  const entry = { ...size, source: "Spec", result: "Scaled", startedAt: "2026-01-01T00:00:00Z" };
  const reported = () => ({ ...BOOSTED, status: { history: [entry] } });
  const absent = () => {
    throw refusal(404);
  };

  /** Reads the history, and changes something while the cluster reads the object. */
  async function readHistory(object: () => object, change: (key: Key) => void): Promise<ApiResponse> {
    const key = addKey();
    cluster.behavior = async () => {
      change(key);
      await clock.advance(1000);
      return object();
    };
    await start();
    return await send(HISTORY, key);
  }

  // A developer may read.
  const changes = [...CHANGES, ...SERVICE_CHANGES].filter(([when]) => when !== "the role is taken away");

  it.each(changes)("has no result when %s meanwhile", async (_when, change, status) => {
    expect(await readHistory(reported, change)).toMatchObject({ status, body: { status } });
  });

  it.each(changes)(
    "does not reveal that there is no pipe when %s meanwhile",
    async (_when, change, status) => {
      expect(await readHistory(absent, change)).toMatchObject({ status, body: { status } });
    },
  );

  it.each([
    ["nothing changes", () => undefined],
    ["the key keeps a role that may read", (key: Key) => key.change({ roles: '["developer"]' })],
    ["the service gets another name", () => changeService({ name: "another" })],
  ])("has the result if %s meanwhile", async (_when, change) => {
    const { body } = await readHistory(reported, change);
    expect(body).toMatchObject({ status: 200, result: [{ result: "scaled" }] });
  });
});
