import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { type EndedCall, KubeClient, MAX_OPENING_STREAMS } from "../../../src/kube/client.ts";
import { connect, MAX_CALL_CONNECTIONS } from "../../../src/kube/connection.ts";
import {
  isForbiddenByRbac,
  isWithoutRoles,
  KubeApiError,
  KubeUnreachableError,
} from "../../../src/kube/errors.ts";
import { listOf, PROTOBUF } from "../../../src/kube/protobuf/envelope.ts";
import { configMap } from "../../../src/kube/protobuf/messages.ts";
import { checkReachable } from "../../../src/kube/reachable.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { listen, urlOf } from "../../../src/telemetry/ops-server.ts";
import { startFakeHttpServer } from "../../support/fakes/fake-http-server.ts";
import { writeKubeconfig } from "../../support/fixtures/kubeconfig.ts";

const never = new AbortController().signal;

async function serve(listener: RequestListener): Promise<string> {
  const server: Server = await listen(createServer(listener), "127.0.0.1", 0, createLogger("silent", "test"));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return urlOf(server);
}

async function clientOf(
  server: string,
  { user = {}, onCall }: { readonly user?: object; readonly onCall?: (call: EndedCall) => void } = {},
): Promise<KubeClient> {
  const client = new KubeClient(await connect(writeKubeconfig(server, { user })), onCall);
  onTestFinished(() => client.close());
  return client;
}

describe("a response", () => {
  const causes = [{ reason: "FieldValueInvalid", message: "field is immutable", field: "metadata.uid" }];
  const refusal = { message: "it is another one", reason: "Invalid", details: { causes } };
  const responses = new Map<string, readonly [number, string, Record<string, string>?]>([
    ["/base/html", [404, "<h1>404 page not found</h1>"]],
    ["/base/busy", [429, "{}", { "retry-after": "7" }]],
    ["/base/half", [200, '{"a":']],
    ["/base/dated", [200, "{}", { date: "Thu, 01 Jan 2026 00:00:07 GMT" }]],
    ["/base/badly-dated", [200, "{}", { date: "yesterday" }]],
    ["/base/cut-off", [503, "k8s\0", { "content-type": PROTOBUF }]],
    ["/base/refused", [422, JSON.stringify(refusal)]],
  ]);
  const requests: { method: string; url: string }[] = [];
  let base: string;
  beforeEach(async () => {
    requests.length = 0;
    base = `${await serve(({ method = "", url = "" }, response) => {
      requests.push({ method, url });
      const [status, body, responseHeaders = {}] = responses.get(url) ?? [200, '{"kind":"Thing"}'];
      response.writeHead(status, responseHeaders).end(body);
    })}/base`;
  });

  it("is reported with its Date header if the header is valid", async () => {
    const ended: EndedCall[] = [];
    const client = await clientOf(base, { onCall: (call) => ended.push(call) });
    await client.json({ path: "/dated" });
    await client.json({ path: "/badly-dated" });
    expect(ended.map(({ date }) => date)).toEqual([Date.parse("2026-01-01T00:00:07Z"), undefined]);
  });

  it("is returned to a request with the base path of the server and the encoded query", async () => {
    const client = await clientOf(base);
    const query = { labelSelector: "a in (b,c)", limit: 5, continue: undefined };
    expect(await client.json({ path: "/things", query })).toEqual({ kind: "Thing" });
    expect(requests).toEqual([
      {
        method: "GET",
        url: "/base/things?labelSelector=a%20in%20(b%2Cc)&limit=5",
      },
    ]);
  });

  it("causes an error with its status code, causes and Retry-After if it is not successful", async () => {
    const client = await clientOf(base);
    const refused = await client
      .json({ method: "PATCH", path: "/refused", body: {} })
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(KubeApiError);
    expect(refused).toMatchObject({
      message: "PATCH /refused: 422 it is another one",
      code: 422,
      reason: "Invalid",
      causes: [{ field: "metadata.uid" }],
    });
    await expect(client.json({ path: "/busy" })).rejects.toMatchObject({ code: 429, retryAfterMs: 7000 });
    await expect(client.json({ path: "/html" })).rejects.toMatchObject({
      code: 404,
      message: expect.stringContaining("404 page not found"),
    });
  });

  it("counts as lost if it ends early", async () => {
    const client = await clientOf(base);
    await expect(client.json({ path: "/half" })).rejects.toBeInstanceOf(KubeUnreachableError);
  });

  it("causes an error with its status code if it is not successful and its protobuf is cut off", async () => {
    const client = await clientOf(base);
    const call = client.json({ path: "/cut-off", message: listOf(configMap) });
    await expect(call).rejects.toBeInstanceOf(KubeApiError);
    await expect(call).rejects.toMatchObject({ code: 503 });
  });

  it("causes an error about rejected credentials if it is a 401 at startup", async () => {
    const server = await startFakeHttpServer(() => ({ status: 401, body: {} }), certificatePair("c"));
    const client = await clientOf(server.url);
    await expect(checkReachable(client, never)).rejects.toThrow(
      /rejects the credentials of the kubeconfig or of the service account of the pod: renew/,
    );
  });
});

