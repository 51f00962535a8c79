import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import * as z from "zod";
import { createApp } from "../../../src/api/app.ts";
import { ClusterCache } from "../../../src/api/cluster/cluster-cache.ts";
import { LiveReader } from "../../../src/api/cluster/live-reader.ts";
import { PipeScalingWriter } from "../../../src/api/cluster/pipe-scaling-writer.ts";
import { RecordWriter } from "../../../src/api/cluster/record-writer.ts";
import { WriteQueue } from "../../../src/api/cluster/write-queue.ts";
import { ApiMetrics } from "../../../src/api/metrics.ts";
import { TrustedProxies } from "../../../src/api/middleware/client-ip.ts";
import { RateLimits } from "../../../src/api/middleware/rate-limit/limits.ts";
import type { PathAliases } from "../../../src/api/path-aliases.ts";
import { OPERATIONS } from "../../../src/api/resources/operations.ts";
import { PERMISSIONS } from "../../../src/cli/doctor/permissions.ts";
import { describeSize, sizeOfCores } from "../../../src/domain/size.ts";
import { BUILT_IN_TIERS } from "../../../src/domain/tier.ts";
import type { KubeRequest } from "../../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../../src/kube/errors.ts";
import { membersConfigMap } from "../../../src/records/members.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import type { Span } from "../../../src/telemetry/span.ts";
import { type ApiRequest, type ApiResponse, type Client, clientOf, exchangeRaw } from "../../api/client.ts";
import { membersRecord } from "../../api/member-records.ts";
import { FakeClock, settled } from "../../support/fakes/fake-clock.ts";
import { FakeCluster, refusal } from "../../support/fakes/fake-cluster.ts";
import {
  type KeyFields,
  type KeyRecord,
  keyRecord,
  organizationRecord,
  serviceRecord,
} from "../../support/fixtures/records.ts";
import { DEFAULT_LIMITS, serve } from "../../support/servers/express-app.ts";
import { open } from "../../support/servers/http-server.ts";

const RECORDS = "records";
const PIPES = "pipes";
const ORGANIZATION = "11111111-1111-4111-8111-111111111111";
const SERVICE = "22222222-2222-4222-8222-222222222222";
const PATH = `/v1/organizations/${ORGANIZATION}/services/${SERVICE}/pipesCdcScaling`;
const MINUTE_MS = 60_000;

let cluster: FakeCluster;
let clock: FakeClock;
let ending: AbortController;
let lines: Record<string, unknown>[];
let spans: Span[];
let metrics: Registry;

beforeEach(() => {
  cluster = new FakeCluster();
  clock = new FakeClock();
  ending = new AbortController();
  lines = [];
  spans = [];
  metrics = new Registry();
  const organization = organizationRecord({ id: ORGANIZATION, tier: "scale" });
  cluster.add("configmaps", RECORDS, organization);
  cluster.add(
    "configmaps",
    RECORDS,
    serviceRecord({ id: SERVICE, organizationId: ORGANIZATION, namespace: PIPES }),
  );
});

afterEach(() => ending.abort());

function addKey(fields: Partial<KeyFields> = {}): string {
  return addReplaceableKey(fields).authorization;
}

/** Adds a key; `replace` changes the fields of its record. */
function addReplaceableKey(fields: Partial<KeyFields> = {}) {
  const { keyId, keySecret, authorization, record } = keyRecord({ organizationId: ORGANIZATION, ...fields });
  const added = cluster.add("secrets", RECORDS, asRead(record));
  const replace = (changed: Partial<KeyFields>) => {
    const key = keyRecord({ organizationId: ORGANIZATION, ...fields, ...changed, keyId, keySecret });
    const metadata = { ...added.metadata, resourceVersion: "2" };
    cluster.replace("secrets", { ...asRead(key.record), metadata });
  };
  return { authorization, replace };
}

/** A Secret as the API server returns it. */
function asRead(record: KeyRecord["record"]) {
  const data = Object.fromEntries(
    Object.entries(record.stringData).map(([key, text]) => [
      key,
      Buffer.from(String(text)).toString("base64"),
    ]),
  );
  return { ...record, data };
}

const SIZE = { replicaCpuMillicores: 2000, replicaMemoryGb: 8 };

function addScaling(name = SERVICE, effective = SIZE) {
  return cluster.add("pipescalings", PIPES, { metadata: { name }, ...{ status: { effective } } });
}

async function start(...options: Parameters<typeof startUrl>): Promise<Client> {
  return clientOf(await startUrl(...options));
}

/** Serves the app with filled caches, unless the cluster is unreachable. Returns its base URL. */
async function startUrl(
  pipeNamespaces: readonly string[] = [],
  pathAliases: PathAliases = new Map(),
  disableDocsPage = false,
): Promise<string> {
  const log = createLogger("info", "api", { write: (line) => lines.push(JSON.parse(line)) });
  const maxAgeMs = 5 * MINUTE_MS;
  const cache = new ClusterCache({
    client: cluster,
    namespace: RECORDS,
    pipeNamespaces,
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
    metrics: new ApiMetrics(metrics),
    recordSpan: (span) => void spans.push(span),
    isShuttingDown: () => ending.signal.aborted,
    tiers: BUILT_IN_TIERS,
    maximumSize: sizeOfCores(24),
    pathAliases,
    disableDocsPage,
    maxBoostMs: 30 * 86_400_000,
    liveReader: new LiveReader(cluster),
    scalingWriter: new PipeScalingWriter(cluster),
    scalingWrites: new WriteQueue(clock),
    recordWriter: new RecordWriter(cluster, RECORDS),
    memberWrites: new WriteQueue(clock),
    backupWrites: new WriteQueue(clock),
  });
  return await serve(app);
}

function patch(send: Client, authorization: string): Promise<ApiResponse> {
  const headers = { "Content-Type": "application/json" };
  return send({ method: "PATCH", path: PATH, authorization, headers, body: '{"replicaCpuMillicores":4000}' });
}

