import { RESIZE_OUTCOME_ANNOTATION } from "@pipe-scaling/local-cluster/resize-stages";
import { serviceAccountKubeconfig } from "@pipe-scaling/local-cluster/service-account";
import { NEVER_READY_LABEL } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objectPath, PODS, STATEFUL_SETS } from "../../../src/kube/paths.ts";
import { Rights } from "../../chart/rights.ts";
import { accountName } from "../../support/fixtures/shipped-account.ts";
import { TestEnvironment } from "../../support/test-environment.ts";
import { restrictController } from "../in-place-account.ts";
import { committed, commitWrites, expectQuiet, isHeld } from "../stateful-commit.ts";
import { Loaders } from "../stateful-loader.ts";
import { FaultyProxy, type Handling, type ProxiedRequest } from "./faulty-proxy.ts";

/*
 * Changes of a StatefulSet while its pods are held for a commit. A proxy delays the labels of the pods until a test releases
 * them.
 */

let environment: TestEnvironment;
let loaders: Loaders;
let proxy: FaultyProxy;
let release: () => void;
let uids: readonly string[];

beforeEach(async () => {
  environment = await TestEnvironment.create();
  await restrictController(environment);
  loaders = new Loaders(environment);
  proxy = await FaultyProxy.start(environment.cluster);
});
afterEach(async () => {
  release?.();
  await environment.end();
  await proxy.stop();
});

/** Resolves when the pods of one core run. */
async function started(
  options: Parameters<Loaders["create"]>[0] = {},
  timeouts: { readonly commitMs?: number } = {},
): Promise<void> {
  await loaders.create(options);
  const { cluster, records } = environment;
  const kubeconfig = await serviceAccountKubeconfig(cluster, records, accountName("controller"));
  await environment.startController(
    { kubeconfig: proxy.kubeconfig(kubeconfig), resizeStrategy: "InPlaceOrRollout" },
    { timeouts },
  );
  await loaders.ready();
  uids = await loaders.uids();
}

/**
 * Resolves when the pods have four cores and are held, and the controller has to wait.
 *
 * @param prepare changes the StatefulSet before the resize
 */
async function held(
  options: Parameters<typeof started>[0] = {},
  timeouts: Parameters<typeof started>[1] = {},
  prepare: () => Promise<unknown> = () => Promise.resolve(),
): Promise<void> {
  await started(options, timeouts);
  await prepare();
  const { promise, resolve } = Promise.withResolvers<void>();
  release = resolve;
  const writeOf = commitWrites();
  proxy.handle = (request): Handling | undefined =>
    writeOf(request) === "label" ? { type: "pass", after: promise } : undefined;
  await environment.requestSize(4);
  await waitFor(async () => proxy.requests.some((each) => writeOf(each) === "label"), {
    what: "a label to be written",
  });
  expect(isHeld(await loaders.read())).toBe(true);
  expect(await loaders.sizes()).toEqual(["4", "4", "4"]);
}

async function remove(pod: string): Promise<void> {
  await environment.client.json({ method: "DELETE", path: objectPath(PODS, environment.pipes, pod) });
}