describe("a 403 from RBAC", () => {
  const message = 'pods is forbidden: User "controller" cannot list resource "pods"';
  const missing = (...names: readonly string[]) =>
    `: RBAC: [${names.map((name) => `clusterrole.rbac.authorization.k8s.io "${name}" not found`).join(", ")}]`;
  let client: KubeClient;
  /** Follows the message. */
  let suffix: string;
  beforeEach(async () => {
    suffix = "";
    const url = await serve((request, response) => {
      const [, code] = /^\/(\d+)$/.exec(request.url ?? "") ?? [];
      if (code !== undefined) response.writeHead(Number(code)).end("<h1>no upstream</h1>");
      else if (request.url === "/lost") request.socket.destroy();
      else if (request.url === "/watch") response.writeHead(200).write("{}", () => request.socket.destroy());
      else response.writeHead(403).end(JSON.stringify({ message: `${message}${suffix}` }));
    });
    client = await clientOf(url);
  });

  it("for the path of the version shows at startup that the server responds", async () => {
    const body = { message: 'forbidden: User "controller" cannot get path "/version"' };
    const server = await startFakeHttpServer(() => ({ status: 403, body }));
    await checkReachable(await clientOf(server.url), never);
  });

  async function isWithoutRolesNow(): Promise<boolean> {
    const error: unknown = await client.json({ path: "/pods" }).catch((caught: unknown) => caught);
    expect(isForbiddenByRbac(error)).toBe(true);
    return isWithoutRoles(error);
  }

  it("means a missing permission", async () => {
    expect(await isWithoutRolesNow()).toBe(false);
  });

  it.each([404, 409, 429, 500, 501])("means a missing permission soon after a %i, too", async (code) => {
    await expect(client.json({ path: `/${code}` })).rejects.toMatchObject({ code });
    expect(await isWithoutRolesNow()).toBe(false);
  });

  it.each<[string, () => Promise<unknown>]>([
    ["a lost call", () => client.json({ path: "/lost" })],
    [
      "a lost watch",
      async () => {
        const stream = await client.stream({ path: "/watch", signal: never });
        for await (const _ of stream);
      },
    ],
    ["a 502 of a proxy", () => client.json({ path: "/502" })],
    ["a 503 of a proxy", () => client.json({ path: "/503" })],
    ["a 504 of a proxy to a watch", () => client.stream({ path: "/504", signal: never })],
  ])("means that the API server is starting for 10 s after %s", async (_what, lose) => {
    await expect(lose()).rejects.toThrow();
    expect(await isWithoutRolesNow()).toBe(true);
    const now = performance.now();
    vi.spyOn(performance, "now").mockImplementation(() => now + 11_000);
    expect(await isWithoutRolesNow()).toBe(false);
  });

  /** @returns a function that lets this time pass, and then returns what a refusal that names these roles means */
  function refusals(): (seconds: number, ...roles: readonly string[]) => Promise<boolean> {
    // Fractions of a millisecond would make a minute a little shorter.
    let now = Math.round(performance.now());
    vi.spyOn(performance, "now").mockImplementation(() => now);
    return (seconds, ...roles) => {
      now += seconds * 1000;
      suffix = missing(...roles);
      return isWithoutRolesNow();
    };
  }

  it("means a missing permission after it has named the same missing role for a minute", async () => {
    const refused = refusals();
    for (const seconds of [0, 30, 29]) expect(await refused(seconds, "old")).toBe(true);
    expect(await refused(1, "old")).toBe(false);
    expect(await refused(3600, "old")).toBe(false);
    // The role may have been created again since then.
    expect(await refused(3601, "old")).toBe(true);
  });

  it("means that the API server is starting if it also names other roles than the one that was deleted", async () => {
    const refused = refusals();
    for (const seconds of [0, 60]) await refused(seconds, "old");
    expect(await refused(0, "old", "controller")).toBe(true);
    expect(await refused(0, "older")).toBe(true);
    expect(await refused(60, "older", "old")).toBe(false);
  });

  it("means each time that the API server is starting if several start one after the other", async () => {
    const refused = refusals();
    for (const seconds of [0, 5, 180, 5, 180]) expect(await refused(seconds, "controller")).toBe(true);
  });
});

