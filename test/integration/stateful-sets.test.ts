import { NEVER_READY_LABEL, START_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LAST_ROLLOUT_ANNOTATION } from "../../src/controller/names.ts";
import type { KubeObject, Pod, StatefulSet } from "../../src/kube/objects.ts";
import { collectionPath, EVENTS, objectPath, PODS, STATEFUL_SETS } from "../../src/kube/paths.ts";
import { applyAll } from "../support/apply.ts";
import { pipeStatefulSet, type StatefulSetOptions } from "../support/fixtures/pipe.ts";
import { accountName } from "../support/fixtures/shipped-account.ts";
import { conditionOf, TestEnvironment } from "../support/test-environment.ts";

type Options = Omit<StatefulSetOptions, "namespace" | "serviceId"> & { readonly serviceId?: string };

const SLOW = { podAnnotations: { [START_AFTER_ANNOTATION]: "1s" } };

let environment: TestEnvironment;
beforeEach(async () => {
  environment = await TestEnvironment.create();
  await applyAll(environment.client, permissions(environment));
});
afterEach(() => environment.end());

const STATEFUL_SET_RULE = {
  ...{ apiGroups: ["apps"], resources: ["statefulsets"], verbs: ["get", "list", "watch", "patch"] },
};
const POD_RULE = { apiGroups: [""], resources: ["pods"], verbs: ["delete"] };

/** For StatefulSets and their stuck pods. */
function permissions({ records, pipes }: TestEnvironment): object[] {
  const metadata = { name: "stateful-sets", namespace: pipes };
  const group = "rbac.authorization.k8s.io";
  const subjects = [{ kind: "ServiceAccount", name: accountName("controller"), namespace: records }];
  const rules = [STATEFUL_SET_RULE, POD_RULE];
  const roleRef = { apiGroup: group, kind: "Role", name: metadata.name };
  return [
    { apiVersion: `${group}/v1`, kind: "Role", metadata, rules },
    { apiVersion: `${group}/v1`, kind: "RoleBinding", metadata, subjects, roleRef },
  ];
}

async function setRules(rules: readonly object[]): Promise<void> {
  const roles = { apiVersion: "rbac.authorization.k8s.io/v1", plural: "roles" };
  const path = objectPath(roles, environment.pipes, "stateful-sets");
  const patchType = "application/merge-patch+json";
  await environment.client.json({ method: "PATCH", path, patchType, body: { rules } });
}

async function create(options: Options): Promise<void> {
  const { pipes: namespace, serviceId } = environment;
  const made = pipeStatefulSet({ serviceId, cores: 1, replicas: 3, ...options, namespace });
  await environment.create(STATEFUL_SETS, namespace, made);
}

function read(name = "loader"): Promise<StatefulSet> {
  return environment.client.json({ path: objectPath(STATEFUL_SETS, environment.pipes, name) });
}

function patch(name: string, spec: object): Promise<StatefulSet> {
  return environment.client.json({
    method: "PATCH",
    path: objectPath(STATEFUL_SETS, environment.pipes, name),
    patchType: "application/strategic-merge-patch+json",
    query: { fieldManager: "owner" },
    body: { spec },
  });
}