describe("while the pods of a StatefulSet are held", () => {
  it.each([1, 5])("it can be scaled to %i pods, and no other pod is replaced", async (replicas) => {
    await held();
    await loaders.patch({ replicas });
    await waitFor(async () => (await loaders.pods()).length === replicas, { what: `${replicas} pods` });
    release();
    await committed(loaders, 4);
    await environment.waitForCondition("Ready", "True");
    const left = Math.min(3, replicas);
    expect((await loaders.uids()).slice(0, left)).toEqual(uids.slice(0, left));
    await expectQuiet(loaders);
  });

  it("a pod can be deleted, and the new one gets the size, and no other pod is replaced", async () => {
    await held();
    await remove("loader-1");
    await waitFor(
      async () => {
        const now = await loaders.uids();
        return now.length === 3 && now[1] !== uids[1];
      },
      { what: "another pod" },
    );
    release();
    await committed(loaders, 4);
    await environment.waitForCondition("Ready", "True");
    const after = await loaders.uids();
    expect([after[0], after[2]]).toEqual([uids[0], uids[2]]);
    await expectQuiet(loaders);
  });

  it("a pod can be deleted, and a new one that its node cannot resize is replaced alone", async () => {
    await held();
    await remove("loader-1");
    const created = await waitFor(
      async () => {
        const [, pod, last] = await loaders.pods();
        const isRunning = last !== undefined && pod?.status?.containerStatuses?.[0]?.resources !== undefined;
        return isRunning && pod.metadata.uid !== uids[1] && pod.metadata.uid;
      },
      { what: "another pod to run" },
    );
    await loaders.patchPod("loader-1", { annotations: { [RESIZE_OUTCOME_ANNOTATION]: "Infeasible" } });
    release();
    await waitFor(async () => !(await loaders.uids()).includes(created), { what: "the pod to be replaced" });
    await committed(loaders, 4);
    await environment.waitForCondition("Ready", "True");
    const after = await loaders.uids();
    expect([after[0], after[2]]).toEqual([uids[0], uids[2]]);
    await expectQuiet(loaders);
  });

  it("another size can be requested, and follows in place", async () => {
    await held();
    await environment.requestSize(2);
    release();
    await committed(loaders, 2);
    await environment.waitForCondition("Ready", "True");
    expect(await loaders.uids()).toEqual(uids);
  });

  it("the first size can be requested again, and follows in place", async () => {
    await held();
    await environment.requestSize(1);
    release();
    await committed(loaders, 1);
    await environment.waitForCondition("Ready", "True");
    expect(await loaders.uids()).toEqual(uids);
  });

  it("its owner can change the image, and each pod is replaced once, with the size", async () => {
    await held();
    const containers = [{ name: "pipe", image: "registry.example/pipe:2" }];
    await loaders.patch({ template: { spec: { containers } } });
    release();
    await waitFor(async () => (await loaders.uids()).every((uid) => !uids.includes(uid)), {
      what: "other pods",
    });
    await committed(loaders, 4);
    await environment.waitForCondition("Ready", "True");
    for (const { spec } of await loaders.pods()) expect(JSON.stringify(spec)).toContain("pipe:2");
    await expectQuiet(loaders);
  });

  it("its owner can take the size back, and no pod is replaced", async () => {
    await held();
    const amounts = { cpu: "1", memory: "4Gi" };
    const containers = [{ name: "pipe", resources: { requests: amounts, limits: { memory: "4Gi" } } }];
    await loaders.patch({ template: { spec: { containers } } });
    release();
    await committed(loaders, 4);
    await environment.waitForCondition("Ready", "True");
    expect(await loaders.uids()).toEqual(uids);
  });

  it("its owner can set another partition, which holds", async () => {
    await held();
    await loaders.patch({ updateStrategy: { rollingUpdate: { partition: 3 } } });
    release();
    await committed(loaders, 4, 3);
    await environment.waitForCondition("Ready", "True");
    expect(await loaders.uids()).toEqual(uids);
  });

  it("its owner can choose the strategy OnDelete, and no pod is replaced", async () => {
    await held();
    await loaders.patch({ updateStrategy: { type: "OnDelete", rollingUpdate: null } });
    release();
    await committed(loaders, 4, null);
    await environment.waitForCondition("Ready", "True");
    expect(await loaders.uids()).toEqual(uids);
  });

  it("a pod can become not ready, and is not replaced", async () => {
    await held();
    await loaders.patchPod("loader-0", { labels: { [NEVER_READY_LABEL]: "true" } });
    release();
    await waitFor(async () => !isHeld(await loaders.read()), { what: "the pods to be released" });
    await expectQuiet(loaders);
    expect(await loaders.uids()).toEqual(uids);
  });

  it("somebody can remove all managed fields, and it is released", async () => {
    await held();
    await loaders.patchObject({ metadata: { managedFields: [{}] } });
    release();
    await waitFor(async () => !isHeld(await loaders.read()), { what: "the pods to be released" });
    await environment.waitForCondition("Ready", "True");
    expect(await loaders.uids()).toEqual(uids);
  });

  it("its owner can apply it although somebody removed all managed fields before, and it is released", async () => {
    await held({}, {}, () => loaders.patchObject({ metadata: { managedFields: [{}] } }));
    const metadata = { name: "loader", labels: { team: "a" } };
    await environment.client.json({
      method: "PATCH",
      path: objectPath(STATEFUL_SETS, environment.pipes, "loader"),
      query: { fieldManager: "owner", force: true },
      patchType: "application/apply-patch+yaml",
      body: { apiVersion: "apps/v1", kind: "StatefulSet", metadata },
    });
    release();
    await waitFor(async () => !isHeld(await loaders.read()), { what: "the pods to be released" });
    await environment.waitForCondition("Ready", "True");
    expect(await loaders.uids()).toEqual(uids);
  });

  it("it can be deleted, and the controller goes on", async () => {
    await held();
    await environment.client.json({
      method: "DELETE",
      path: objectPath(STATEFUL_SETS, environment.pipes, "loader"),
    });
    release();
    await waitFor(async () => (await environment.scaling()).status?.replicas === 0, { what: "no pods" });
    await loaders.create({ name: "second" });
    await waitFor(async () => (await loaders.sizes("second")).join() === "4,4,4", {
      what: "the pods of another StatefulSet to have the size",
    });
  });
});

