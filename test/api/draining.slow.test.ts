import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { TcpProxy } from "@pipe-scaling/local-cluster/tcp-proxy";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { expect, onTestFinished, test } from "vitest";
import { setUpEnvironment } from "./fixtures.ts";
import { spawnApi } from "./spawned-api.ts";

const environment = setUpEnvironment("draining");

function portOf(server: Server): number {
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("no port");
  return address.port;
}

test("SIGTERM ends the process within the 30 s grace period of a Pod, even if calls hang", async () => {
  const { path, admin } = await environment.addTenant();
  const { authorization } = admin;
  const cluster = await TcpProxy.listen(Number(new URL(environment.cluster.server).port));
  const collector = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => {
    cluster.close();
    collector.close();
  });
  await once(collector, "listening");
  const exported = once(collector, "connection");
  const kubeconfig = `${environment.kubeconfig}.proxied`;
  const direct = readFileSync(environment.kubeconfig, "utf8");
  writeFileSync(kubeconfig, direct.replace(environment.cluster.server, `https://127.0.0.1:${cluster.port}`), {
    mode: 0o600,
  });
  // The chart sets these flags, too.
  const flags = ["--otlp-endpoint", `http://127.0.0.1:${portOf(collector)}`, "--drain-delay", "5s"];
  const { process, log, url, send, stop } = await spawnApi(
    { records: environment.records, kubeconfig },
    { flags },
  );
  onTestFinished(stop);

  // The collector receives the span of this request but does not respond.
  const headers = { "Content-Type": "application/json" };
  const body = '{"replicaCpuMillicores":3000}';
  expect((await send({ method: "PATCH", path, authorization, headers, body })).status).toBe(200);
  await exported;
  // The rest of this body never arrives.
  const { hostname, port } = new URL(url);
  const endless = connect(Number(port), hostname);
  endless.on("error", () => undefined);
  endless.write(
    `PATCH ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n`,
  );
  expect(String(await once(endless, "data"))).toContain("100 Continue");
  // The last key-usage write gets no response.
  cluster.freeze();

  process.kill("SIGTERM");
  await waitFor(() => process.exitCode !== null, { what: "the process to end", timeoutMs: 28_500 });
  expect(process.exitCode).toBe(0);
  expect(log()).toContainEqual(
    expect.objectContaining({ level: "warn", msg: "key usage could not be recorded" }),
  );
  expect(log().at(-1)).toMatchObject({ msg: "stopped" });
});
