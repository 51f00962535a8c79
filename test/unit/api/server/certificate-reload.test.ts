import { once } from "node:events";
import { createServer } from "node:https";
import { connect, type TLSSocket } from "node:tls";
import { type CertificatePair, certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { expect, onTestFinished, test } from "vitest";
import { reloadCertificate } from "../../../../src/api/server/certificate-reload.ts";
import { readTlsFiles } from "../../../../src/settings/tls-files.ts";
import { createLogger } from "../../../../src/telemetry/log.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { mountedPair } from "../../../support/fixtures/mounted-pair.ts";

/** Longer than the interval at which the files are checked. */
const A_WHILE_MS = 10_000;

async function start() {
  const secret = mountedPair();
  const first = certificatePair("first");
  secret.mount(first);
  const settings = { host: "0.0.0.0", plainHttp: false, tlsCert: secret.cert, tlsKey: secret.key };
  const read = () => {
    const files = readTlsFiles(settings);
    if (!files) throw new Error("there are files");
    return files;
  };
  const served = read();
  const server = createServer({ ...served }, (_request, response) => response.end("hello"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;

  const lines: Record<string, unknown>[] = [];
  const log = createLogger("info", "api", { write: (line) => lines.push(JSON.parse(line)) });
  const clock = new FakeClock();
  const ending = new AbortController();
  const install = server.setSecureContext.bind(server);
  const following = reloadCertificate({ served, read, install, clock, log }, ending.signal);
  onTestFinished(async () => {
    ending.abort();
    await following;
    server.closeAllConnections();
    server.close();
  });
  /** Opens a connection that trusts only this certificate. */
  const open = (ca: string) => {
    const socket = connect({ port, host: "127.0.0.1", ca });
    onTestFinished(() => {
      socket.destroy();
    });
    return socket;
  };
  return { secret, first, clock, lines, open };
}

async function nameServed(socket: TLSSocket): Promise<string> {
  await once(socket, "secureConnect");
  return String(socket.getPeerCertificate().subject.CN);
}

test("a new certificate applies to new connections, and existing ones stay open", async () => {
  const { secret, first, clock, lines, open } = await start();
  const old = open(first.cert);
  expect(await nameServed(old)).toBe("first");

  const second = certificatePair("second");
  secret.mount(second);
  await clock.advance(A_WHILE_MS);

  expect(await nameServed(open(second.cert))).toBe("second");
  old.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const [response] = await once(old, "data");
  expect(String(response)).toContain("200 OK");
  expect(lines).toMatchObject([{ level: "info", msg: "serving a new certificate" }]);
});

test.each([
  [
    "is only partially written",
    ({ cert, key }: CertificatePair) => ({ cert, key: key.slice(0, key.length / 2) }),
  ],
  ["is empty", () => ({ cert: "", key: "" })],
  [
    "has the key of another certificate",
    ({ cert }: CertificatePair) => ({ cert, key: certificatePair("other").key }),
  ],
])(
  "a new certificate pair that %s is logged once and retried, and the old pair stays in use",
  async (_what, spoil) => {
    const { secret, first, clock, lines, open } = await start();
    const second = certificatePair("second");

    secret.mount(spoil(second));
    await clock.advance(A_WHILE_MS);
    await clock.advance(A_WHILE_MS);
    expect(await nameServed(open(first.cert))).toBe("first");
    expect(lines).toMatchObject([{ level: "warn", err: { message: expect.stringContaining("TLS") } }]);
    expect(JSON.stringify(lines)).not.toContain("PRIVATE KEY");

    secret.mount(second);
    await clock.advance(A_WHILE_MS);
    expect(await nameServed(open(second.cert))).toBe("second");
  },
);

test("unchanged files are not reloaded", async () => {
  const { secret, first, clock, lines } = await start();
  secret.mount(first);
  await clock.advance(A_WHILE_MS);
  expect(lines).toEqual([]);
});