/** The API server's response to our apply patch: the object with the requested size and the next resource version. */
function applied({ body }: KubeRequest): object {
  const written = Object(body);
  return { ...written, metadata: { ...written.metadata, namespace: PIPES, resourceVersion: "2" } };
}

function describeSpec(spec: unknown): string {
  const { replicaCpuMillicores, replicaMemoryGb } = Object(spec);
  return describeSize({ cpuMillicores: replicaCpuMillicores, memoryGib: replicaMemoryGb });
}

function expectUnavailable(response: ApiResponse): void {
  expect(response).toMatchObject({ status: 503, body: { status: 503 } });
  expect(response.headers["retry-after"]).toMatch(/^[1-9]\d*$/);
}

describe("the API at startup", () => {
  it("responds with 503 to credentials until its caches are filled, and with 401 to a request without credentials", async () => {
    const authorization = addKey();
    cluster.reachable = false;
    const send = await start();
    expectUnavailable(await send({ path: "/v1/organizations", authorization }));
    expect((await send({ path: "/v1/organizations" })).status).toBe(401);
    expect((await send({ path: "/" })).status).toBe(404);
    expect(lines).toContainEqual(
      expect.objectContaining({ msg: expect.stringContaining("cannot watch API keys") }),
    );
  });

  it.each(["secrets", "configmaps"])("responds with 503 while only %s cannot be read", async (plural) => {
    const authorization = addKey();
    cluster.unreadable = plural;
    const send = await start();
    expectUnavailable(await send({ path: "/v1/organizations", authorization }));
  });

  it("responds normally when its caches are filled", async () => {
    const authorization = addKey();
    cluster.reachable = false;
    const send = await start();
    expectUnavailable(await send({ path: "/v1/organizations", authorization }));
    cluster.reachable = true;
    // The first retry happens after 0.8 to 1.6 s.
    await clock.advance(1600);
    expect((await send({ path: "/v1/organizations", authorization })).status).toBe(200);
  });
});

describe("the path /v1", () => {
  it.each(["OPTIONS", "TRACE", "POST"])(
    "rejects %s with 401 without a key, and with 405 with one",
    async (method) => {
      const authorization = addKey();
      const send = await start();
      expect(await send({ method, path: "/v1" })).toMatchObject({ status: 401, body: { status: 401 } });
      expect(await send({ method, path: "/v1", authorization })).toMatchObject({
        status: 405,
        body: { status: 405 },
        headers: { allow: "GET, HEAD" },
      });
      expect((await send({ path: "/v1" })).status).toBe(200);
    },
  );
});

describe("the API while only PipeScalings cannot be read", () => {
  it("responds with 503 to operations that need them, and serves all others", async () => {
    const authorization = addKey();
    cluster.unreadable = "pipescalings";
    const send = await start();
    expectUnavailable(await send({ path: PATH, authorization }));
    expectUnavailable(await patch(send, authorization));
    expect((await send({ path: "/v1/organizations", authorization })).status).toBe(200);
  });
});

describe("the API while the PipeScalings of one namespace cannot be read", () => {
  const ELSEWHERE = "elsewhere";
  const OTHER = "33333333-3333-4333-8333-333333333333";
  const METRICS = `/v1/organizations/${ORGANIZATION}/prometheus`;
  const metricsOf = (service: string) => METRICS.replace("prometheus", `services/${service}/prometheus`);
  const servicesIn = ({ text }: ApiResponse) => new Set(text.match(/(?<=service_id=")[^"]+/g));

  /** Adds a service in another namespace, with its PipeScaling. */
  function addOther(): void {
    const record = serviceRecord({ id: OTHER, organizationId: ORGANIZATION, namespace: ELSEWHERE });
    cluster.add("configmaps", RECORDS, record);
    cluster.add("pipescalings", ELSEWHERE, { metadata: { name: OTHER }, ...{ status: { effective: SIZE } } });
  }

  it("responds with 503 only to requests for the services there, and leaves them out of the metrics", async () => {
    const authorization = addKey();
    addScaling();
    addOther();
    cluster.unreadable = `${ELSEWHERE}/pipescalings`;
    const send = await start([PIPES, ELSEWHERE]);
    expect(await send({ path: PATH, authorization })).toMatchObject({ status: 200 });
    expectUnavailable(await send({ path: PATH.replace(SERVICE, OTHER), authorization }));
    const metrics = await send({ path: METRICS, authorization });
    expect([metrics.status, servicesIn(metrics)]).toEqual([200, new Set([SERVICE])]);
    expectUnavailable(await send({ path: metricsOf(OTHER), authorization }));
    expect(await send({ path: metricsOf(SERVICE), authorization })).toMatchObject({ status: 200 });
  });

  it("leaves the services there out of the metrics when their cache is older than 5 minutes", async () => {
    const authorization = addKey();
    addScaling();
    addOther();
    const send = await start([PIPES, ELSEWHERE]);
    cluster.unreadable = `${ELSEWHERE}/pipescalings`;
    await clock.advance(5 * MINUTE_MS);
    expect(servicesIn(await send({ path: METRICS, authorization }))).toEqual(new Set([SERVICE, OTHER]));
    await clock.advance(1);
    expect(servicesIn(await send({ path: METRICS, authorization }))).toEqual(new Set([SERVICE]));
    cluster.unreadable = undefined;
    await clock.advance(MINUTE_MS);
    expect(servicesIn(await send({ path: METRICS, authorization }))).toEqual(new Set([SERVICE, OTHER]));
  });

  it.each([
    ["its services are all there", `${PIPES}/pipescalings`],
    ["no namespace can be read", "pipescalings"],
  ])("responds with 503 to a scrape of an organization if %s", async (_, unreadable) => {
    const authorization = addKey();
    addScaling();
    if (unreadable === "pipescalings") addOther();
    cluster.unreadable = unreadable;
    const send = await start([PIPES, ELSEWHERE]);
    expectUnavailable(await send({ path: METRICS, authorization }));
  });

  it("responds with 200 to a scrape of an organization without services", async () => {
    const organizationId = "44444444-4444-4444-8444-444444444444";
    cluster.add("configmaps", RECORDS, organizationRecord({ id: organizationId }));
    const authorization = addKey({ organizationId });
    cluster.unreadable = "pipescalings";
    const send = await start([PIPES, ELSEWHERE]);
    const path = METRICS.replace(ORGANIZATION, organizationId);
    expect(await send({ path, authorization })).toMatchObject({ status: 200 });
  });
});

