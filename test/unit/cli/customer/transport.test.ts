import { createServer } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { describe, expect, onTestFinished, test } from "vitest";
import { openTransport, type Transport } from "../../../../src/cli/customer/transport.ts";
import { Interruption } from "../../../../src/cli/io.ts";
import { done, startFakeHttpServer } from "../../../support/fakes/fake-http-server.ts";
import { startConnectProxy } from "../../../support/servers/connect-proxy.ts";

const UNKNOWN = "The change may or may not have been made. It is safe to repeat the command.";

function transportTo(
  url: string,
  ca?: string,
  options: NonNullable<Parameters<typeof openTransport>[1]> = {},
): Transport {
  const access = { url, authorization: "Basic YTpi", keySuffix: "a", ca, profile: undefined, flags: "" };
  const transport = openTransport(access, options);
  onTestFinished(() => transport.close());
  return transport;
}

function get(url: string, ca?: string) {
  return transportTo(url, ca).send({ method: "GET", path: "/v1/x" });
}

function patch(url: string) {
  return transportTo(url).send({ method: "PATCH", path: "/v1/x", body: {} });
}

/** A server that sends these bytes on each connection, and then closes the connection unless `stays` is set. */
async function talker(bytes: string | undefined, { stays = false } = {}): Promise<string> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => {
      if (bytes === undefined) socket.destroy();
      else if (stays) socket.write(bytes);
      else socket.end(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return `127.0.0.1:${address.port}`;
}

describe("a request", () => {
  test("is sent to the base path with the key and the body, and returns the response", async () => {
    const api = await startFakeHttpServer(() => done(1, { "X-Request-Id": "r" }));
    const transport = transportTo(`${api.url}/base`);
    const response = await transport.send({ method: "PATCH", path: "/v1/x", body: { a: 1 } });
    expect(response).toMatchObject({ status: 200, headers: { "x-request-id": "r" } });
    expect(api.requests).toEqual([
      {
        method: "PATCH",
        path: "/base/v1/x",
        authorization: "Basic YTpi",
        contentType: "application/json; charset=utf-8",
        body: { a: 1 },
      },
    ]);
  });

  test("does not follow redirects, so that the key is never sent to another server", async () => {
    const other = await startFakeHttpServer(() => done(1));
    const api = await startFakeHttpServer(() => ({
      status: 307,
      headers: { Location: other.url },
      body: "",
    }));
    expect(await get(api.url)).toMatchObject({ status: 307 });
    expect(other.requests).toEqual([]);
  });

  test("trusts only the certificate in the CA file", async () => {
    const [pair, another] = [certificatePair("api"), certificatePair("another")];
    const api = await startFakeHttpServer(() => done(1), pair);
    expect((await get(api.url, pair.cert)).status).toBe(200);
    for (const ca of [undefined, another.cert]) {
      await expect(get(api.url, ca)).rejects.toThrow(
        /did not respond: .*certificate.* specify the certificate of the authority with --ca-file \(or PIPE_SCALING_CA_FILE\)\.$/,
      );
    }
    expect(api.requests.length).toBe(1);
  });

  test("fails with a clear message if the certificate is for another name", async () => {
    const pair = certificatePair("api");
    const api = await startFakeHttpServer(() => done(1), pair);
    const url = api.url.replace("127.0.0.1", "[::ffff:7f00:1]");
    await expect(get(url, pair.cert)).rejects.toThrow(
      /did not respond: .*does not match certificate's altnames.*Check the address/,
    );
  });

  test("fails with a clear message if no server listens on the port, without a warning that the change may have been made", async () => {
    const sentence =
      "http://127.0.0.1:1 did not respond: connect ECONNREFUSED 127.0.0.1:1. Check the address and its port, whether it begins with http:// or https://, and the network.";
    await expect(get("http://127.0.0.1:1")).rejects.toThrow(sentence);
    await expect(patch("http://127.0.0.1:1")).rejects.toHaveProperty("message", sentence);
  });

  test("fails with a clear message if the name does not resolve", async () => {
    await expect(get("https://api.invalid")).rejects.toThrow(
      /^https:\/\/api\.invalid did not respond: getaddrinfo .*api\.invalid\. Check the address/,
    );
  });

  test("fails with a hint if it uses HTTPS for an HTTP server, or HTTP for an HTTPS server", async () => {
    const plain = await startFakeHttpServer(() => done(1));
    await expect(get(plain.url.replace("http:", "https:"))).rejects.toThrow(
      /did not respond: the server there does not use HTTPS\. Check the address and its port, whether it begins with http:\/\/ or https/,
    );
    const tls = await startFakeHttpServer(() => done(1), certificatePair("api"));
    await expect(get(tls.url.replace("https:", "http:"))).rejects.toThrow(
      /did not respond: .* Check the address and its port, whether it begins with http:\/\/ or https/,
    );
  });

  test("fails with a clear message if the server speaks another protocol", async () => {
    await expect(get(`http://${await talker("SSH-2.0-OpenSSH_9.2\r\n")}`)).rejects.toThrow(
      /did not respond: .* Check the address/,
    );
  });

  test("may have taken effect if its response is missing or incomplete", async () => {
    const cut = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{";
    const chunked = "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{";
    for (const bytes of [undefined, cut, chunked, "no HTTP\r\n\r\n"]) {
      const url = `http://${await talker(bytes)}`;
      await expect(get(url)).rejects.toThrow(/did not respond: .* Check the address.*network\.$/);
      await expect(patch(url)).rejects.toThrow(UNKNOWN);
    }
  });

  test("times out if its response is never completed", async () => {
    const url = `http://${await talker("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", { stays: true })}`;
    const transport = transportTo(url, undefined, { deadlineMs: 50 });
    await expect(transport.send({ method: "PATCH", path: "/v1/x", body: {} })).rejects.toThrow(
      /did not respond: .*timeout.* The change may or may not have been made/,
    );
  });

  test("fails if its response is larger than 4 MiB", async () => {
    const head = `HTTP/1.1 200 OK\r\nContent-Length: ${5 * 1024 * 1024}\r\n\r\n`;
    const url = `http://${await talker(head + "a".repeat(5 * 1024 * 1024))}`;
    await expect(get(url)).rejects.toThrow(/did not respond: .* Check the address/);
  });

  test("ends when it is interrupted", async () => {
    const [stop, reason] = [new AbortController(), new Interruption("SIGINT", 130)];
    const api = await startFakeHttpServer(() => {
      stop.abort(reason);
      return done(1);
    });
    const pending = transportTo(api.url).send({ method: "GET", path: "/v1/x" }, stop.signal);
    await expect(pending).rejects.toBe(reason);
  });
});

describe("with HTTPS_PROXY", () => {
  const pair = certificatePair("api");

  /** The URL with which another machine would call the API. */
  const fromAfar = ({ url }: { readonly url: string }) => url.replace("127.0.0.1", "api.example");

  async function request(env: (proxy: string) => Record<string, string>) {
    const proxy = await startConnectProxy();
    const api = await startFakeHttpServer(() => done(1), pair);
    const transport = transportTo(fromAfar(api), pair.cert, { env: env(proxy.url) });
    const response = transport.send({ method: "GET", path: "/v1/x" });
    return { response, proxy, to: new URL(fromAfar(api)).host };
  }

  test.each([
    ["https_proxy", ""],
    ["HTTPS_PROXY", "example.com,.svc"],
  ])(
    "a request uses a tunnel through the proxy in %s and verifies the API's certificate",
    async (name, NO_PROXY) => {
      const { response, proxy, to } = await request((url) => ({ [name]: url, NO_PROXY }));
      expect(await response).toMatchObject({ status: 200 });
      expect(proxy.tunnels).toEqual([{ to, authorization: undefined }]);
      const other = await startFakeHttpServer(() => done(1), certificatePair("another"));
      const transport = transportTo(fromAfar(other), pair.cert, { env: { [name]: proxy.url } });
      await expect(transport.send({ method: "GET", path: "/v1/x" })).rejects.toThrow("--ca-file");
    },
  );

  test("a request uses the credentials in the proxy URL, and HTTP if the URL has no scheme", async () => {
    const { response, proxy } = await request((url) => ({
      HTTPS_PROXY: url.replace("http://", "me:secret@"),
    }));
    expect(await response).toMatchObject({ status: 200 });
    expect(proxy.tunnels[0]?.authorization).toBe(`Basic ${Buffer.from("me:secret").toString("base64")}`);
  });

  test("a host in NO_PROXY is reached without the proxy", async () => {
    const { response, proxy } = await request((url) => ({ HTTPS_PROXY: url, NO_PROXY: "other,.example" }));
    await expect(response).rejects.toThrow("did not respond: getaddrinfo");
    expect(proxy.tunnels).toEqual([]);
  });

  test("this machine is reached without the proxy", async () => {
    const proxy = await startConnectProxy();
    const api = await startFakeHttpServer(() => done(1), pair);
    const transport = transportTo(api.url, pair.cert, { env: { HTTPS_PROXY: proxy.url } });
    expect(await transport.send({ method: "GET", path: "/v1/x" })).toMatchObject({ status: 200 });
    expect(proxy.tunnels).toEqual([]);
  });

  test("a plain HTTP request never uses a proxy, because the proxy could read the key", async () => {
    const proxy = await startConnectProxy();
    const api = await startFakeHttpServer(() => done(1));
    const env = { HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url, http_proxy: proxy.url };
    const transport = transportTo(fromAfar(api), undefined, { env });
    await expect(transport.send({ method: "GET", path: "/v1/x" })).rejects.toThrow(
      "did not respond: getaddrinfo",
    );
  });

  test.each([
    [407, /through the proxy 127\.0\.0\.1:\d+ of HTTPS_PROXY: .*407.*Check HTTPS_PROXY/],
    [403, /^https:\/\/api\.example:\d+ did not respond through the proxy .*403.*Check HTTPS_PROXY/],
  ])(
    "a proxy that responds with %i is named without its password, and without a warning about the change",
    async (status, sentence) => {
      const proxy = await startConnectProxy({ refusal: status });
      const env = { HTTPS_PROXY: proxy.url.replace("//", "//me:secret@") };
      const transport = transportTo("https://api.example:1", undefined, { env });
      const error = await transport.send({ method: "PATCH", path: "/v1/x", body: {} }).catch(messageOf);
      expect(error).toMatch(sentence);
      expect(error).not.toContain("secret");
      expect(error).not.toContain(UNKNOWN);
    },
  );

  test("an unreachable proxy is named, with a hint on how to bypass it", async () => {
    const transport = transportTo("https://api.example", undefined, { env: { HTTPS_PROXY: "127.0.0.1:1" } });
    expect(await transport.send({ method: "GET", path: "/v1/x" }).catch(messageOf)).toBe(
      "https://api.example did not respond through the proxy 127.0.0.1:1 of HTTPS_PROXY: connect ECONNREFUSED 127.0.0.1:1. Check HTTPS_PROXY, or add api.example to NO_PROXY.",
    );
  });

  test("a proxy that accepts connections but never responds times out", { timeout: 20_000 }, async () => {
    const proxy = await talker("", { stays: true });
    const transport = transportTo("https://api.example", undefined, { env: { HTTPS_PROXY: proxy } });
    const pending = transport.send({ method: "GET", path: "/v1/x" });
    await expect(pending).rejects.toThrow(/^https:\/\/api\.example did not respond through the proxy/);
  });

  test("a proxy may use TLS itself", async () => {
    const authorities = getCACertificates();
    onTestFinished(() => setDefaultCACertificates(authorities));
    const own = certificatePair("proxy");
    setDefaultCACertificates([...authorities, own.cert]);
    const proxy = await startConnectProxy({ tls: own });
    const api = await startFakeHttpServer(() => done(1), pair);
    const env = { HTTPS_PROXY: proxy.url.replace("127.0.0.1", "localhost") };
    const transport = transportTo(fromAfar(api), pair.cert, { env });
    expect(await transport.send({ method: "GET", path: "/v1/x" })).toMatchObject({ status: 200 });
    expect(proxy.tunnels).toHaveLength(1);
  });

  test.each(["ftp://proxy", "http://", "my proxy", "socks5://proxy", "http://me:50%@proxy"])(
    "an invalid address in HTTPS_PROXY is rejected, unless the API is called without a proxy: %j",
    (HTTPS_PROXY) => {
      expect(() => transportTo("https://api", undefined, { env: { HTTPS_PROXY } })).toThrow(
        /^HTTPS_PROXY is not a valid proxy URL: it must be an http:/,
      );
      transportTo("https://127.0.0.1", undefined, { env: { HTTPS_PROXY } });
      transportTo("http://api", undefined, { env: { HTTPS_PROXY } });
    },
  );
});

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
