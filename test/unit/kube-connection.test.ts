import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { KubeClient } from "../../src/kube/client.ts";
import { connect } from "../../src/kube/connection.ts";
import { KubeApiError, KubeConfigError, KubeUnreachableError } from "../../src/kube/errors.ts";
import { checkReachable } from "../../src/kube/reachable.ts";
import { serviceAccountAccess } from "../../src/kube/service-account.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { listen, urlOf } from "../../src/telemetry/ops-server.ts";
import { certificatePair } from "../gen/certificate.ts";
import { startConnectProxy } from "../gen/connect-proxy.ts";
import { done, startStubApi } from "../gen/stub-api.ts";

const folder = mkdtempSync(join(tmpdir(), "kubeconfig-"));
afterAll(() => rmSync(folder, { recursive: true }));

function kubeconfig(server: string, user: object = {}, proxyUrl?: string): string {
  const proxy = encodeURIComponent(proxyUrl ?? "");
  const path = join(folder, `${encodeURIComponent(server)}-${Object.keys(user).join("-")}-${proxy}`);
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server, "insecure-skip-tls-verify": true, "proxy-url": proxyUrl } }],
    users: [{ name: "u", user }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  };
  writeFileSync(path, JSON.stringify(config));
  return path;
}

async function clientOf(path: string): Promise<KubeClient> {
  return new KubeClient(await connect(path));
}

const never = new AbortController().signal;