describe("the size of a service whose pipes have resources that cannot be requested", () => {
  it.each([
    { replicaCpuMillicores: 500, replicaMemoryGb: 2 },
    { replicaCpuMillicores: 2000, replicaMemoryGb: 5 },
    { replicaCpuMillicores: 1, replicaMemoryGb: 0 },
    { replicaCpuMillicores: 200_000, replicaMemoryGb: 1 },
  ])("is returned as it is, and as the OpenAPI document describes it: %j", async (size) => {
    const authorization = addKey();
    addScaling(SERVICE, size);
    const send = await start();
    const resultAt = async (path: string, id: string) => {
      const { result } = OPERATIONS.find((each) => each.id === id) ?? {};
      const { body } = await send({ path, authorization });
      return z.object({ result: result ?? z.never() }).parse(body).result;
    };
    expect(await resultAt(PATH, "getPipeScaling")).toEqual(size);
    expect(await resultAt(`${PATH}/progress`, "getPipeScalingProgress")).toMatchObject({ effective: size });
  });
});

describe("the size of a service whose first rollout has not completed", () => {
  it("gets 503 with a sentence that names the progress, which has 200, and is not logged as a failure", async () => {
    const authorization = addKey();
    cluster.add("pipescalings", PIPES, { metadata: { name: SERVICE } });
    const send = await start();
    const response = await send({ path: PATH, authorization });
    expectUnavailable(response);
    expect(response.body).toMatchObject({
      error: expect.stringMatching(
        /no common size yet: their first rollout has not completed, or .* at this path followed by \/progress\.$/,
      ),
    });
    expect((await send({ path: `${PATH}/progress`, authorization })).status).toBe(200);
    const requestId = response.headers["x-request-id"];
    expect(lines.filter((line) => line["requestId"] === requestId)).toMatchObject([
      { level: "info", status: 503 },
    ]);
    expect(await metrics.getSingleMetricAsString("pipe_scaling_size_not_reached_total")).toMatch(/ 1$/);
  });

  it("gets the way out if its pipes ran before, and wait for a request for a size", async () => {
    const authorization = addKey();
    const conditions = ["Ready", "Stalled"].map((type) => {
      return { type, status: type === "Ready" ? "False" : "True", reason: "NotResizedInPlace" };
    });
    cluster.add("pipescalings", PIPES, { metadata: { name: SERVICE }, ...{ status: { conditions } } });
    const send = await start();
    expect(await send({ path: PATH, authorization })).toMatchObject({
      status: 503,
      body: { error: expect.stringContaining("until a size is requested with PATCH") },
    });
    expect(await send({ path: `${PATH}/progress`, authorization })).toMatchObject({
      status: 200,
      body: { result: { state: "failed", message: expect.stringContaining("before a size is requested") } },
    });
  });

  it("is logged as a failure, and counts as one, if the PipeScalings cannot be read", async () => {
    const authorization = addKey();
    cluster.unreadable = "pipescalings";
    const send = await start();
    const response = await send({ path: PATH, authorization });
    const requestId = response.headers["x-request-id"];
    expect(lines.filter((line) => line["requestId"] === requestId)).toMatchObject([
      { level: "warn", status: 503 },
    ]);
    expect(await metrics.getSingleMetricAsString("pipe_scaling_size_not_reached_total")).toMatch(/ 0$/);
  });
});

describe("a service whose PipeScaling is deleted and not created again yet", () => {
  const reads = OPERATIONS.filter(
    ({ method, path }) => method === "GET" && path.includes("/pipesCdcScaling"),
  );

  it("gets 503, not the 400 of a service that never had a pipe, from reads and from writes", async () => {
    const authorization = addKey();
    const scaling = addScaling();
    const send = await start();
    cluster.behavior = () => {
      throw refusal(404);
    };
    // The watch has not shown the deletion.
    expectUnavailable(await patch(send, authorization));
    cluster.send("pipescalings", "DELETED", scaling);
    await clock.advance(0);
    expect(reads.length).toBeGreaterThan(3);
    for (const read of reads) expectUnavailable(await send({ path: pathOf(read), authorization }));
    const response = await patch(send, authorization);
    expectUnavailable(response);
    expect(response.body).toMatchObject({ error: expect.stringContaining("is being set up again") });
    const services = await send({
      path: `/v1/organizations/${ORGANIZATION}/services/${SERVICE}/prometheus`,
      authorization,
    });
    expect(services.status).toBe(200);
  });

  it("gets 200 from a write as soon as it is created again, although the watch has not shown it", async () => {
    const authorization = addKey();
    const scaling = addScaling();
    const send = await start();
    cluster.send("pipescalings", "DELETED", scaling);
    await clock.advance(0);
    const metadata = { ...scaling.metadata, uid: "another", resourceVersion: "9" };
    cluster.behavior = ({ body }) => ({ metadata, spec: Object(body).spec });
    expect(await patch(send, authorization)).toMatchObject({ status: 200 });
  });

  it("gets 400 after an hour, because it may have no pipe any more", async () => {
    const authorization = addKey();
    const scaling = addScaling();
    const send = await start();
    cluster.send("pipescalings", "DELETED", scaling);
    await clock.advance(0);
    cluster.replace("pipescalings", { metadata: { ...scaling.metadata, namespace: "elsewhere" } });
    await clock.advance(60 * MINUTE_MS - 1);
    const { body } = await send({ path: PATH, authorization });
    expect(body).toMatchObject({ error: expect.stringContaining("is being set up again") });
    await clock.advance(1);
    expect(await send({ path: PATH, authorization })).toMatchObject({ status: 400 });
  });
});

