import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { openRaw, parseRaw } from "./client.ts";
import { clientOfText } from "./environment.ts";
import { setUpEnvironment } from "./fixtures.ts";
import { spawnApi } from "./spawned-api.ts";

const environment = setUpEnvironment("draining");

test("SIGTERM completes the request in progress, closes all other connections, and ends the process with exit code 0", async () => {
  const { path, admin, serviceId } = await environment.addTenant();
  const { authorization } = admin;
  const { process, log, url, opsUrl, send, stop } = await spawnApi(environment);
  onTestFinished(stop);
  const unused = await openRaw(url);
  const idle = await openRaw(url);
  idle.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await idle.received("404");
  const busy = await openRaw(url);
  const body = '{"replicaCpuMillicores":4000}';
  busy.write(
    `PATCH ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`,
  );
  await busy.received("100 Continue");
  busy.write(body.slice(0, 5));

  process.kill("SIGTERM");
  await Promise.all([idle.closed, unused.closed]);
  expect(await clientOfText(opsUrl)("/readyz")).toEqual({ status: 503, text: "draining\n" });
  await expect(send({ path: "/" })).rejects.toMatchObject({ code: "ECONNREFUSED" });
  busy.write(body.slice(5));
  await busy.closed;
  await once(process, "close");

  const response = parseRaw(busy.text().replace("HTTP/1.1 100 Continue\r\n\r\n", ""));
  expect(response).toMatchObject({ status: 200, headers: { connection: "close" } });
  expect((await environment.scaling(serviceId)).spec).toMatchObject({ replicaCpuMillicores: 4000 });
  expect(process.exitCode).toBe(0);
  expect(log().map(({ msg }) => msg)).toEqual(expect.arrayContaining(["stopping", "draining"]));
  expect(log().at(-1)).toMatchObject({ msg: "stopped" });
});

test("a connection may be idle for as long as the setting says", async () => {
  const api = await environment.startReadyApi({ keepAliveMs: 620_000 });
  const headers = { Connection: "keep-alive" };
  expect(await api.send({ path: "/", headers })).toMatchObject({
    headers: { "keep-alive": "timeout=620" },
  });
  await api.stop();
});

test("during the drain delay, the process accepts connections and reports that it is not ready", async () => {
  const { path, admin } = await environment.addTenant();
  const { authorization } = admin;
  const api = await environment.startReadyApi({ drainDelayMs: 10_000 });

  const stopped = api.stop();
  expect((await clientOfText(api.opsUrl)("/readyz")).status).toBe(503);
  const keepAlive = { Connection: "keep-alive" };
  const response = await api.send({ path, authorization, headers: keepAlive });
  expect(response).toMatchObject({ status: 200, headers: { connection: "close" } });
  await stopped;
  await expect(api.send({ path })).rejects.toMatchObject({ code: "ECONNREFUSED" });
});