describe("if the labels of pods are refused", () => {
  const DENIED: Handling = {
    type: "respond",
    status: 422,
    body: JSON.stringify({
      kind: "Status",
      status: "Failure",
      code: 422,
      reason: "Invalid",
      message: "no labels",
    }),
  };

  it("before a pod has one, nothing is replaced in place, and a rollout follows with the reason", async () => {
    await held({}, { commitMs: 3000 });
    const writeOf = commitWrites();
    proxy.handle = (request) => (writeOf(request) === "label" ? DENIED : undefined);
    release();
    const { status } = await environment.waitForCondition("Ready", "True");
    await committed(loaders, 4);
    expect(status?.pipes?.fallbacks ?? []).toMatchObject([{ pipe: "statefulset/loader", reason: "Refused" }]);
  });

  it("after a pod got one, only the others are replaced", async () => {
    await held();
    const writeOf = commitWrites();
    proxy.handle = (request) =>
      writeOf(request) === "label" && !request.url.includes("/loader-0") ? DENIED : undefined;
    release();
    await committed(loaders, 4);
    await environment.waitForCondition("Ready", "True");
    const after = await loaders.uids();
    expect(after.map((uid, at) => uid === uids[at])).toEqual([true, false, false]);
    await expectQuiet(loaders);
  });
});

it("without the permission to list pods, they do not stay held, and a rollout follows with the reason", async () => {
  await started();
  const rights = await Rights.of("controller", environment);
  environment.onEnd(() => rights.close());
  const { promise, resolve } = Promise.withResolvers<void>();
  release = resolve;
  const writeOf = commitWrites();
  let lists = 0;
  proxy.handle = (request): Handling | undefined => {
    if (writeOf(request) === "hold") proxy.handle = (next) => (isList(next) ? delayed() : undefined);
    return undefined;
  };
  const isList = ({ verb, resource, url }: ProxiedRequest) =>
    verb === "list" && resource === "pods" && url.includes("app%3Dloader");
  const delayed = (): Handling => {
    lists += 1;
    return { type: "pass", after: promise };
  };
  await environment.requestSize(4);
  await waitFor(async () => lists > 0, { what: "the pods to be listed" });
  await waitFor(async () => isHeld(await loaders.read()), { what: "the pods to be held" });
  await rights.without("list pods", async () => {
    release();
    await waitFor(async () => !isHeld(await loaders.read()), { what: "the pods to be released" });
    const { status } = await environment.waitForCondition("Ready", "True");
    expect(status?.pipes?.fallbacks ?? []).toMatchObject([
      { pipe: "statefulset/loader", reason: "Forbidden" },
    ]);
  });
  await committed(loaders, 4);
});