describe("the API when the cluster becomes unreachable", () => {
  it("rejects writes immediately, and rejects reads when its caches are older than 5 minutes", async () => {
    const authorization = addKey();
    addScaling();
    const send = await start();
    cluster.reachable = false;

    expectUnavailable(await patch(send, authorization));
    await clock.advance(5 * MINUTE_MS);
    expect((await send({ path: PATH, authorization })).status).toBe(200);
    await clock.advance(1);
    expectUnavailable(await send({ path: PATH, authorization }));
    expectUnavailable(await send({ path: "/v1/organizations", authorization }));
    cluster.reachable = true;
    await clock.advance(MINUTE_MS);
    expect((await send({ path: PATH, authorization })).status).toBe(200);
  });
});

const WRITES = OPERATIONS.filter(({ method }) => method !== "GET");
const READS = OPERATIONS.filter(({ method }) => method === "GET");

function pathOf({ path }: (typeof OPERATIONS)[number]): string {
  const ids: Readonly<Record<string, string>> = {
    organizationId: ORGANIZATION,
    serviceId: SERVICE,
    userId: "ada",
  };
  return path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? "");
}

const EMPTY_LIST = { items: [] };

/** The permission for a read, as in PERMISSIONS: `get pipes.clouddb.dev/pipescalings`, `list pods`. */
function permissionFor({ path }: KubeRequest): string {
  const [, group = "", resource, name] =
    /^\/(?:api|apis\/([^/]+))\/[^/]+\/namespaces\/[^/]+\/([^/]+)(?:\/(.+))?$/.exec(path) ?? [];
  return `${name === undefined ? "list" : "get"} ${group === "" ? "" : `${group}/`}${resource}`;
}

const GRANTED = PERMISSIONS.api.flatMap(({ group, resource, verbs }) =>
  verbs.map((verb) => `${verb} ${group === "" ? "" : `${group}/`}${resource}`),
);

describe("an operation that reads from the cluster for each request", () => {
  it.each(READS)("gets 503 at once if the cluster does not respond: $id", async (operation) => {
    const authorization = addKey();
    const { metadata } = addScaling();
    cluster.behavior = () => ({ metadata, ...EMPTY_LIST });
    const send = await start();
    const request = { path: pathOf(operation), authorization };
    const { status } = await send(request);
    const calls = [...cluster.calls];
    for (const error of [new KubeUnreachableError("no response"), refusal(403)]) {
      cluster.behavior = () => {
        throw error;
      };
      const response = await send(request);
      // All other operations are served from the caches.
      if (calls.length > 0) expectUnavailable(response);
      else expect(response.status).toBe(status);
    }
    expect(cluster.calls).toHaveLength(3 * calls.length);
  });

  it.each(READS)("has the permissions for its reads, and says that it reads: $id", async (operation) => {
    const { id, description } = operation;
    const authorization = addKey();
    const { metadata } = addScaling();
    cluster.behavior = () => ({ metadata, ...EMPTY_LIST });
    const send = await start();
    await send({ path: pathOf(operation), authorization });
    const missing = cluster.calls.map(permissionFor).filter((permission) => !GRANTED.includes(permission));
    const problems = missing.map(
      (permission) =>
        `${id} needs the permission "${permission}": grant it in deploy/chart/pipe-scaling-operator/templates/_rules.tpl, list it in src/cli/doctor/permissions.ts, then run npm run generate.`,
    );
    if (cluster.calls.length > 0 && !description.includes("read from the cluster for each call"))
      problems.push(
        `The description of ${id} must contain "read from the cluster for each call", as docs/reference/contract.md says: change it, then run npm run generate.`,
      );
    expect(problems.join("\n")).toBe("");
  });
});

describe("a query string", () => {
  it.each(WRITES)("makes $id fail with 400 and change nothing", async (operation) => {
    const authorization = addKey();
    addScaling();
    cluster.add("configmaps", RECORDS, membersRecord(ORGANIZATION, { ada: "admin", bob: "admin" }));
    const url = await startUrl();
    for (const target of [pathOf(operation), `${url}${pathOf(operation)}`]) {
      const response = await clientOf(url)({
        method: operation.method,
        path: `${target}?dryRun=true`,
        authorization,
        // The query comes before a body that is invalid, too.
        headers: { "Content-Type": "application/json" },
        body: "{}",
      });
      expect(response).toMatchObject({
        status: 400,
        body: {
          error: expect.stringMatching(/^The request must not have a query string, .* from the "\?" on\.$/),
        },
      });
    }
    expect(cluster.calls).toEqual([]);
  });

  it.each(WRITES)("that is empty does not count in $id", async (operation) => {
    const authorization = addKey();
    const send = await start();
    const { method } = operation;
    const response = await send({ method, path: `${pathOf(operation)}?`, authorization });
    expect(response.text).not.toContain("query string");
  });

  it.each(READS)("has no effect on $id", async (operation) => {
    const authorization = addKey();
    const { metadata } = addScaling();
    cluster.behavior = () => ({ metadata, ...EMPTY_LIST });
    const send = await start();
    const path = pathOf(operation);
    const { status } = await send({ path, authorization });
    expect((await send({ path: `${path}?page=%zz`, authorization })).status).toBe(status);
    // This service has no boost.
    expect(status).toBe(operation.id === "getPipeScalingBoost" ? 404 : 200);
  });
});

describe("the history of sizes", () => {
  it("leaves out an entry whose result only a later version of the controller knows", async () => {
    const authorization = addKey();
    const { metadata } = addScaling();
    const send = await start();
    const entry = { ...SIZE, source: "Spec", result: "Scaled", startedAt: "2026-01-31T12:00:00Z" };
    const history = ["Paused", "constructor", "Scaled"].map((result) => ({ ...entry, result }));
    cluster.behavior = () => ({ metadata, status: { history } });
    const { body } = await send({ path: `${PATH}/history`, authorization });
    expect(body).toMatchObject({ result: [{ result: "scaled" }] });
  });

  it("is read from the cluster for each request, and gets 503 at once while the cluster is unreachable", async () => {
    const authorization = addKey();
    const { metadata } = addScaling();
    const send = await start();
    const entry = { ...SIZE, source: "Spec", result: "Scaled", startedAt: "2026-01-31T12:00:00Z" };
    cluster.behavior = () => ({ metadata, status: { history: [entry] } });
    const request = { path: `${PATH}/history`, authorization };
    expect(await send(request)).toMatchObject({ status: 200, body: { result: [{ result: "scaled" }] } });
    expect(cluster.calls).toHaveLength(1);
    cluster.behavior = () => {
      throw new KubeUnreachableError("no response");
    };
    expectUnavailable(await send(request));
    cluster.behavior = () => {
      throw refusal(403);
    };
    expectUnavailable(await send(request));
    expect(cluster.calls).toHaveLength(3);
  });
});

