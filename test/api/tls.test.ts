import { once } from "node:events";
import { connect, type TLSSocket } from "node:tls";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { certificatePair } from "../support/fixtures/certificate.ts";
import { mountedPair } from "../support/fixtures/mounted-pair.ts";
import { createWorld, type World } from "./world.ts";

let world: World;

beforeAll(async () => {
  world = await createWorld("tls");
});

afterAll(async () => {
  await world?.remove();
});

/** A connection that trusts just this certificate. */
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

test("a running API serves the certificate that is mounted now, and no connection is lost for it", async () => {
  const pair = mountedPair();
  const first = certificatePair("first");
  pair.mount(first);
  const api = await world.startApi({ tlsCert: pair.cert, tlsKey: pair.key });
  const old = await open(api.url, first.cert);
  const ask = async () => {
    old.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    return String(await once(old, "data"));
  };
  // One that has never asked anything is soon closed.
  expect(await ask()).toContain("404");

  const second = certificatePair("second");
  pair.mount(second);
  await waitFor(() => open(api.url, second.cert), { what: "the new certificate to be served" });

  await expect(open(api.url, first.cert)).rejects.toThrow("self-signed");
  expect(await ask()).toContain("404");
  await api.stop();
});
