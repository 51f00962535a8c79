import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { START_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { expect } from "vitest";
import { Audit } from "./audit.ts";
import { ControllerProcess, controllerKubeconfig } from "./controller-process.ts";
import { FaultyProxy } from "./faulty-proxy.ts";
import { it as base } from "./fixtures.ts";

/** Longer than the lease duration. */
const TAKEOVER_MS = 60_000;

/** A cluster of its own, whose API server writes an audit log. */
const it = base
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from this pattern
  .extend("folder", { scope: "file" }, ({}, { onCleanup }) => {
    const folder = mkdtempSync(join(tmpdir(), "audit-"));
    onCleanup(() => rmSync(folder, { recursive: true, force: true }));
    return folder;
  })
  .extend("audit", { scope: "file" }, ({ folder }) => new Audit(folder))
  .override("clusterOptions", { scope: "file" }, ({ audit }) => ({ apiServerArgs: audit.apiServerArgs }))
  /** Starts a controller with its own token. */
  .extend("start", ({ environment, folder, audit }) => async (identity: string) => {
    const kubeconfig = join(folder, `${identity}.kubeconfig`);
    copyFileSync(await controllerKubeconfig(environment), kubeconfig);
    return {
      process: new ControllerProcess(environment, kubeconfig, identity),
      writes: () => audit.writesOf(kubeconfig),
    };
  });

it("a leader that is stopped for longer than its lease writes nothing when it is resumed", {
  timeout: 240_000,
}, async ({ environment, invariants, requestSize, start }) => {
  const first = await start("first");
  invariants.accept(1);
  for (const name of ["pipe-a", "pipe-b", "pipe-c"])
    await environment.createPipe({ name, cores: 1, podAnnotations: { [START_AFTER_ANNOTATION]: "2s" } });
  await environment.waitForCondition("Ready", "True");
  const second = await start("second");
  await second.process.waitForLog('"listening"');

  await requestSize(4);
  await environment.waitForCondition("Reconciling", "True");
  first.process.signal("SIGSTOP");
  await requestSize(2);
  await second.process.waitForLog('"leading"', TAKEOVER_MS);
  await invariants.settled(2, { quietMs: 1000 });

  // The calls that it had started are in the log now, and a stopped process cannot start others.
  const before = first.writes();
  expect(before).toContain(`patch pipescalings ${environment.serviceId}`);
  // Meanwhile, the requested size and the sizes of the pipes have changed.
  first.process.signal("SIGCONT");
  expect(await first.process.ended).toBe(1);
  await first.process.waitForLog("the lease was lost");
  expect(first.writes()).toEqual(before);

  await requestSize(3);
  await invariants.settled(3, { quietMs: 1000 });
  await second.process.kill();
  await invariants.end();
});

it("a leader that is killed is replaced after its lease has expired", { timeout: 240_000 }, async ({
  environment,
  invariants,
  requestSize,
  start,
}) => {
  const first = await start("first");
  invariants.accept(1);
  for (const name of ["pipe-a", "pipe-b", "pipe-c"])
    await environment.createPipe({ name, cores: 1, podAnnotations: { [START_AFTER_ANNOTATION]: "2s" } });
  await environment.waitForCondition("Ready", "True");
  const second = await start("second");
  await requestSize(4);
  await environment.waitForCondition("Reconciling", "True");
  await first.process.kill();
  await second.process.waitForLog('"leading"', TAKEOVER_MS);
  await invariants.settled(4, { quietMs: 1000 });
  await second.process.kill();
  await invariants.end();
});

it("a leader that is killed is replaced although one read of the Lease in six fails", {
  timeout: 240_000,
}, async ({ cluster, environment, invariants, start }) => {
  const proxy = await FaultyProxy.start(cluster);
  const first = await start("first");
  invariants.accept(1);
  await environment.createPipe({ name: "pipe-a", cores: 1 });
  await environment.waitForCondition("Ready", "True");
  let reads = 0;
  proxy.handle = ({ verb, resource }) => {
    if (verb !== "get" || resource !== "leases") return undefined;
    reads += 1;
    return reads % 6 === 0 ? { type: "drop" } : undefined;
  };
  const kubeconfig = proxy.kubeconfig(await controllerKubeconfig(environment));
  const second = new ControllerProcess(environment, kubeconfig, "second");
  await second.waitForLog('"listening"');
  await first.process.kill();
  await second.waitForLog('"leading"', TAKEOVER_MS);
  await second.kill();
  await proxy.stop();
  await invariants.end();
});