describe("with a server that does not respond", () => {
  let silent: ServerResponse[];
  let watched: ServerResponse[];
  /** Paths of all requests that arrived. */
  let arrived: string[];
  let url: string;
  beforeEach(async () => {
    [silent, watched, arrived] = [[], [], []];
    url = await serve(({ url = "" }, response) => {
      arrived.push(url);
      if (url.startsWith("/silent")) silent.push(response);
      else if (!url.startsWith("/watch")) response.end("{}");
      else {
        watched.push(response.writeHead(200));
        response.flushHeaders();
      }
    });
  });

  /** Occupies each connection for calls with a call. @returns a function that ends the calls */
  async function useAllConnections(client: KubeClient): Promise<() => Promise<void>> {
    const paths = Array.from({ length: MAX_CALL_CONNECTIONS }, (_, at) => `/silent/${at}`);
    const calls = Promise.all(paths.map((path) => client.json({ path, timeoutMs: 60_000 })));
    await waitFor(() => silent.length === paths.length, { what: "the calls to arrive" });
    return async () => {
      for (const response of silent.splice(0)) response.end("{}");
      await calls;
    };
  }

  it("a call and the opening of a stream reject at their deadline", async () => {
    const client = await clientOf(url);
    await expect(client.json({ path: "/silent", timeoutMs: 50 })).rejects.toBeInstanceOf(
      KubeUnreachableError,
    );
    await expect(client.stream({ path: "/silent", timeoutMs: 50, signal: never })).rejects.toBeInstanceOf(
      KubeUnreachableError,
    );
  });

  it("a call rejects when its caller aborts it, with the caller's reason", async () => {
    const client = await clientOf(url);
    const abort = new AbortController();
    const call = client.json({ path: "/silent", signal: abort.signal });
    abort.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
  });

  it("a call that waits for a connection rejects at its deadline, and is never sent", async () => {
    const ended: EndedCall[] = [];
    const client = await clientOf(url, { onCall: (call) => ended.push(call) });
    const respond = await useAllConnections(client);
    const queued = client.json({ method: "POST", path: "/queued", body: {}, timeoutMs: 50 });
    await expect(queued).rejects.toBeInstanceOf(KubeUnreachableError);
    expect(ended).toEqual([expect.objectContaining({ method: "POST", code: 0 })]);
    await respond();
    await client.json({ path: "/last" });
    expect(arrived).toContain("/last");
    expect(arrived).not.toContain("/queued");
  });

  it("a call that waits for a connection rejects when its caller aborts it, and is never sent", async () => {
    const client = await clientOf(url);
    const respond = await useAllConnections(client);
    const abort = new AbortController();
    const queued = client.json({ method: "POST", path: "/queued", body: {}, signal: abort.signal });
    abort.abort(new Error("enough"));
    await expect(queued).rejects.toThrow("enough");
    await respond();
    await client.json({ path: "/last" });
    expect(arrived).not.toContain("/queued");
  });

  it("open watches never occupy the connections for calls", async () => {
    const client = await clientOf(url);
    const watches = Array.from({ length: 2 * MAX_CALL_CONNECTIONS }, (_, at) =>
      client.stream({ path: `/watch/${at}`, signal: never }),
    );
    await Promise.all(watches);
    expect(await client.json({ path: "/things" })).toEqual({});
  });

  it("a watch can be opened while all connections for calls are in use", async () => {
    const client = await clientOf(url);
    const respond = await useAllConnections(client);
    expect(await client.stream({ path: "/watch", signal: never })).toBeDefined();
    await respond();
  });

  it("at most 64 watches are opened at a time, and the others wait or can be aborted", async () => {
    const client = await clientOf(url);
    const paths = Array.from({ length: MAX_OPENING_STREAMS }, (_, at) => `/silent/${at}`);
    const opening = paths.map((path) => client.stream({ path, signal: never, timeoutMs: 60_000 }));
    const abort = new AbortController();
    const aborted = client.stream({ path: "/watch/aborted", signal: abort.signal });
    const waiting = client.stream({ path: "/watch/waiting", signal: never });
    abort.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    await waitFor(() => silent.length === paths.length, { what: "the watches to arrive" });
    // A call that is sent after the watches arrives after them.
    await client.json({ path: "/last" });
    expect(arrived).not.toContain("/watch/waiting");
    silent[0]?.writeHead(200).flushHeaders();
    await waiting;
    expect(arrived).not.toContain("/watch/aborted");
    for (const response of silent) response.end();
    await Promise.all(opening);
  });

  it("an open watch has no deadline", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const client = await clientOf(url);
    const body = await client.stream({ path: "/watch", timeoutMs: 1000, signal: never });
    vi.advanceTimersByTime(60_000);
    watched[0]?.end("event");
    expect(await text(body)).toBe("event");
  });
});
