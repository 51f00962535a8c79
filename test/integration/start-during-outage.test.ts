import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { serviceAccountKubeconfig } from "@pipe-scaling/local-cluster/service-account";
import { TcpProxy } from "@pipe-scaling/local-cluster/tcp-proxy";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { expect, it, onTestFinished } from "vitest";
import { temporaryFolder } from "../support/fixtures/kubeconfig.ts";
import { accountName } from "../support/fixtures/shipped-account.ts";
import { resourcesOf, TestEnvironment } from "../support/test-environment.ts";

/** Nothing listens on this port. */
const NOWHERE = 1;

it("a controller that starts while the API server is away keeps running, and works when the API server responds", async () => {
  const environment = await TestEnvironment.create();
  onTestFinished(() => environment.end());
  await environment.createPipe({ name: "pipe", cores: 2 });
  const { cluster, records, log } = environment;
  const proxy = await TcpProxy.listen(NOWHERE);
  onTestFinished(() => proxy.close());
  const direct = await serviceAccountKubeconfig(cluster, records, accountName("controller"));
  const kubeconfig = join(temporaryFolder(), "kubeconfig");
  const text = readFileSync(direct, "utf8").replace(cluster.server, `https://127.0.0.1:${proxy.port}`);
  writeFileSync(kubeconfig, text, { mode: 0o600 });
  await environment.startController({ kubeconfig });

  const retries = () => log.filter(({ msg }) => msg === "the API server does not respond; trying again");
  await waitFor(() => retries().length >= 2, { what: "the controller to try again" });
  const { opsUrl } = log.find(({ msg }) => msg === "listening") ?? {};
  expect((await fetch(`${opsUrl}/healthz`)).status).toBe(200);
  const notReady = await fetch(`${opsUrl}/readyz`);
  expect(notReady.status).toBe(503);
  expect(await notReady.text()).toContain("the API server has not responded yet");

  proxy.target = Number(new URL(cluster.server).port);
  await environment.waitForCondition("Ready", "True");
  expect(resourcesOf(await environment.pipe("pipe"))).toBe("2 8Gi 8Gi");
  expect((await fetch(`${opsUrl}/readyz`)).status).toBe(200);
});