describe("after an outage of 10 minutes, while the API keys are relisted", () => {
  /** Statuses before the outage, during it, with half of the list received, and with the complete list. */
  async function statuses(before: Partial<KeyFields>, after: Partial<KeyFields>): Promise<number[]> {
    cluster.canStreamLists = true;
    // The event for this key arrives before the list is held back.
    addKey();
    const { authorization, replace } = addReplaceableKey(before);
    const send = await start();
    const status = async () => (await send({ path: "/v1/organizations", authorization })).status;
    const seen = [await status()];
    cluster.reachable = false;
    replace(after);
    await clock.advance(10 * MINUTE_MS);
    seen.push(await status());
    const { release } = cluster.holdList("secrets", 1);
    cluster.reachable = true;
    await clock.advance(MINUTE_MS);
    seen.push(await status());
    release();
    await clock.advance(0);
    return [...seen, await status()];
  }

  it("a key that was disabled during the outage gets 503 until the list is complete, then 401", async () => {
    expect(await statuses({ state: "enabled" }, { state: "disabled" })).toEqual([200, 503, 503, 401]);
  });

  it("a key that was enabled during the outage gets 503 until the list is complete, then 200", async () => {
    expect(await statuses({ state: "disabled" }, { state: "enabled" })).toEqual([401, 503, 503, 200]);
  });
});

describe("a key that has already been verified", () => {
  it("is rejected when it expires", async () => {
    const authorization = addKey({ expireAt: new Date(clock.now() + MINUTE_MS) });
    const send = await start();
    expect((await send({ path: "/v1/organizations", authorization })).status).toBe(200);
    await clock.advance(MINUTE_MS - 1);
    expect((await send({ path: "/v1/organizations", authorization })).status).toBe(200);
    await clock.advance(1);
    expect((await send({ path: "/v1/organizations", authorization })).status).toBe(401);
  });
});

describe("a write", () => {
  it("is a single request with the UID of the cached object", async () => {
    const authorization = addKey();
    const { metadata } = addScaling();
    cluster.behavior = applied;
    const send = await start();

    expect(await patch(send, authorization)).toMatchObject({
      status: 200,
      body: { result: { replicaCpuMillicores: 4000, replicaMemoryGb: 16 } },
    });

    expect(cluster.calls).toMatchObject([
      {
        method: "PATCH",
        path: `/apis/pipes.clouddb.dev/v1beta1/namespaces/${PIPES}/pipescalings/${SERVICE}`,
        patchType: "application/apply-patch+yaml",
        query: { fieldManager: "pipe-scaling-api", force: true },
        body: { metadata: { name: SERVICE, uid: metadata.uid }, spec: { replicaCpuMillicores: 4000 } },
      },
    ]);
  });

  it("is a single request with the UID of the cached object if it starts or ends a boost, too", async () => {
    const authorization = addKey();
    const metadata = { ...addScaling().metadata, resourceVersion: "2", generation: 2 };
    const { uid } = metadata;
    cluster.behavior = ({ body }) => ({ ...Object(body), metadata });
    const send = await start();
    const path = `${PATH}/boost`;
    const headers = { "Content-Type": "application/json" };
    const body = '{"replicaCpuMillicores":4000,"until":"2026-01-02T00:00:00Z"}';
    await send({ method: "PUT", path, authorization, headers, body });
    await send({ method: "DELETE", path, authorization });
    expect(cluster.calls).toMatchObject([
      { method: "PATCH", body: { metadata: { uid }, spec: { boost: { replicaCpuMillicores: 4000 } } } },
      { method: "PATCH", body: { metadata: { uid }, spec: { boost: null } } },
    ]);
  });

  it.each([
    ["conflicts with another write", refusal(409)],
    ["finds the object deleted", refusal(404)],
    ["finds a different object", refusal(422, { details: { causes: [{ field: "metadata.uid" }] } })],
  ])("is retried with the current object if it %s", async (_what, conflict) => {
    const authorization = addKey();
    addScaling();
    const now = { metadata: { name: SERVICE, namespace: PIPES, uid: "another", resourceVersion: "7" } };
    let refused = false;
    cluster.behavior = (request) => {
      if (request.method !== "PATCH") return now;
      if (refused) return applied(request);
      refused = true;
      throw conflict;
    };
    const send = await start();
    expect((await patch(send, authorization)).status).toBe(200);
    expect(cluster.calls.at(-1)).toMatchObject({ body: { metadata: { uid: "another" } } });
  });

  it("is validated again with the current object after a conflict", async () => {
    const authorization = addKey();
    addScaling();
    cluster.behavior = (request) => {
      if (request.method === "PATCH") throw refusal(409);
      return {
        metadata: { name: SERVICE, namespace: PIPES, uid: "b", resourceVersion: "7" },
        spec: { suspend: true },
      };
    };
    const send = await start();
    expect((await patch(send, authorization)).status).toBe(409);
    cluster.behavior = (request) => {
      throw refusal(request.method === "PATCH" ? 409 : 404);
    };
    expect((await patch(send, authorization)).status).toBe(503);
  });

  it("fails with 503 if every attempt conflicts", async () => {
    const authorization = addKey();
    const object = addScaling();
    cluster.behavior = (request) => {
      if (request.method === "PATCH") throw refusal(409);
      return object;
    };
    const send = await start();
    expectUnavailable(await patch(send, authorization));
    expect(cluster.calls.length).toBeLessThan(30);
  });

  it.each([
    ["is unreachable", new KubeUnreachableError("PATCH: no response from https://10.0.0.1"), "5"],
    ["is overloaded", refusal(429, { details: { retryAfterSeconds: 7 } }), "7"],
    ["is overloaded for a day", refusal(429, { details: { retryAfterSeconds: 86_400 } }), "60"],
    ["returns an error", refusal(500), "5"],
    ["no longer accepts our credentials", refusal(401), "5"],
    ["revokes our permission", refusal(403, { reason: "Forbidden" }), "5"],
  ])("gets 503 without details if the cluster %s", async (_what, error, retryAfter) => {
    const authorization = addKey();
    addScaling();
    cluster.behavior = () => {
      throw error;
    };
    const send = await start();
    const response = await patch(send, authorization);
    expectUnavailable(response);
    expect(response.headers["retry-after"]).toBe(retryAfter);
    expect(response.text).not.toContain(error.message);
    const requestId = response.headers["x-request-id"];
    expect(lines).toContainEqual(
      expect.objectContaining({ requestId, level: "warn", status: 503, because: error.message }),
    );
  });

  it("gets an error that every JSON parser accepts if its body is an emoji", async () => {
    const authorization = addKey();
    addScaling();
    const send = await start();
    const headers = { "Content-Type": "application/json" };
    const response = await send({ method: "PATCH", path: PATH, authorization, headers, body: "😀" });
    expect(response).toMatchObject({ status: 400, body: { error: expect.stringContaining("not JSON") } });
    // JSON.parse accepts a lone surrogate; other parsers do not.
    expect(response.text).not.toMatch(/\\ud[89a-f]/i);
  });

  it("gets 400 if an admission policy in the cluster rejects the size", async () => {
    const authorization = addKey();
    addScaling();
    cluster.behavior = () => {
      throw refusal(422, { reason: "Invalid" });
    };
    const send = await start();
    expect((await patch(send, authorization)).status).toBe(400);
  });

  it("gets 500 without details after an unexpected error, which is logged with the request ID", async () => {
    const authorization = addKey();
    addScaling();
    cluster.behavior = () => {
      throw new TypeError("cannot read properties of undefined");
    };
    const send = await start();
    const response = await patch(send, authorization);
    expect(response).toMatchObject({ status: 500, body: { status: 500 } });
    expect(response.text).not.toContain("undefined");
    const requestId = response.headers["x-request-id"];
    const logged = lines.filter((line) => line["requestId"] === requestId);
    expect(logged).toMatchObject([
      { level: "error", status: 500, err: { message: "cannot read properties of undefined" } },
    ]);
  });
});

