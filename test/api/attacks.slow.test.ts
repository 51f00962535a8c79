import { execFile } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { argsWithoutContainer, NODE } from "../../deploy/image/node.ts";
import { REQUEST_ANNOTATION } from "../../src/crd/scaling-request.ts";
import { describeSize, sizeOfCores } from "../../src/domain/size.ts";
import { serviceIdOf } from "../../src/records/service.ts";
import { serviceRecord } from "../support/fixtures/records.ts";
import { type ApiResponse, connectTo, openRaw, parseRaw } from "./client.ts";
import { clientOfText, type Tenant } from "./environment.ts";
import { setUpEnvironment, setUpTenant } from "./fixtures.ts";
import { type SpawnedApi, spawnApi } from "./spawned-api.ts";

const run = promisify(execFile);

const MIB = 2 ** 20;

const environment = setUpEnvironment("attacks");
const attacker = setUpTenant(environment);
const other = setUpTenant(environment);
/** A tenant whose metrics have 6 MB, because the names of its services have 50,000 characters. */
const large = setUpTenant(environment);

beforeAll(async () => {
  const { organizationId } = large;
  const add = async (_: unknown, at: number) => {
    const record = serviceRecord({
      organizationId,
      namespace: environment.pipes,
      name: `${at}`.padEnd(50_000, "x"),
    });
    await environment.addRecord(record);
    await environment.addScaling(serviceIdOf(record.metadata.name) ?? "", {}, 2);
  };
  await Promise.all(Array.from({ length: 17 }, add));
});

