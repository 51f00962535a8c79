import { readFileSync, rmSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { createServer } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { TLSSocket } from "node:tls";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { KubeClient } from "../../../src/kube/client.ts";
import { connect } from "../../../src/kube/connection.ts";
import { KubeConfigError, KubeUnreachableError } from "../../../src/kube/errors.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { listen, urlOf } from "../../../src/telemetry/ops-server.ts";
import { done, type FakeHttpServer, startFakeHttpServer } from "../../support/fakes/fake-http-server.ts";
import { temporaryFolder, writeKubeconfig } from "../../support/fixtures/kubeconfig.ts";

/** After this time, credentials are read again. */
const CREDENTIALS_FRESH_MS = 10_001;
/** After this time, unreadable credentials are read again. */
const CREDENTIALS_RETRY_MS = 1001;

const never = new AbortController().signal;

let folder: string;
beforeEach(() => {
  // Fakes only the clocks that measure the age of credentials. Calls and their deadlines use real time.
  vi.useFakeTimers({ toFake: ["Date", "performance"] });
  folder = temporaryFolder();
  return () => {
    vi.useRealTimers();
  };
});

async function clientOf(server: string, user: object): Promise<KubeClient> {
  const client = new KubeClient(await connect(writeKubeconfig(server, { user })));
  onTestFinished(() => client.close());
  return client;
}

describe("a token file", () => {
  let server: FakeHttpServer;
  let client: KubeClient;
  let tokenFile: string;
  beforeEach(async () => {
    tokenFile = join(folder, "token");
    writeFileSync(tokenFile, "first");
    server = await startFakeHttpServer(() => done(1), certificatePair("c"));
    client = await clientOf(server.url, { tokenFile });
  });

  const call = () => client.json({ method: "POST", path: "/things", body: {} });
  const authorizations = () => server.requests.map(({ authorization }) => authorization);

  it("is read again after its token was renewed", async () => {
    await call();
    writeFileSync(tokenFile, "second");
    vi.advanceTimersByTime(CREDENTIALS_FRESH_MS);
    await call();
    expect(authorizations()).toEqual(["Bearer first", "Bearer second"]);
  });

  it("makes the cluster unreachable while it cannot be read", async () => {
    rmSync(tokenFile);
    vi.advanceTimersByTime(CREDENTIALS_FRESH_MS);
    const error = await call().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(KubeUnreachableError);
    expect(error).toMatchObject({
      message: expect.stringMatching(
        /^POST \/things: not sent: The kubeconfig .* has unusable credentials: .*ENOENT/,
      ),
      cause: expect.any(KubeConfigError),
    });
    await expect(client.stream({ path: "/things", signal: never })).rejects.toBeInstanceOf(
      KubeUnreachableError,
    );
    expect(server.requests).toEqual([]);
    writeFileSync(tokenFile, "third");
    vi.advanceTimersByTime(CREDENTIALS_RETRY_MS);
    await call();
    expect(authorizations()).toEqual(["Bearer third"]);
  });
});

describe("an exec plugin", () => {
  /** A plugin whose credentials expire immediately. It counts its runs, and can hang or fail. */
  function plugin(): { readonly user: object; runs(): number; hang(): void; fail(): void } {
    const [runs, hang, fail] = [join(folder, "runs"), join(folder, "hang"), join(folder, "fail")];
    const credential = {
      apiVersion: "client.authentication.k8s.io/v1",
      kind: "ExecCredential",
      status: { token: "t", expirationTimestamp: "2000-01-01T00:00:00Z" },
    };
    const script = `echo >> ${runs}; while [ -e ${hang} ]; do sleep 0.05; done; [ ! -e ${fail} ] && echo '${JSON.stringify(credential)}'`;
    onTestFinished(() => rmSync(hang, { force: true }));
    const { apiVersion } = credential;
    return {
      user: { exec: { apiVersion, command: "sh", args: ["-c", script] } },
      runs: () => readFileSync(runs, "utf8").length,
      hang: () => writeFileSync(hang, ""),
      fail: () => writeFileSync(fail, ""),
    };
  }

  let server: FakeHttpServer;
  beforeEach(async () => {
    server = await startFakeHttpServer(() => done(1), certificatePair("c"));
  });

  it("runs at most once in ten seconds, and once for concurrent calls", async () => {
    const { user, runs } = plugin();
    const client = await clientOf(server.url, user);
    const calls = () => Promise.all(Array.from({ length: 9 }, () => client.json({ path: "/things" })));
    await calls();
    vi.advanceTimersByTime(CREDENTIALS_FRESH_MS - 2);
    await calls();
    expect(runs()).toBe(1);
    vi.advanceTimersByTime(2);
    await calls();
    expect(runs()).toBe(2);
  });

  it("runs at most once a second if it fails", async () => {
    const { user, runs, fail } = plugin();
    const client = await clientOf(server.url, user);
    fail();
    vi.advanceTimersByTime(CREDENTIALS_FRESH_MS);
    for (const waitMs of [0, 0, CREDENTIALS_RETRY_MS - 2]) {
      vi.advanceTimersByTime(waitMs);
      await expect(client.json({ path: "/things" })).rejects.toBeInstanceOf(KubeUnreachableError);
    }
    expect(runs()).toBe(2);
    vi.advanceTimersByTime(2);
    await expect(client.json({ path: "/things" })).rejects.toBeInstanceOf(KubeUnreachableError);
    expect(runs()).toBe(3);
  });

  it("delays a call until its deadline if the plugin hangs, and the call is never sent", async () => {
    const { user, hang } = plugin();
    const client = await clientOf(server.url, user);
    hang();
    vi.advanceTimersByTime(CREDENTIALS_FRESH_MS);
    const call = client.json({ method: "POST", path: "/late", body: {}, timeoutMs: 50 });
    await expect(call).rejects.toBeInstanceOf(KubeUnreachableError);
    await expect(client.stream({ path: "/late", signal: never, timeoutMs: 50 })).rejects.toBeInstanceOf(
      KubeUnreachableError,
    );
    const abort = new AbortController();
    const aborted = client.json({ path: "/late", signal: abort.signal });
    abort.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    rmSync(join(folder, "hang"));
    await client.json({ path: "/next" });
    expect(server.requests.map(({ path }) => path)).toEqual(["/next"]);
  });
});

/** A server that accepts any client certificate. It sends the first half of each watch; the test sends the rest. */
async function startCertificateServer() {
  const requests: { readonly commonName: unknown; readonly impersonated: unknown }[] = [];
  const watches: ServerResponse[] = [];
  const options = { ...certificatePair("server"), requestCert: true, rejectUnauthorized: false };
  const server = await listen(
    createServer(options, ({ url, headers, socket }, response) => {
      const commonName = socket instanceof TLSSocket ? socket.getPeerCertificate().subject?.CN : undefined;
      requests.push({
        commonName: String(commonName),
        impersonated: headers["impersonate-user"]?.toString(),
      });
      if (url !== "/watch") {
        response.end("{}");
        return;
      }
      watches.push(response);
      response.write("first,");
    }),
    "127.0.0.1",
    0,
    createLogger("silent", "test"),
  );
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: urlOf(server, "https"), requests, watches };
}