describe("concurrent writes", () => {
  const sizeOf = (cores: number) => ({ replicaCpuMillicores: cores * 1000, replicaMemoryGb: cores * 4 });
  const patchTo = (send: Client, authorization: string, cores: number, path = PATH) =>
    send({
      method: "PATCH",
      path,
      authorization,
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(sizeOf(cores)),
    });

  it("to one service reach the cluster one at a time, and each returns its own size", async () => {
    const authorization = addKey();
    addScaling();
    const written: unknown[] = [];
    let inFlight = 0;
    let maxInFlight = 0;
    cluster.behavior = async (request) => {
      inFlight += 1;
      maxInFlight = Math.max(maxInFlight, inFlight);
      // Gives the other requests time to arrive.
      for (let turn = 0; turn < 20; turn += 1) await settled();
      inFlight -= 1;
      written.push(Object(request.body).spec);
      return applied(request);
    };
    const send = await start();
    const cores = Array.from({ length: 200 }, (_, at) => 1 + (at % 24));
    const responses = await Promise.all(cores.map((each) => patchTo(send, authorization, each)));

    const expected = cores.map((each) => ({ status: 200, result: sizeOf(each) }));
    expect(responses.map(({ body }) => body)).toMatchObject(expected);
    expect(maxInFlight).toBe(1);
    const accepted = lines.filter(({ msg }) => msg === "size accepted");
    expect(accepted).toHaveLength(200);
    expect(describeSpec(written.at(-1))).toBe(accepted.at(-1)?.["to"]);
  });

  it("do not delay writes to another service", async () => {
    const other = "44444444-4444-4444-8444-444444444444";
    const record = serviceRecord({ id: other, organizationId: ORGANIZATION, namespace: PIPES });
    cluster.add("configmaps", RECORDS, record);
    const authorization = addKey();
    addScaling();
    addScaling(other);
    const held = Promise.withResolvers<void>();
    cluster.behavior = async (request) => {
      if (request.path.endsWith(SERVICE)) await held.promise;
      return applied(request);
    };
    const send = await start();
    const waiting = Array.from({ length: 100 }, () => patch(send, authorization));
    await expect.poll(() => cluster.calls).toHaveLength(1);
    expect((await patchTo(send, authorization, 3, PATH.replace(SERVICE, other))).status).toBe(200);
    held.resolve();
    const statuses = (await Promise.all(waiting)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200]));
  });
});

