import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TestEnvironment } from "../../support/test-environment.ts";
import { restrictController } from "../in-place-account.ts";
import { COMMIT_WRITES, committed, commitWrites, expectQuiet } from "../stateful-commit.ts";
import { Loaders } from "../stateful-loader.ts";
import { controllerKubeconfig, RestartingController } from "./controller-process.ts";
import { FaultyProxy } from "./faulty-proxy.ts";

let environment: TestEnvironment;
let loaders: Loaders;
let proxy: FaultyProxy;
let controller: RestartingController | undefined;
beforeEach(async () => {
  environment = await TestEnvironment.create();
  await restrictController(environment);
  loaders = new Loaders(environment);
  proxy = await FaultyProxy.start(environment.cluster);
});
afterEach(async () => {
  await controller?.end();
  await environment.end();
  await proxy.stop();
});

async function start(): Promise<RestartingController> {
  const kubeconfig = proxy.kubeconfig(await controllerKubeconfig(environment));
  return new RestartingController(environment, kubeconfig, () => ({ resizeStrategy: "InPlaceOrRollout" }));
}

describe.each([
  ["before", "drop"],
  ["after", "lose-response"],
] as const)("a controller that is killed %s a write of the commit of a StatefulSet", (_, type) => {
  it.each(COMMIT_WRITES)("is followed by one that goes on, and no pod is replaced: %s", async (write) => {
    await loaders.create({ updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } } });
    const running = await start();
    controller = running;
    await loaders.ready();
    const uids = await loaders.uids();
    const writeOf = commitWrites();
    let isKilled = false;
    proxy.handle = (request) => {
      if (isKilled || writeOf(request) !== write) return undefined;
      isKilled = true;
      running.current.signal("SIGKILL");
      return { type };
    };
    await environment.requestSize(4);
    await committed(loaders, 4, 1);
    await environment.waitForCondition("Ready", "True");
    expect(isKilled).toBe(true);
    expect(running.starts).toBe(2);
    expect(await loaders.uids()).toEqual(uids);
    await expectQuiet(loaders);
  });
});

it("a controller that is killed at each pod of the commit of a StatefulSet is followed by one that goes on", async () => {
  await loaders.create({ replicas: 4 });
  const running = await start();
  controller = running;
  await loaders.ready();
  const uids = await loaders.uids();
  const killed = new Set<string>();
  proxy.handle = ({ verb, resource, url }) => {
    const path = url.split("?")[0] ?? "";
    if (verb !== "patch" || resource !== "pods" || url.includes("dryRun") || killed.has(path))
      return undefined;
    killed.add(path);
    running.current.signal("SIGKILL");
    return { type: "lose-response" };
  };
  await environment.requestSize(4);
  await committed(loaders, 4);
  expect(killed.size).toBe(4);
  expect(await loaders.uids()).toEqual(uids);
  await expectQuiet(loaders);
});
