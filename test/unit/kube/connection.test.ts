import dns from "node:dns";
import fs, { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { KubeClient } from "../../../src/kube/client.ts";
import { connect } from "../../../src/kube/connection.ts";
import { KubeConfigError } from "../../../src/kube/errors.ts";
import { loadClusterConfig } from "../../../src/kube/kubeconfig.ts";
import { checkReachable } from "../../../src/kube/reachable.ts";
import { done, startFakeHttpServer } from "../../support/fakes/fake-http-server.ts";
import {
  type KubeconfigOptions,
  temporaryFolder,
  writeKubeconfig,
} from "../../support/fixtures/kubeconfig.ts";
import { startConnectProxy } from "../../support/servers/connect-proxy.ts";

async function clientOf(kubeconfig: string | undefined): Promise<KubeClient> {
  const client = new KubeClient(await connect(kubeconfig));
  onTestFinished(() => client.close());
  return client;
}

/** Sends one request. */
async function ask(server: string, options?: KubeconfigOptions): Promise<unknown> {
  const client = await clientOf(writeKubeconfig(server, options));
  return client.json({ path: "/things" });
}

const never = new AbortController().signal;

/** Sets environment variables for one test, and removes those that this machine may have set. */
function setEnvironment(variables: Readonly<Record<string, string | undefined>>): void {
  const names = ["https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "KUBERNETES_SERVICE_HOST"];
  for (const name of names) vi.stubEnv(name, undefined);
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
}

beforeEach(() => {
  setEnvironment({});
  return () => {
    vi.unstubAllEnvs();
  };
});

describe("an unusable kubeconfig", () => {
  function file(content: string): string {
    const path = join(temporaryFolder(), "written");
    writeFileSync(path, content);
    return path;
  }

  function withClientCertificate({ cert, key }: { readonly cert: string; readonly key: string }): string {
    const user = { "client-certificate": file(cert), "client-key": file(key) };
    return writeKubeconfig("https://127.0.0.1:1", { user });
  }

  it.each([
    ["it does not exist", () => join(temporaryFolder(), "nothing"), /does not exist: set --kubeconfig/],
    ["it is not YAML", () => file("clusters: ["), /written cannot be read: line 1 is not valid YAML$/],
    [
      "the line with its token is not YAML",
      () => file('users:\n- user: { token: "s3cret } }\n  name: u\n'),
      /written cannot be read: line \d is not valid YAML$/,
    ],
    [
      "it has no cluster",
      () => file("apiVersion: v1\nkind: Config\n"),
      /names no cluster: set current-context/,
    ],
    [
      "a field has the wrong type",
      () => file("users: [{ name: u, user: { token: 7 } }]"),
      /written cannot be read: users\.0\.user\.token: .*expected string/,
    ],
    [
      "its exec plugin is of a version that no longer exists",
      () =>
        writeKubeconfig("https://127.0.0.1:1", {
          user: { exec: { apiVersion: "client.authentication.k8s.io/v1alpha1", command: "x" } },
        }),
      /cannot be read: exec\.apiVersion: .*client\.authentication\.k8s\.io\/v1/,
    ],
    [
      "its context names a user that it does not have",
      () =>
        file(
          JSON.stringify({
            clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:1" } }],
            contexts: [{ name: "x", context: { cluster: "c", user: "jane" } }],
            "current-context": "x",
          }),
        ),
      /has no user "jane", which the context "x" names/,
    ],
    [
      "its token file does not exist",
      () => writeKubeconfig("https://127.0.0.1:1", { user: { tokenFile: "/nowhere.token" } }),
      /has unusable credentials: .*nowhere\.token/,
    ],
    ["its server is not a URL", () => writeKubeconfig("https://a b"), / has a server that is not a URL\.$/],
    [
      "its proxy is not a URL",
      () => writeKubeconfig("https://127.0.0.1:1", { proxyUrl: "proxy:3128" }),
      /has an invalid proxy-url: it must be an http:\/\//,
    ],
    [
      "its client certificate does not exist",
      () =>
        writeKubeconfig("https://127.0.0.1:1", {
          user: { "client-certificate": "/nowhere.crt", "client-key": "/nowhere.key" },
        }),
      /has unusable credentials: .*nowhere/,
    ],
    [
      "its client certificate is not PEM",
      () => withClientCertificate({ ...certificatePair("jane"), cert: "nonsense" }),
      /has unusable credentials: .*no start line/,
    ],
    [
      "its client key is that of another certificate",
      () => withClientCertificate({ cert: certificatePair("jane").cert, key: certificatePair("joe").key }),
      /has unusable credentials: .*key values mismatch/,
    ],
  ])("is reported in a sentence when %s", async (_, path, sentence) => {
    const error = await connect(path()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(KubeConfigError);
    expect(error).toMatchObject({ message: expect.stringMatching(sentence) });
  });

  it.each([
    [
      "the named context does not exist",
      [{ name: "a", context: { cluster: "a" } }, { name: "b" }],
      /has no context "c": name one of its contexts: a, b\.$/,
    ],
    [
      "the named context has no cluster",
      [{ name: "c", context: {} }],
      /names no cluster: the context "c" has none, so name another one\.$/,
    ],
  ])("is reported in a sentence when %s", async (_, contexts, sentence) => {
    const clusters = [{ name: "a", cluster: { server: "http://127.0.0.1:1" } }];
    const path = file(JSON.stringify({ "current-context": "a", clusters, contexts }));
    await expect(connect(path, never, { context: "c" })).rejects.toThrow(sentence);
  });

  it("is reported in a sentence when no kubeconfig exists", async () => {
    setEnvironment({ HOME: temporaryFolder(), KUBECONFIG: undefined });
    await expect(connect(undefined)).rejects.toThrow(
      new KubeConfigError(
        "No kubeconfig was found: set --kubeconfig or PIPE_SCALING_KUBECONFIG to the path of one.",
      ),
    );
  });

  it("is reported in a sentence when no file of KUBECONFIG exists", async () => {
    setEnvironment({ HOME: temporaryFolder(), KUBECONFIG: "/nowhere/a:/nowhere/b" });
    await expect(connect(undefined)).rejects.toThrow(
      /^No file in KUBECONFIG \(\/nowhere\/a:\/nowhere\/b\) exists: set --kubeconfig or/,
    );
  });

  it("is reported at the first call when nothing listens on its server address", async () => {
    const client = await clientOf(writeKubeconfig("http://127.0.0.1:1"));
    await expect(checkReachable(client, never)).rejects.toThrow(
      /cannot be reached .*127\.0\.0\.1:1.*check that it is running/,
    );
  });
});

it("a server without TLS that requires credentials is reported with the reason why it got none", async () => {
  const server = await startFakeHttpServer(() => ({ status: 401, body: {} }));
  const client = await clientOf(writeKubeconfig(server.url, { user: { token: "t" } }));
  await expect(checkReachable(client, never)).rejects.toThrow(
    /^The cluster at http:.* rejects a request without credentials, which are not sent without TLS: set server in/,
  );
  expect(server.requests.map(({ authorization }) => authorization)).toEqual([undefined]);
});

it("a server name with two addresses at which nothing listens is reported with the first address and its error", async () => {
  const addresses = ["127.0.0.1", "127.0.0.2"].map((address) => ({ address, family: 4 }));
  vi.spyOn(dns, "lookup").mockImplementation(
    Object.assign((...[, , done]: unknown[]) => typeof done === "function" && done(null, addresses), {
      __promisify__: dns.lookup.__promisify__,
    }),
  );
  const client = await clientOf(writeKubeconfig("https://two.example:1"));
  await expect(checkReachable(client, never)).rejects.toThrow(
    "no response from https://two.example:1: connect ECONNREFUSED 127.0.0.1:1)",
  );
});

describe("a proxy", () => {
  it("is used for its cluster if the kubeconfig sets it, like in kubectl", async () => {
    const proxy = await startConnectProxy();
    const server = await startFakeHttpServer(() => done(1), certificatePair("c"));
    const response = await ask(server.url, { user: { token: "t" }, proxyUrl: proxy.url });
    expect(response).toMatchObject({ result: 1 });
    expect(proxy.tunnels).toHaveLength(1);
    expect(server.requests).toEqual([expect.objectContaining({ authorization: "Bearer t" })]);
  });

  it("never receives the credentials for a server without TLS", async () => {
    const proxy = await startConnectProxy();
    const kubeconfig = writeKubeconfig("http://api.example", { user: { token: "t" }, proxyUrl: proxy.url });
    await expect(connect(kubeconfig)).rejects.toThrow(
      /has a proxy-url for a server without TLS, so the proxy could read and change everything/,
    );
  });

  it("is named in the error if it cannot be reached", async () => {
    const call = ask("https://api.example", { proxyUrl: "http://127.0.0.1:1" });
    await expect(call).rejects.toThrow(
      /no response from https:\/\/api\.example through the proxy 127\.0\.0\.1:1: /,
    );
  });

  it("is used if HTTPS_PROXY sets it, unless the kubeconfig sets another proxy", async () => {
    const server = await startFakeHttpServer(() => done(1), certificatePair("c"));
    const [usual, own] = [await startConnectProxy(), await startConnectProxy()];
    const remote = server.url.replace("127.0.0.1", "api.example");
    setEnvironment({ HTTPS_PROXY: usual.url });
    await ask(remote);
    expect(usual.tunnels).toHaveLength(1);
    await ask(remote, { proxyUrl: own.url });
    expect([usual.tunnels.length, own.tunnels.length]).toEqual([1, 1]);
  });

  it("from HTTPS_PROXY is not used for hosts in NO_PROXY, and not mentioned in their errors", async () => {
    const usual = await startConnectProxy();
    setEnvironment({ HTTPS_PROXY: usual.url, NO_PROXY: "other,api.example" });
    await expect(ask("https://api.example")).rejects.toThrow(/no response from https:\/\/api\.example: /);
    expect(usual.tunnels).toEqual([]);
  });

  it("from HTTPS_PROXY is not used for this machine", async () => {
    const server = await startFakeHttpServer(() => done(1), certificatePair("c"));
    const usual = await startConnectProxy();
    setEnvironment({ HTTPS_PROXY: usual.url });
    expect(await ask(server.url)).toMatchObject({ result: 1 });
    expect(usual.tunnels).toEqual([]);
  });
});

describe("in a pod without a kubeconfig", () => {
  const MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";
  const { accessSync, existsSync, readFileSync } = fs;

  /** Makes the files of a pod's service account appear at the path where the kubelet mounts them. */
  function mount(files: Readonly<Record<string, string>>): void {
    const folder = temporaryFolder();
    mkdirSync(join(folder, "home"));
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
    const inFolder = <P extends fs.PathOrFileDescriptor>(path: P) =>
      typeof path === "string" && path.startsWith(MOUNT) ? join(folder, path.slice(MOUNT.length)) : path;
    vi.spyOn(fs, "existsSync").mockImplementation((path) => existsSync(inFolder(String(path))));
    vi.spyOn(fs, "accessSync").mockImplementation((path) => accessSync(String(inFolder(String(path)))));
    vi.spyOn(fs, "readFileSync").mockImplementation((path, options) => readFileSync(inFolder(path), options));
    vi.stubEnv("KUBECONFIG", undefined);
    vi.stubEnv("HOME", join(folder, "home"));
  }

  it("the pod's service account is used, and the server's certificate is verified", async () => {
    const pair = certificatePair("kubernetes");
    const server = await startFakeHttpServer(() => done(1), pair);
    mount({ token: "t0ken\n", "ca.crt": pair.cert });
    vi.stubEnv("KUBERNETES_SERVICE_HOST", "localhost");
    vi.stubEnv("KUBERNETES_SERVICE_PORT", new URL(server.url).port);
    const client = await clientOf(undefined);
    expect(await client.json({ path: "/things" })).toMatchObject({ result: 1 });
    expect(server.requests).toEqual([expect.objectContaining({ authorization: "Bearer t0ken" })]);
    mount({ token: "t0ken", "ca.crt": certificatePair("another").cert });
    const other = await clientOf(undefined);
    await expect(other.json({ path: "/things" })).rejects.toThrow("self-signed certificate");
  });

  it("a renewed token is read within 10 s, also after the clock was set back", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const files = { token: "old", "ca.crt": certificatePair("kubernetes").cert };
    mount(files);
    vi.stubEnv("KUBERNETES_SERVICE_HOST", "localhost");
    vi.stubEnv("KUBERNETES_SERVICE_PORT", "443");
    const config = loadClusterConfig(undefined);
    const token = async () => (await config.readCredentials(never)).headers["Authorization"];
    expect(await token()).toBe("Bearer old");
    mount({ ...files, token: "new" });
    vi.setSystemTime(Date.now() - 3_600_000);
    expect(await token()).toBe("Bearer new");
  });

  it("a context needs a kubeconfig, so the pod's service account is not used", async () => {
    mount({ token: "t", "ca.crt": certificatePair("kubernetes").cert });
    vi.stubEnv("KUBERNETES_SERVICE_HOST", "localhost");
    vi.stubEnv("KUBERNETES_SERVICE_PORT", "443");
    await expect(connect(undefined, never, { context: "c" })).rejects.toThrow(/^No kubeconfig was found: /);
  });

  it("HTTPS_PROXY is ignored", async () => {
    const proxy = await startConnectProxy();
    mount({ token: "t", "ca.crt": certificatePair("kubernetes").cert });
    vi.stubEnv("HTTPS_PROXY", proxy.url);
    vi.stubEnv("KUBERNETES_SERVICE_HOST", "kubernetes.invalid");
    vi.stubEnv("KUBERNETES_SERVICE_PORT", "443");
    const client = await clientOf(undefined);
    await expect(client.json({ path: "/things" })).rejects.toThrow("from https://kubernetes.invalid: ");
    expect(proxy.tunnels).toEqual([]);
  });

  it("an incomplete service account is reported in a sentence", async () => {
    mount({ token: "t" });
    vi.stubEnv("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    vi.stubEnv("KUBERNETES_SERVICE_PORT", "443");
    await expect(connect(undefined)).rejects.toThrow(
      /^The pod's service account has unusable credentials: .*ca\.crt/,
    );
  });
});