describe("a write whose outcome is unknown", () => {
  const headers = { "Content-Type": "application/json" };
  const cases: [string, ApiRequest, object][] = [
    [
      "a rescale",
      { method: "PATCH", path: PATH, headers, body: '{"replicaCpuMillicores":4000}' },
      { audit: "scaling", service: SERVICE, to: describeSize({ cpuMillicores: 4000, memoryGib: 16 }) },
    ],
    [
      "a member removal",
      { method: "DELETE", path: `/v1/organizations/${ORGANIZATION}/members/cy%40example.com` },
      { audit: "members", user: "cy@example.com" },
    ],
    [
      "a backup configuration change",
      {
        method: "PATCH",
        path: PATH.replace("pipesCdcScaling", "backupConfiguration"),
        headers,
        body: '{"backupPeriodInHours":12,"backupStartTime":null}',
      },
      { audit: "backup", service: SERVICE, change: { periodInHours: 12, startTime: null } },
    ],
  ];

  it.each(cases)(
    "gets 503 that its outcome is not known, and an audit log line with its request ID and the change: %s",
    async (_what, request, requested) => {
      const authorization = addKey();
      addScaling();
      const members = membersRecord(ORGANIZATION, { "cy@example.com": "developer" });
      cluster.add("configmaps", RECORDS, members);
      cluster.behavior = () => {
        throw new KubeUnreachableError("PATCH: no response");
      };
      const send = await start();
      const response = await send({ ...request, authorization });
      expectUnavailable(response);
      expect(response.body).toHaveProperty("error", expect.stringMatching(/not known whether .* was made/));
      expect(lines.filter((line) => line["audit"] !== undefined)).toMatchObject([
        {
          level: "warn",
          requestId: response.headers["x-request-id"],
          apiKey: expect.stringMatching(/^[0-9a-f-]{36}$/),
          organization: ORGANIZATION,
          msg: expect.stringContaining("not confirmed"),
          ...requested,
        },
      ]);
    },
  );

  it.each(cases)("is not one that the cluster refused: %s", async (_what, request) => {
    const authorization = addKey();
    addScaling();
    cluster.add("configmaps", RECORDS, membersRecord(ORGANIZATION, { "cy@example.com": "developer" }));
    cluster.behavior = () => {
      throw new KubeApiError("PATCH", 429, "{}");
    };
    const send = await start();
    const response = await send({ ...request, authorization });
    expectUnavailable(response);
    expect(response.body).not.toHaveProperty("error", expect.stringContaining("not known"));
    expect(lines.filter((line) => line["audit"] !== undefined)).toEqual([]);
  });
});

describe("the removal of a member", () => {
  const path = `/v1/organizations/${ORGANIZATION}/members/ada`;
  const member = { name: "Ada", email: "ada@example.com", role: "developer", joinedAt: new Date(0) };

  beforeEach(() => {
    cluster.add("configmaps", RECORDS, membersConfigMap(ORGANIZATION, [{ userId: "ada", ...member }]));
    cluster.behavior = () => ({ metadata: { name: "members", uid: "u", resourceVersion: "2" } });
  });

  it("ignores a body", async () => {
    const authorization = addKey();
    const send = await start();
    expect((await send({ method: "DELETE", path, authorization, body: "{}" })).status).toBe(200);
    expect(cluster.calls).toMatchObject([{ method: "PATCH", body: { data: { ada: null } } }]);
  });

  it("changes nothing if its body is malformed, because the response is 400", async () => {
    const authorization = addKey();
    const url = await startUrl();
    const head = `DELETE ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n`;
    const raw = await exchangeRaw(url, `${head}Transfer-Encoding: chunked\r\n\r\ngarbage\r\n`);
    expect(raw).toMatch(/^HTTP\/1\.1 400 /);
    expect(cluster.calls).toEqual([]);
  });
});

it("records a span for a rescale even if its client disconnects before the response, because the size has been written", async () => {
  const authorization = addKey();
  addScaling();
  const url = await startUrl();
  const { socket } = await open(Number(new URL(url).port));
  const { promise: logged, resolve: release } = Promise.withResolvers<void>();
  cluster.behavior = async (request) => {
    socket.destroy();
    await logged;
    return applied(request);
  };
  const body = '{"replicaCpuMillicores":4000}';
  const head = `PATCH ${PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\n`;
  socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
  await expect.poll(() => lines).toContainEqual(expect.objectContaining({ msg: "request", status: 499 }));
  release();
  await expect.poll(() => lines).toContainEqual(expect.objectContaining({ msg: "size accepted" }));
  expect(spans).toMatchObject([{ failure: "499" }]);
});

it("records a span for a boost, and none for its end", async () => {
  const authorization = addKey();
  addScaling();
  const send = await start();
  const metadata = { name: SERVICE, namespace: PIPES, uid: "u", resourceVersion: "2", generation: 2 };
  cluster.behavior = ({ body }) => ({ ...Object(body), metadata });
  const path = `${PATH}/boost`;
  const headers = { "Content-Type": "application/json" };
  const body = '{"replicaCpuMillicores":4000,"until":"2026-01-02T00:00:00Z"}';
  expect((await send({ method: "PUT", path, authorization, headers, body })).status).toBe(200);
  expect((await send({ method: "DELETE", path, authorization })).status).toBe(200);
  await expect
    .poll(() => spans)
    .toMatchObject([{ name: expect.stringMatching(/^PUT .*\/pipesCdcScaling\/boost$/), kind: "server" }]);
});