describe("a client certificate", () => {
  function write(name: string): void {
    const { cert, key } = certificatePair(name);
    writeFileSync(join(folder, "cert"), cert);
    writeFileSync(join(folder, "key"), key);
  }

  it("is used by the next call and watch after its renewal, while open watches continue", async () => {
    const { url, requests, watches } = await startCertificateServer();
    write("old");
    const client = await clientOf(url, {
      "client-certificate": join(folder, "cert"),
      "client-key": join(folder, "key"),
    });
    const watch = await client.stream({ path: "/watch", signal: never });
    await client.json({ path: "/things" });
    write("new");
    await client.json({ path: "/things" });
    vi.advanceTimersByTime(CREDENTIALS_FRESH_MS);
    await client.json({ path: "/things" });
    await client.stream({ path: "/watch", signal: never });
    expect(requests.map(({ commonName }) => commonName)).toEqual(["old", "old", "old", "new", "new"]);
    watches[0]?.end("last");
    expect(await text(watch)).toBe("first,last");
  });

  it("leaves no connection open after its renewal when the client is closed", async () => {
    const { url, watches } = await startCertificateServer();
    write("old");
    const client = await clientOf(url, {
      "client-certificate": join(folder, "cert"),
      "client-key": join(folder, "key"),
    });
    const before = await client.stream({ path: "/watch", signal: never });
    write("new");
    vi.advanceTimersByTime(CREDENTIALS_FRESH_MS);
    const after = await client.stream({ path: "/watch", signal: never });
    await client.close();
    for (const body of [before, after]) await expect(text(body)).rejects.toThrow();
    await waitFor(() => watches.every(({ destroyed }) => destroyed), { what: "the connections to close" });
  });
});

it("a kubeconfig with an impersonated user impersonates it in each request", async () => {
  const { url, requests } = await startCertificateServer();
  const client = await clientOf(url, { token: "t", as: "jane" });
  await client.json({ path: "/things" });
  expect(requests).toEqual([expect.objectContaining({ impersonated: "jane" })]);
});