async function podsOf(name = "loader"): Promise<readonly Pod[]> {
  const query = { labelSelector: `app=${name}` };
  const path = collectionPath(PODS, environment.pipes);
  const { items } = await environment.client.json<{ readonly items: readonly Pod[] }>({ path, query });
  return items.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

const cpuOf = ({ spec }: Pod) => spec.containers[0]?.resources?.requests?.["cpu"];
const sizes = async (name?: string) => (await podsOf(name)).map(cpuOf);
const uids = async (name?: string) => (await podsOf(name)).map(({ metadata }) => metadata.uid);
const templateCpu = ({ spec }: StatefulSet) => spec.template.spec.containers[0]?.resources?.requests?.["cpu"];

async function message(): Promise<string> {
  return conditionOf(await environment.scaling(), "Ready")?.message ?? "";
}

/** Starts a controller, and waits until all pipes are ready and all pods of StatefulSets are available. */
async function start(settings: Parameters<TestEnvironment["startController"]>[0] = {}) {
  const stop = await environment.startController(settings);
  await environment.waitForCondition("Ready", "True");
  const path = collectionPath(STATEFUL_SETS, environment.pipes);
  await waitFor(
    async () => {
      const { items } = await environment.client.json<{ readonly items: readonly StatefulSet[] }>({ path });
      return items.every(({ spec, status }) => status?.availableReplicas === spec.replicas);
    },
    { what: "all pods to be available" },
  );
  return stop;
}

describe("a StatefulSet of three pods", () => {
  it("gets a larger and a smaller size by a rollout, and nothing else of it changes", async () => {
    await create({ name: "loader" });
    await start({ resizeStrategy: "InPlaceOrRollout" });
    const before = await read();
    await environment.requestSize(4);
    const { status } = await environment.waitForCondition("Ready", "True");
    expect(status?.pipes).toMatchObject({
      ...{ summary: "1/1", resizedBy: { "statefulset/loader": "Rollout" } },
      fallbacks: [{ pipe: "statefulset/loader", reason: "NotSupported" }],
    });
    expect(await sizes()).toEqual(["4", "4", "4"]);
    await environment.requestSize(1);
    await environment.waitForCondition("Ready", "True");
    expect(await sizes()).toEqual(["1", "1", "1"]);
    const after = await read();
    expect(after.spec).toEqual(before.spec);
    expect(after.status?.currentRevision).toBe(after.status?.updateRevision);
    expect(environment.errors).toEqual([]);
  });

  it("goes on with the next controller if one ends in the middle", async () => {
    await create({ name: "loader", ...SLOW });
    const stop = await start();
    await environment.requestSize(4);
    await waitFor(async () => (await sizes()).includes("4"), { what: "the first pod of the new size" });
    await stop();
    expect(new Set(await sizes()).size).toBe(2);
    await environment.startController();
    await environment.waitForCondition("Ready", "True");
    expect(await sizes()).toEqual(["4", "4", "4"]);
  });

  it("gets its size without replicas, and has it when it is scaled up", async () => {
    await create({ name: "loader", replicas: 0 });
    await environment.startController();
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(4);
    await environment.waitForCondition("Ready", "True");
    expect(templateCpu(await read())).toBe("4");
    await patch("loader", { replicas: 2 });
    await waitFor(async () => (await environment.scaling()).status?.replicas === 2, { what: "two replicas" });
    await environment.waitForCondition("Ready", "True");
    await waitFor(async () => (await sizes()).join() === "4,4", { what: "two pods of the new size" });
  });

  it("has an Event that says why it is left alone if its service is unknown", async () => {
    await create({ name: "unknown", serviceId: "unknown", replicas: 0 });
    await environment.startController();
    interface Report extends KubeObject {
      readonly reason: string;
      readonly regarding: { readonly kind: string; readonly name: string };
    }
    const path = collectionPath(EVENTS, environment.pipes);
    const event = await waitFor(
      async () => {
        const { items } = await environment.client.json<{ readonly items: readonly Report[] }>({ path });
        return items.find(({ reason }) => reason === "UnknownService");
      },
      { what: "the Event" },
    );
    expect(event.regarding).toMatchObject({ kind: "StatefulSet", name: "unknown" });
  });
});

describe("a service with a Deployment and a StatefulSet", () => {
  const waits = (name: string, message: string) =>
    waitFor(
      async () =>
        (await environment.scaling()).status?.pipes?.pending?.some(
          (each) => each.name === name && each.message === message,
        ),
      { what: message },
    );

  it.each([
    ["StatefulSet", "a", "z", "z", "waiting for statefulset/a to prove the size"],
    ["Deployment", "z", "a", "statefulset/z", "waiting for a to prove the size"],
  ])("has a %s as its canary if its name is first", async (_, statefulSet, deployment, waiting, text) => {
    await create({ name: statefulSet, replicas: 2, ...SLOW });
    await environment.createPipe({ name: deployment, cores: 1, ...SLOW });
    await start();
    await environment.requestSize(4);
    await waits(waiting, text);
    const { status } = await environment.waitForCondition("Ready", "True");
    expect(status?.pipes?.summary).toBe("2/2");
    expect([await sizes(statefulSet), await sizes(deployment)]).toEqual([["4", "4"], ["4"]]);
  });

  it("resizes both if they have the same name", async () => {
    await create({ name: "same", replicas: 1 });
    await environment.createPipe({ name: "same", cores: 1 });
    await start();
    await environment.requestSize(2);
    const { status } = await environment.waitForCondition("Ready", "True");
    expect(status?.pipes).toMatchObject({
      ...{ summary: "2/2" },
      resizedBy: { same: "Rollout", "statefulset/same": "Rollout" },
    });
    expect(await sizes("same")).toEqual(["2", "2"]);
  });
});

describe("the update strategy of a StatefulSet", () => {
  it("keeps the pods below its partition, until the owner lowers it", async () => {
    const rollingUpdate = { partition: 2 };
    await create({ name: "loader", updateStrategy: { type: "RollingUpdate", rollingUpdate } });
    await start();
    const [first, second] = await uids();
    await environment.requestSize(4);
    const scaling = await environment.waitForCondition("Ready", "False", "WaitingForOwner");
    expect(conditionOf(scaling, "Stalled")).toBeUndefined();
    expect(scaling.status?.pipes?.pending).toMatchObject([
      {
        ...{ name: "statefulset/loader", state: "Paused" },
        message: expect.stringContaining("2 of its 3 pods are below the partition 2"),
      },
    ]);
    expect(await sizes()).toEqual(["1", "1", "4"]);
    expect((await uids()).slice(0, 2)).toEqual([first, second]);
    expect((await read()).spec.updateStrategy?.rollingUpdate?.partition).toBe(2);
    await patch("loader", { updateStrategy: { rollingUpdate: { partition: 0 } } });
    await environment.waitForCondition("Ready", "True");
    expect(await sizes()).toEqual(["4", "4", "4"]);
  });

  it("is never overruled if it is OnDelete", async () => {
    await create({ name: "loader", updateStrategy: { type: "OnDelete" } });
    await start();
    const before = await uids();
    await environment.requestSize(4);
    await environment.waitForCondition("Ready", "False", "WaitingForOwner");
    expect(await message()).toMatch(/its update strategy is OnDelete, so only its owner replaces its pods/);
    expect([templateCpu(await read()), await uids()]).toEqual(["1", before]);
    await patch("loader", { updateStrategy: { type: "RollingUpdate" } });
    await environment.waitForCondition("Ready", "True");
    expect(await sizes()).toEqual(["4", "4", "4"]);
  });
});

describe("a StatefulSet whose pod of the new size does not become ready", () => {
  /** The last pod crashes as soon as it has four cores. Returns its UID. */
  async function crashLastPod(): Promise<string> {
    const { metadata } = await waitFor(async () => (await podsOf()).find((pod) => cpuOf(pod) === "4"), {
      what: "the first pod of the new size",
    });
    await environment.client.json({
      method: "PATCH",
      path: objectPath(PODS, environment.pipes, metadata.name),
      patchType: "application/merge-patch+json",
      body: { metadata: { labels: { [NEVER_READY_LABEL]: "true" } } },
    });
    return metadata.uid;
  }

  it.each(["OrderedReady", "Parallel"] as const)(
    "is rolled back with the policy %s, and only that pod is replaced",
    async (podManagementPolicy) => {
      await create({ name: "loader", podManagementPolicy, ...SLOW });
      await start({ rolloutTimeoutMs: 3000 });
      const before = await uids();
      await environment.requestSize(4);
      const stuck = await crashLastPod();
      await environment.waitForCondition("Stalled", "True", "RolloutTimeout");
      await waitFor(async () => (await sizes()).join() === "1,1,1" && !(await uids()).includes(stuck), {
        what: "the stuck pod to be replaced by one of the old size",
      });
      expect((await uids()).slice(0, 2)).toEqual(before.slice(0, 2));
      const { status, metadata } = await waitFor(
        async () => {
          const current = await read();
          return current.status?.availableReplicas === 3 ? current : undefined;
        },
        { what: "all pods to be available" },
      );
      expect(status?.updatedReplicas).toBe(3);
      expect(JSON.parse(metadata.annotations?.[LAST_ROLLOUT_ANNOTATION] ?? "{}")).toMatchObject({
        isRollback: true,
      });
    },
  );

  it("gets a size that is requested meanwhile, although Kubernetes would wait for the pod", async () => {
    await create({ name: "loader", ...SLOW });
    await start();
    await environment.requestSize(4);
    const stuck = await crashLastPod();
    await environment.requestSize(2);
    await environment.waitForCondition("Ready", "True");
    expect(await sizes()).toEqual(["2", "2", "2"]);
    expect(await uids()).not.toContain(stuck);
  });

  it("is cleaned up by the next controller if the first one ended after the rollback", async () => {
    await create({ name: "loader", ...SLOW });
    const stop = await start({ rolloutTimeoutMs: 3000 });
    await setRules([STATEFUL_SET_RULE]);
    await environment.requestSize(4);
    const stuck = await crashLastPod();
    await waitFor(async () => /a size that failed, and could not be deleted/.test(await message()), {
      what: "the status to report the pod",
    });
    await stop();
    expect(await uids()).toContain(stuck);
    await setRules([STATEFUL_SET_RULE, POD_RULE]);
    await environment.startController({ rolloutTimeoutMs: 3000 });
    await waitFor(async () => (await sizes()).join() === "1,1,1", { what: "the old size of all pods" });
  });
});
