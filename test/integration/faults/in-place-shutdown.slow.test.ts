import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { expect } from "vitest";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../../src/controller/names.ts";
import type { KubeObject } from "../../../src/kube/objects.ts";
import { collectionPath, PODS } from "../../../src/kube/paths.ts";
import { resourcesOf, type TestEnvironment } from "../../support/test-environment.ts";
import { restrictController } from "../in-place-account.ts";
import { ControllerProcess, controllerKubeconfig } from "./controller-process.ts";
import { FaultyProxy, type ProxiedRequest } from "./faulty-proxy.ts";
import { it as base } from "./fixtures.ts";

const it = base
  .extend("proxy", async ({ cluster }, { onCleanup }) => {
    const proxy = await FaultyProxy.start(cluster);
    onCleanup(() => proxy.stop());
    return proxy;
  })
  /** A process that resizes in place. It ends before the proxy. */
  .extend("controller", async ({ environment, proxy }, { onCleanup }) => {
    await restrictController(environment);
    const kubeconfig = proxy.kubeconfig(await controllerKubeconfig(environment));
    const controller = new ControllerProcess(environment, kubeconfig, "ending", {
      resizeStrategy: "InPlaceOrRollout",
    });
    onCleanup(() => controller.kill());
    return controller;
  });

const isWriteToReplicaSet = ({ verb, resource }: ProxiedRequest) =>
  verb === "patch" && resource === "replicasets";

it.for([
  ["write to the ReplicaSet", isWriteToReplicaSet],
  ["resumption", resumption()],
] as const)(
  "a controller that gets SIGTERM before the %s finishes that commit, and begins nothing else",
  async ([, isStep], { environment, invariants, proxy, controller }) => {
    invariants.accept(1);
    const podLabels = { [SERVICE_LABEL]: environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
    for (const name of ["pipe-a", "pipe-b"])
      await environment.createPipe({ name, cores: 1, replicas: 2, podLabels });
    await invariants.settled(1, { quietMs: 0 });
    const before = await podsOf(environment);

    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let held = 0;
    proxy.handle = (request) => {
      if (!isStep(request)) return undefined;
      held += 1;
      return { type: "pass", after: released };
    };
    invariants.accept(4);
    await environment.requestSize(4);
    await waitFor(() => held > 0, { what: "the commit to be held", intervalMs: 10 });
    controller.signal("SIGTERM");
    await controller.waitForLog('"stopping"');
    invariants.accept(6);
    await environment.requestSize(6);
    release();
    expect(await controller.ended).toBe(0);
    await invariants.nonePaused({ timeoutMs: 1 });
    expect(await podsOf(environment)).toEqual(before);
    const sizes = await Promise.all(
      ["pipe-a", "pipe-b"].map(async (name) => resourcesOf(await environment.pipe(name))),
    );
    // The template of the other pipe may not have followed its pods yet.
    expect(sizes).toContain("4 16Gi 16Gi");
    expect(sizes).not.toContain("6 24Gi 24Gi");

    proxy.handle = () => undefined;
    await environment.startController({ resizeStrategy: "InPlaceOrRollout" });
    await invariants.settled(6, { quietMs: 0 });
    expect(await podsOf(environment)).toEqual(before);
    await invariants.end();
  },
);

/** The second write to each Deployment; dry runs and records do not count. */
function resumption(): (request: ProxiedRequest) => boolean {
  const paused = new Set<string>();
  return ({ verb, resource, url }) => {
    if (verb !== "patch" || resource !== "deployments" || url.includes("dryRun=All")) return false;
    const [path = ""] = url.split("?");
    const isPaused = paused.has(path);
    paused.add(path);
    return isPaused;
  };
}

async function podsOf({ client, pipes }: TestEnvironment): Promise<readonly string[]> {
  const path = collectionPath(PODS, pipes);
  const { items } = await client.json<{ readonly items: readonly KubeObject[] }>({ path });
  return items.map(({ metadata }) => metadata.uid).toSorted();
}