describe("a kubeconfig", () => {
  it.each([
    [
      "that does not exist",
      () => join(folder, "nothing"),
      /does not exist: give the path of one with --kubeconfig/,
    ],
    [
      "that is no YAML",
      () => {
        writeFileSync(join(folder, "broken"), "clusters: [");
        return join(folder, "broken");
      },
      /broken cannot be read/,
    ],
    [
      "without a cluster",
      () => {
        writeFileSync(join(folder, "empty"), "apiVersion: v1\nkind: Config\n");
        return join(folder, "empty");
      },
      /names no cluster: set current-context/,
    ],
    [
      "whose proxy is no address of one",
      () => kubeconfig("https://127.0.0.1:1", {}, "proxy:3128"),
      /has a proxy-url that is no address of a proxy: it must be one that begins with http:\/\//,
    ],
    ["whose server is no URL", () => kubeconfig("nonsense"), /"nonsense" as server, which is not a URL/],
  ])("%s is told with what to do", async (_, path, sentence) => {
    const error = await connect(path()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(KubeConfigError);
    expect(error).toMatchObject({ message: expect.stringMatching(sentence) });
  });

  it("with a certificate that is not there is told", async () => {
    const path = kubeconfig("https://127.0.0.1:1", {
      "client-certificate": "/nowhere.crt",
      "client-key": "/nowhere.key",
    });
    await expect(connect(path)).rejects.toThrow(/has credentials that cannot be used: .*nowhere/);
  });

  it("that points nowhere is told at the first call", async () => {
    const client = await clientOf(kubeconfig("http://127.0.0.1:1"));
    await expect(checkReachable(client, never)).rejects.toThrow(
      /cannot be reached .*127\.0\.0\.1:1.*check that it runs/,
    );
    await client.close();
  });
});

describe("a proxy", () => {
  async function ask(path: string): Promise<unknown> {
    const client = await clientOf(path);
    try {
      return await client.json({ path: "/things" });
    } finally {
      await client.close();
    }
  }

  it("that the kubeconfig names is the way to its cluster, as for kubectl", async () => {
    const [proxy, server] = [
      await startConnectProxy(),
      await startStubApi(() => done(1), certificatePair("c")),
    ];
    expect(await ask(kubeconfig(server.url, { token: "t" }, proxy.url))).toMatchObject({ result: 1 });
    expect(proxy.tunnels).toHaveLength(1);
    expect(server.requests).toEqual([expect.objectContaining({ authorization: "Bearer t" })]);
  });

  it("is not given the credentials for a server without TLS", async () => {
    const proxy = await startConnectProxy();
    await expect(connect(kubeconfig("http://api.example", { token: "t" }, proxy.url))).rejects.toThrow(
      /has a proxy-url for a server without TLS: the proxy could read the credentials/,
    );
  });

  it("that is not there is named", async () => {
    const asked = ask(kubeconfig("https://api.example", {}, "http://127.0.0.1:1"));
    await expect(asked).rejects.toThrow(
      /no answer from https:\/\/api\.example by the proxy 127\.0\.0\.1:1: /,
    );
  });

  it("that HTTPS_PROXY names is, unless NO_PROXY excepts it, the kubeconfig names another, or it is here", async () => {
    const server = await startStubApi(() => done(1), certificatePair("c"));
    const [usual, named] = [await startConnectProxy(), await startConnectProxy()];
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    vi.stubEnv("https_proxy", undefined);
    vi.stubEnv("no_proxy", undefined);
    vi.stubEnv("HTTPS_PROXY", usual.url);
    vi.stubEnv("NO_PROXY", undefined);
    const afar = server.url.replace("127.0.0.1", "api.example");
    await ask(kubeconfig(afar));
    expect(usual.tunnels).toHaveLength(1);
    await ask(kubeconfig(afar, {}, named.url));
    expect(named.tunnels).toHaveLength(1);
    vi.stubEnv("NO_PROXY", "api.example");
    await expect(ask(kubeconfig(afar))).rejects.toThrow(/no answer from .*api\.example/);
    await ask(kubeconfig(server.url));
    expect(usual.tunnels).toHaveLength(1);
  });
});

describe("a Pod's own service account", () => {
  const dir = join(folder, "serviceaccount");
  const inPod = { KUBERNETES_SERVICE_HOST: "10.0.0.1", KUBERNETES_SERVICE_PORT: "6443" };
  beforeAll(() => {
    mkdirSync(dir);
    writeFileSync(join(dir, "ca.crt"), "certificate");
    writeFileSync(join(dir, "token"), "t0ken\n");
  });

  it("is read anew each time, for tokens are renewed", async () => {
    const access = serviceAccountAccess(dir, inPod);
    expect(access).toMatchObject({ server: "https://10.0.0.1:6443", route: undefined });
    expect(await access?.credentials()).toEqual({
      ca: Buffer.from("certificate"),
      authorization: "Bearer t0ken",
    });
    writeFileSync(join(dir, "token"), "another");
    expect(await access?.credentials()).toMatchObject({ authorization: "Bearer another" });
  });

  it("is known by the address of an IPv6 cluster too, and by the usual port", () => {
    const { server } = serviceAccountAccess(dir, { KUBERNETES_SERVICE_HOST: "fd00::1" }) ?? {};
    expect(server).toBe("https://[fd00::1]:443");
  });

  it.each([
    ["outside of a Pod", dir, {}],
    ["where the Pod is given no token", folder, inPod],
  ])("is not there %s", (_, where, env) => expect(serviceAccountAccess(where, env)).toBeUndefined());

  it("that cannot be read is told", async () => {
    const half = join(folder, "half");
    mkdirSync(half);
    writeFileSync(join(half, "token"), "t0ken");
    await expect(serviceAccountAccess(half, inPod)?.credentials()).rejects.toThrow(
      /^The service account in .*half cannot be read: .*ca\.crt/,
    );
  });
});

describe("the client", () => {
  let server: Server;
  let url: string;
  const requests: {
    method?: string | undefined;
    url?: string | undefined;
    authorization?: string | undefined;
  }[] = [];
  beforeAll(async () => {
    server = await listen(
      createServer((request, response) => {
        requests.push({
          method: request.method,
          url: request.url,
          authorization: request.headers.authorization,
        });
        const [status, body, headers = {}] = answers.get(request.url ?? "") ?? [200, '{"kind":"Thing"}'];
        if (request.url !== "/base/silent") response.writeHead(status, headers).end(body);
      }),
      "127.0.0.1",
      0,
      createLogger("silent", "test"),
    );
    url = urlOf(server);
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  const causes = [{ reason: "FieldValueInvalid", message: "field is immutable", field: "metadata.uid" }];
  const refusal = { message: "it is another one", reason: "Invalid", details: { causes } };
  const answers = new Map<string, readonly [number, string, Record<string, string>?]>([
    ["/base/html", [404, "<h1>404 page not found</h1>"]],
    ["/base/busy", [429, "{}", { "retry-after": "7" }]],
    ["/base/half", [200, '{"a":']],
    ["/base/version", [401, "{}"]],
    ["/base/refused", [422, JSON.stringify(refusal)]],
  ]);

  it("keeps the path in the server's address, encodes the query and sends the token", async () => {
    const client = await clientOf(kubeconfig(`${url}/base`, { token: "t0ken" }));
    expect(
      await client.json({
        path: "/things",
        query: { labelSelector: "a in (b,c)", limit: 5, continue: undefined },
      }),
    ).toEqual({
      kind: "Thing",
    });
    expect(requests.at(-1)).toEqual({
      method: "GET",
      url: "/base/things?labelSelector=a+in+%28b%2Cc%29&limit=5",
      authorization: "Bearer t0ken",
    });
    await client.close();
  });

  it("tells a refusal with its code, its causes and how long to wait", async () => {
    const client = await clientOf(kubeconfig(`${url}/base`));
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
    const busy = client.json({ path: "/busy" });
    await expect(busy).rejects.toMatchObject({ code: 429, retryAfterMs: 7000 });
    const html = client.json({ path: "/html" });
    await expect(html).rejects.toMatchObject({
      code: 404,
      message: expect.stringContaining("404 page not found"),
    });
    await client.close();
  });

  it("does not wait for ever, and takes half an answer for none", async () => {
    const client = await clientOf(kubeconfig(`${url}/base`));
    await expect(client.json({ path: "/silent", timeoutMs: 50 })).rejects.toBeInstanceOf(
      KubeUnreachableError,
    );
    await expect(client.stream({ path: "/silent", timeoutMs: 50, signal: never })).rejects.toBeInstanceOf(
      KubeUnreachableError,
    );
    await expect(client.json({ path: "/half" })).rejects.toBeInstanceOf(KubeUnreachableError);
    await client.close();
  });

  it("ends a call when its caller does, with the caller's reason", async () => {
    const client = await clientOf(kubeconfig(`${url}/base`));
    const abort = new AbortController();
    const call = client.json({ path: "/silent", signal: abort.signal });
    abort.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
    await client.close();
  });

  it("says that credentials are not accepted", async () => {
    const client = await clientOf(kubeconfig(`${url}/base`));
    await expect(checkReachable(client, never)).rejects.toThrow(
      /does not accept the kubeconfig's credentials: renew/,
    );
    await client.close();
  });
});