it("sends no 100 Continue to an HTTP/1.0 client, because HTTP/1.0 does not define it", async () => {
  const authorization = addKey();
  addScaling();
  cluster.behavior = applied;
  const url = await startUrl();
  const body = '{"replicaCpuMillicores":4000}';
  const head = `PATCH ${PATH} HTTP/1.0\r\nHost: a\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\n`;
  const raw = await exchangeRaw(
    url,
    `${head}Expect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  expect(raw).toMatch(/^HTTP\/1\.1 200 /);
});

describe("a conditional write", () => {
  const headers = { "Content-Type": "application/json" };
  const writes: [string, ApiRequest][] = [
    ["rescale", { method: "PATCH", path: PATH, headers, body: '{"replicaCpuMillicores":4000}' }],
    [
      "backup configuration change",
      {
        method: "PATCH",
        path: PATH.replace("pipesCdcScaling", "backupConfiguration"),
        headers,
        body: '{"backupPeriodInHours":12}',
      },
    ],
    ["member removal", { method: "DELETE", path: `/v1/organizations/${ORGANIZATION}/members/cy` }],
  ];
  const FALSE: [string, string | string[]][] = [
    ["If-Match", '"x"'],
    ["If-Match", '"x", "y"'],
    ["If-Match", ['"x"', "*"]],
    ["If-Match", 'W/"x"'],
    ["If-Match", ""],
    ["If-Match", "x"],
    ["If-None-Match", "*"],
  ];
  const TRUE: [string, string][] = [
    ["If-Match", "*"],
    ["If-None-Match", '"x"'],
    ["If-None-Match", 'W/"x", "y"'],
    ["If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"],
    ["If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT"],
  ];
  const each = <T>(conditions: readonly [string, T][]) =>
    writes.flatMap(([what, request]) =>
      conditions.map(([name, value]) => [what, name, value, request] as const),
    );

  beforeEach(() => {
    addScaling();
    cluster.add("configmaps", RECORDS, membersRecord(ORGANIZATION, { ada: "admin", cy: "developer" }));
    const metadata = { name: `backup-${SERVICE}`, uid: "u", resourceVersion: "2" };
    cluster.behavior = ({ body }) => {
      const { spec, data = {} } = Object(body);
      const kept = Object.entries(data).filter(([, value]) => value !== null);
      return { metadata, spec, data: Object.fromEntries(kept) };
    };
  });

  it.each(each(FALSE))(
    "gets 412 and changes nothing: %s with %s: %s",
    async (_what, name, value, request) => {
      const authorization = addKey();
      const send = await start();
      const response = await send({
        ...request,
        authorization,
        headers: { ...request.headers, [name]: value },
      });
      expect(response).toMatchObject({
        status: 412,
        body: { status: 412, error: expect.stringContaining(name) },
      });
      expect(cluster.calls).toEqual([]);
    },
  );

  it.each(writes)(
    "gets 413 without its condition, and changes nothing, if its body is too long: %s",
    async (_what, request) => {
      const authorization = addKey();
      const send = await start();
      const response = await send({ ...request, authorization, body: "x".repeat(65_537) });
      expect(response).toMatchObject({ status: 413 });
      expect(cluster.calls).toEqual([]);
    },
  );

  it.each(each(TRUE))("is a write like any other: %s with %s: %s", async (_what, name, value, request) => {
    const authorization = addKey();
    const send = await start();
    const response = await send({
      ...request,
      authorization,
      headers: { ...request.headers, [name]: value },
    });
    expect(response).toMatchObject({ status: 200 });
    expect(cluster.calls).toHaveLength(1);
  });

  it("gets 412 only if the request without its condition reached the body", async () => {
    const admin = addKey();
    const developer = addKey({ roles: ["developer"] });
    const send = await start();
    const conditional = { ...headers, "If-Match": '"x"' };
    const change = { method: "PATCH", path: PATH, headers: conditional, authorization: admin, body: "{" };
    expect(await send({ ...change, authorization: undefined })).toMatchObject({ status: 401 });
    expect(await send({ ...change, authorization: developer })).toMatchObject({ status: 403 });
    expect(await send({ ...change, method: "PUT" })).toMatchObject({ status: 405 });
    const absent = PATH.replace(SERVICE, ORGANIZATION);
    expect(await send({ ...change, path: absent })).toMatchObject({ status: 404 });
    expect(await send(change)).toMatchObject({ status: 412 });
  });
});

describe("a conditional read", () => {
  it.each([
    ["If-Match", '"x"'],
    ["If-None-Match", "*"],
    ["If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT"],
    ["If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"],
  ])("gets 200, never 304: %s: %s", async (name, value) => {
    const authorization = addKey();
    addScaling();
    const send = await start();
    const response = await send({ path: PATH, authorization, headers: { [name]: value } });
    expect(response).toMatchObject({ status: 200 });
  });
});

describe("a tier that the API does not define", () => {
  it("fails only scaling operations", async () => {
    const other = "33333333-3333-4333-8333-333333333333";
    const service = "44444444-4444-4444-8444-444444444444";
    cluster.add("configmaps", RECORDS, organizationRecord({ id: other, tier: "gold" }));
    cluster.add(
      "configmaps",
      RECORDS,
      serviceRecord({ id: service, organizationId: other, namespace: PIPES }),
    );
    cluster.add("pipescalings", PIPES, { metadata: { name: service } });
    const authorization = addKey({ organizationId: other });
    const send = await start();
    const path = PATH.replace(ORGANIZATION, other).replace(SERVICE, service);
    const headers = { "Content-Type": "application/json" };
    const response = await send({
      method: "PATCH",
      path,
      authorization,
      headers,
      body: '{"replicaMemoryGb":4}',
    });
    // During an upgrade, the next process may know it.
    expectUnavailable(response);
    expect(response.body).toMatchObject({ error: expect.stringContaining("ask the operator") });
    expect(JSON.stringify(response.body)).not.toContain("gold");
    expectUnavailable(await send({ path: `${path}/limits`, authorization }));
    expect(lines).toContainEqual(
      expect.objectContaining({ status: 503, because: expect.stringContaining("gold") }),
    );
    expect((await send({ path: "/v1/organizations", authorization })).status).toBe(200);
  });
});

describe("the services in a pipe namespace", () => {
  it("are served if the namespace is configured", async () => {
    const authorization = addKey();
    addScaling();
    const send = await start([PIPES]);
    expect((await send({ path: PATH, authorization })).status).toBe(200);
  });

  it("fail with 500 and a log line if the namespace is not configured", async () => {
    const authorization = addKey();
    const send = await start(["elsewhere"]);
    expect((await send({ path: PATH, authorization })).status).toBe(500);
    expect(lines).toContainEqual(
      expect.objectContaining({
        msg: "malformed record",
        problem: expect.stringContaining("namespace: pipes"),
      }),
    );
  });
});

describe("the API during shutdown", () => {
  it("responds and closes the connection, so that the client reconnects elsewhere", async () => {
    const authorization = addKey();
    const send = await start();
    const listing = { path: "/v1/organizations", authorization, headers: { Connection: "keep-alive" } };
    expect(await send(listing)).toMatchObject({ status: 200, headers: { connection: "keep-alive" } });
    ending.abort();
    expect(await send(listing)).toMatchObject({ status: 200, headers: { connection: "close" } });
  });
});

describe("the documentation page", () => {
  it("can be disabled, while the document that it shows is still served", async () => {
    const send = await start([], new Map(), true);
    for (const path of ["/docs", "/docs/start.js", "/docs/swagger-ui-bundle.js"])
      expect(await send({ path })).toMatchObject({ status: 404, body: { status: 404 } });
    for (const path of ["/openapi.json", "/v1"])
      expect(await send({ path })).toMatchObject({ status: 200, body: { openapi: "3.1.0" } });
  });
});
