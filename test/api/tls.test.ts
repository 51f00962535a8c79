import { once } from "node:events";
import { connect, type TLSSocket } from "node:tls";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { expect, onTestFinished, test } from "vitest";
import { mountedPair } from "../support/fixtures/mounted-pair.ts";
import { setUpEnvironment } from "./fixtures.ts";

const environment = setUpEnvironment("tls");

/** Opens a connection that trusts only this certificate. */
async function open(url: string, ca: string): Promise<TLSSocket> {
  const { port, hostname } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, ca });
  onTestFinished(() => {
    socket.destroy();
  });
  socket.on("error", () => undefined);
  await once(socket, "secureConnect");
  return socket;
}

test("a running API serves a renewed certificate without closing connections", async () => {
  const pair = mountedPair();
  const first = certificatePair("first");
  pair.mount(first);
  const api = await environment.startApi({ tlsCert: pair.cert, tlsKey: pair.key });
  const old = await open(api.url, first.cert);
  const send = async () => {
    old.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    return String(await once(old, "data"));
  };
  // The server closes connections without requests after a short timeout.
  expect(await send()).toContain("404");

  const second = certificatePair("second");
  pair.mount(second);
  await waitFor(() => open(api.url, second.cert), { what: "the API to serve the new certificate" });

  await expect(open(api.url, first.cert)).rejects.toThrow("self-signed");
  expect(await send()).toContain("404");
  await api.stop();
});