describe.each(["plain HTTP", "TLS"])("over %s,", (protocol) => {
  let api: SpawnedApi;

  /** Starts the API with the heap of its container. */
  function startApi(): Promise<SpawnedApi> {
    const pki = join(environment.cluster.dir, "pki");
    const tls = ["--tls-cert", join(pki, "admin.crt"), "--tls-key", join(pki, "admin.key")];
    return spawnApi(environment, {
      nodeArgs: argsWithoutContainer("api"),
      env: NODE.api.env,
      flags: ["--rate-limit", "0", "--failed-logins", "0", ...(protocol === "TLS" ? tls : [])],
    });
  }

  beforeAll(async () => {
    api = await startApi();
  });

  afterAll(() => api?.stop());

  /** Addresses of the attacker, none of which may use all connections. A client with a key uses the first. */
  const SOURCES = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"];

  /** Aborted when the test ends. */
  function endOfTest(): AbortSignal {
    const controller = new AbortController();
    onTestFinished(() => controller.abort());
    return controller.signal;
  }

  /** In bytes. The metric is up to half a second old, because scrapes share a text. */
  async function rss(): Promise<number> {
    const { stdout } = await run("ps", ["-o", "rss=", "-p", `${api.process.pid}`]);
    return Number(stdout) * 1024;
  }

  function get({ path, admin }: Tenant): Promise<ApiResponse> {
    return api.send({ path, authorization: admin.authorization });
  }

  /**
   * Repeats the request once if its connection is reset. Until its first request has arrived, a connection has no key, so
   * hundreds of later ones replace it (docs/adr/0024-connections.md), and on a busy machine that many can come during its
   * handshake. That hides nothing: only connections with a key are promised to stay, and
   * test/unit/http/connections.test.ts shows which ones are closed.
   */
  async function getDespiteReset(tenant: Tenant): Promise<ApiResponse> {
    return get(tenant).catch((error: unknown) => {
      if (error instanceof Error && "code" in error && error.code === "ECONNRESET") return get(tenant);
      throw error;
    });
  }

  function patch({ path, admin }: Tenant, cores: number): Promise<ApiResponse> {
    const { authorization } = admin;
    const headers = { "Content-Type": "application/json" };
    const body = JSON.stringify({ replicaCpuMillicores: cores * 1000 });
    return api.send({ method: "PATCH", path, authorization, headers, body });
  }

  /** Resolves when the server has begun its response. */
  async function requestWithoutReading(
    localAddress: string,
    request: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { socket, opened } = connectTo(api.url, { localAddress, signal });
    socket.on("error", () => undefined);
    await opened;
    socket.write(request);
    // The socket reads a few KiB until there is a listener for "data".
    await once(socket, "readable");
  }

  /** Resolves when the socket is connected, or destroyed because the test ended or the server closed it. */
  async function openFrom(localAddress: string, signal: AbortSignal): Promise<Socket> {
    const { socket, opened } = connectTo(api.url, { localAddress, signal });
    socket.on("error", () => undefined);
    await Promise.race([opened, new Promise((resolve) => socket.once("close", resolve))]);
    return socket;
  }

  /** Returns the value of a metric, summed over its labels. */
  async function metric(name: string): Promise<number> {
    const { text } = await clientOfText(api.opsUrl)("/metrics");
    const lines = text
      .split("\n")
      .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
    return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
  }

  describe("a body in 64,000 chunks of one byte", () => {
    const CHUNKS = "1\r\n \r\n".repeat(64_000);

    async function attack(body: string): Promise<ApiResponse> {
      const connection = await openRaw(api.url);
      const { path, admin } = attacker;
      connection.write(
        `PATCH ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${admin.authorization}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${body}`,
      );
      await connection.received('"status":413}');
      return parseRaw(connection.text());
    }

    it.each([
      ["never ends", CHUNKS],
      ["ends", `${CHUNKS}0\r\n\r\n`],
    ])(
      "gets 413 and uses little memory if 10 are sent concurrently and each %s, while another tenant is served",
      async (_what, body) => {
        const before = await rss();
        const attacks = Promise.all(Array.from({ length: 10 }, () => attack(body)));
        let highest = before;
        for (let times = 0; times < 10; times += 1) {
          expect((await get(other)).status).toBe(200);
          highest = Math.max(highest, await rss());
        }
        for (const response of await attacks) {
          expect(response).toMatchObject({ status: 413, headers: { connection: "close" } });
        }
        highest = Math.max(highest, await rss());
        expect(highest - before).toBeLessThan(64 * MIB);
        expect((await get(other)).status).toBe(200);
      },
    );
  });

  describe("100 connections that request a page with a body in 64,000 chunks, and never read it", () => {
    it("cost less than 64 MiB of memory together, while another tenant is served", async () => {
      const before = await rss();
      const signal = endOfTest();
      let highest = before;
      const head = "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
      for (let count = 0; count < 100; count += 10) {
        const sending = Array.from({ length: 10 }, async (_, at) => {
          const socket = await openFrom(SOURCES[at % 4] ?? "", signal);
          socket.write(head + "1\r\n \r\n".repeat(64_000));
        });
        await Promise.all(sending);
        expect((await get(other)).status).toBe(200);
        highest = Math.max(highest, await rss());
      }
      expect(highest - before).toBeLessThan(64 * MIB);
    });
  });

  describe("connections without credentials", () => {
    it("are closed after their 401, so that as many as the limit of connections do not use it up", async () => {
      const signal = endOfTest();
      const closedConnections = Array.from({ length: 500 }, async (_, at) => {
        const socket = await openFrom(SOURCES[at % SOURCES.length] ?? "", signal);
        const chunks: Buffer[] = [];
        socket.on("data", (chunk: Buffer) => chunks.push(chunk));
        const closed = once(socket, "close");
        socket.write(`GET ${attacker.path} HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n`);
        await closed;
        return parseRaw(Buffer.concat(chunks).toString());
      });
      const statuses = (await Promise.all(closedConnections)).map(({ status, headers }) => [
        status,
        headers["connection"],
      ]);
      expect(new Set(statuses.map(String))).toEqual(new Set(["401,close"]));
    });

    it("are dropped to make room for a client with a key, counted and logged", async () => {
      const dropped = await metric("pipe_scaling_connections_dropped_total");
      const signal = endOfTest();
      let opened = 0;
      let closed = 0;
      /** Every second connection sends half a request. Each connection is replaced when the server closes it. */
      const occupy = async (source: string): Promise<void> => {
        opened += 1;
        const isRequesting = opened % 2 === 0;
        const socket = await openFrom(source, signal).catch(() => undefined);
        if (!socket) {
          // On a busy machine, the server closes some before their handshake has ended.
          closed += 1;
          return;
        }
        if (isRequesting) socket.write(`GET ${attacker.path} HTTP/1.1\r\nHo`);
        socket.once("close", () => {
          closed += 1;
          if (opened < 3000 && !signal.aborted) void occupy(source);
        });
      };
      // More than the limit of all sources, but not of one: there, a client would compete with its own address.
      const occupying = SOURCES.flatMap((source) => Array.from({ length: 125 }, () => occupy(source)));
      await Promise.all(occupying);
      for (let times = 0; times < 50; times += 1) expect((await getDespiteReset(other)).status).toBe(200);
      // Above the limit per source address, each new connection closes an older one.
      await Promise.all(Array.from({ length: 100 }, () => occupy("127.0.0.2")));
      for (let times = 0; times < 50; times += 1) expect((await getDespiteReset(other)).status).toBe(200);

      await expect.poll(() => closed).toBeGreaterThan(100);
      const drops = async () => (await metric("pipe_scaling_connections_dropped_total")) - dropped;
      await expect.poll(drops).toBeGreaterThan(100);
      await expect.poll(() => closed).toBeGreaterThanOrEqual(await drops());
      expect(api.log()).toContainEqual(
        expect.objectContaining({
          level: "warn",
          reason: "evicted",
          source: expect.stringMatching(/^127\.0\.0\./),
          dropped: expect.any(Number),
          msg: "connections dropped at their limit",
        }),
      );
    });
  });

  describe("idle connections with a key that take up the limit, and 100 new ones per second", () => {
    it("do not keep another tenant from connecting", async () => {
      const signal = endOfTest();
      const { path, admin } = attacker;
      const request = `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${admin.authorization}\r\n\r\n`;
      const sourceOf = (at: number) => SOURCES[1 + (at % 2)] ?? "";
      const held = Array.from({ length: 500 }, (_, at) =>
        requestWithoutReading(sourceOf(at), request, signal),
      );
      await Promise.all(held);
      let opened = 0;
      const opening = setInterval(() => {
        opened += 1;
        openFrom(sourceOf(opened), signal).catch(() => undefined);
      }, 10);
      signal.addEventListener("abort", () => clearInterval(opening));
      // Each request has a connection of its own.
      for (let times = 0; times < 50 || opened < 50; times += 1) expect((await get(other)).status).toBe(200);
    });
  });

  describe("100 concurrent PATCH requests for one service", () => {
    it("are all accepted and leave the last size in the cluster, while another tenant's PATCH succeeds", async () => {
      const cores = Array.from({ length: 100 }, (_, at) => 1 + ((at * 7) % 24));
      const responses = Promise.all(cores.map((each) => patch(attacker, each)));
      const meanwhile = await patch(other, 5);
      expect(meanwhile).toMatchObject({ status: 200, body: { result: { replicaCpuMillicores: 5000 } } });

      const expected = cores.map((each) => ({
        status: 200,
        body: { result: { replicaCpuMillicores: each * 1000, replicaMemoryGb: each * 4 } },
      }));
      expect(await responses).toMatchObject(expected);
      const isOurs = (line: Readonly<Record<string, unknown>>) =>
        line["msg"] === "size accepted" && line["service"] === attacker.serviceId;
      const accepted = await waitFor(
        () => {
          const lines = api.log().filter(isOurs);
          return lines.length === 100 && lines;
        },
        { what: "the audit log lines" },
      );
      // Writes are sequential, so the last line belongs to the last write.
      const { spec, metadata } = await environment.scaling(attacker.serviceId);
      const last = accepted.at(-1);
      expect(describeSize(sizeOfCores((spec?.replicaCpuMillicores ?? 0) / 1000))).toBe(last?.["to"]);
      expect(metadata.annotations?.[REQUEST_ANNOTATION]).toContain(last?.["requestId"]);
      expect(await get(other)).toMatchObject({ status: 200 });
    });
  });

  describe("500 connections that request the longest page uncompressed and never read it", () => {
    /** The connection itself takes 80 KB with TLS. The page has 1.7 MB. */
    const MAX_BYTES = 256 * 1024;
    const BUNDLE = "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: a\r\n\r\n";

    // The process has not grown in other attacks.
    beforeAll(async () => {
      await api.stop();
      api = await startApi();
    });

    it("cost less than 256 KiB of memory each, while another tenant is served", async () => {
      const before = await rss();
      const signal = endOfTest();
      const sources = Array.from({ length: 500 }, (_, at) => SOURCES[at % 4] ?? "");
      await Promise.all(sources.map((source) => requestWithoutReading(source, BUNDLE, signal)));
      for (let times = 0; times < 10; times += 1) {
        expect((await get(other)).status).toBe(200);
        expect((await rss()) - before).toBeLessThan(500 * MAX_BYTES);
      }
    });
  });

  describe.each([
    ["of a request that does not end", ""],
    [
      "of a request that waits for a response that is not read",
      "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
  ])("8,000 short headers on each of 500 connections, %s,", (_what, first) => {
    // V8 shares strings of one character, so each name has two.
    const names = Array.from({ length: 8000 }, (_, at) => (at % 36 ** 2).toString(36).padStart(2, "0"));
    const headers = `GET / HTTP/1.1\r\n${names.map((name) => `${name}:\r\n`).join("")}`;
    const bytes = first === "" ? headers : `${first}${headers}\r\n`;

    // The process has not grown in other attacks.
    beforeAll(async () => {
      await api.stop();
      api = await startApi();
    });

    it("cost less than 64 MiB of memory together, while another tenant is served", async () => {
      const before = await rss();
      const signal = endOfTest();
      let highest = before;
      for (let count = 0; count < 500; count += 50) {
        const sending = Array.from({ length: 50 }, async (_, at) => {
          const socket = await openFrom(SOURCES[at % 4] ?? "", signal);
          socket.write(bytes);
        });
        await Promise.all(sending);
        expect((await get(other)).status).toBe(200);
        highest = Math.max(highest, await rss());
      }
      expect(highest - before).toBeLessThan(64 * MIB);
    });
  });

  describe("60 connections that request the metrics of an organization and never read them", () => {
    const { authorization } = large.developer;
    const path = `/v1/organizations/${large.organizationId}/prometheus`;

    // The process has not grown in other attacks.
    beforeAll(async () => {
      await api.stop();
      api = await startApi();
    });

    function metrics(): Promise<ApiResponse> {
      return api.send({ path, authorization });
    }

    it("cost less than 96 MiB of memory together, while a client with the same key gets its metrics", async () => {
      expect((await metrics()).text.length).toBeGreaterThan(5_000_000);
      const before = await rss();
      const signal = endOfTest();
      const request = `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n\r\n`;
      for (let times = 0; times < 60; times += 1) {
        await requestWithoutReading(SOURCES[times % 4] ?? "", request, signal);
        if (times % 6 === 0) expect((await get(other)).status).toBe(200);
      }
      expect((await metrics()).text.length).toBeGreaterThan(5_000_000);
      expect((await rss()) - before).toBeLessThan(96 * MIB);
    });
  });
});
