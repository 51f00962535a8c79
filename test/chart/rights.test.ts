import { randomUUID } from "node:crypto";
import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { silentProgress } from "@pipe-scaling/local-cluster/progress";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import {
  CONTAINER_ANNOTATION,
  DATABASE_TYPE,
  LAST_ROLLOUT_ANNOTATION,
  SERVICE_LABEL,
  TYPE_LABEL,
} from "../../src/controller/names.ts";
import { CONTROLLER_FIELD_MANAGER, PIPE_SCALINGS } from "../../src/crd/names.ts";
import type { KubeObject, Lease } from "../../src/kube/objects.ts";
import { collectionPath, EVENTS, LEASES, objectPath, type Resource } from "../../src/kube/paths.ts";
import { membersConfigMap } from "../../src/records/members.ts";
import {
  type ApiEnvironment,
  clientOfText,
  createApiEnvironment,
  type RunningApi,
} from "../api/environment.ts";
import { Loaders, templateCpu } from "../integration/stateful-loader.ts";
import type { KeyRecord } from "../support/fixtures/records.ts";
import { VERTICAL_CRD } from "../support/fixtures/vertical-autoscaler.ts";
import { resourcesOf, TestEnvironment } from "../support/test-environment.ts";
import { Rights, waitForDenial } from "./rights.ts";

/*
 * The tests remove each permission of the chart, wait until the process reports it missing, and restore it. This shows
 * that every permission is needed, and that the process recovers without a restart.
 */

let cluster: Cluster;
beforeAll(async () => {
  // A cluster of its own without streamed lists, as in older versions, so that the verb list is needed too.
  const gates = { "feature-gates": "WatchList=false,WatchListClient=false" };
  cluster = await startCluster({
    progress: silentProgress,
    componentArgs: { "kube-apiserver": gates, "kube-controller-manager": gates, "kube-scheduler": gates },
  });
  await apply(cluster, [VERTICAL_CRD]);
});
afterAll(() => cluster?.stop());

/** Permissions for reading; without one of them the process never becomes ready. */
const reading = (...resources: readonly string[]) =>
  resources.flatMap((resource) => [`list ${resource}`, `watch ${resource}`]);

describe("a permission of the API", () => {
  let environment: ApiEnvironment;
  let rights: Rights;
  let key: KeyRecord;
  let organization: string;
  let api: RunningApi;
  beforeAll(async () => {
    environment = await createApiEnvironment("rights", cluster);
    rights = await Rights.of("api", environment);
    organization = await environment.addOrganization();
    key = await environment.addKey({ organizationId: organization });
    api = await environment.startReadyApi();
  });
  afterAll(async () => {
    await api?.stop();
    await rights?.close();
    await environment?.remove();
  });

  const READING = reading("secrets", "configmaps", "pipes.clouddb.dev/pipescalings");

  it.each(READING)("%s is required to become ready", async (right) => {
    const readiness = await rights.without(right, async (refusal) => {
      const { log, opsUrl, stop } = await environment.startApi();
      onTestFinished(stop);
      await waitForDenial(log, refusal);
      const readiness = async () => (await clientOfText(opsUrl)("/readyz")).status;
      expect(await readiness()).toBe(503);
      return readiness;
    });
    await waitFor(async () => (await readiness()) === 200, { what: "the API to be ready" });
  });

  interface Request {
    readonly method: "DELETE" | "PATCH";
    readonly path: string;
    readonly body?: object;
  }
  async function send({ method, path, body }: Request): Promise<number> {
    const headers = { "content-type": "application/json" };
    const text = body === undefined ? {} : { body: JSON.stringify(body), headers };
    const base = `/v1/organizations/${organization}`;
    return (await api.send({ method, path: base + path, authorization: key.authorization, ...text })).status;
  }

  /** Creates a service and waits until the API sees it. */
  async function service(spec: object = {}): Promise<string> {
    const id = await environment.addService(organization);
    await environment.addScaling(id, spec);
    const path = `/v1/organizations/${organization}/services/${id}/pipesCdcScaling`;
    // 503, because the service has no size yet.
    await waitFor(async () => (await api.send({ path, authorization: key.authorization })).status === 503, {
      what: "the API to see the service",
    });
    return `/services/${id}`;
  }

  const backup = (service: string, hours: number): Request => ({
    method: "PATCH",
    path: `${service}/backupConfiguration`,
    body: { backupPeriodInHours: hours },
  });
  const size = (service: string): Request => ({
    method: "PATCH",
    path: `${service}/pipesCdcScaling`,
    body: { replicaCpuMillicores: 2000 },
  });

  /** Requests that get 503 without the permission, with their status with it. */
  const ACTING: Readonly<Record<string, () => Promise<readonly [Request, number]>>> = {
    // The process reads the record from the API server before it rejects a request, because a cache may be stale.
    "get configmaps": async () => {
      const joinedAt = new Date("2026-01-01T00:00:00Z");
      const ada = { userId: "ada", name: "Ada", email: "ada@example.com", role: "admin", joinedAt };
      await environment.addRecord(membersConfigMap(organization, [ada]));
      const request = { method: "DELETE", path: "/members/ada" } as const;
      await waitFor(async () => (await send(request)) === 400, { what: "the API to see the members" });
      return [request, 400];
    },
    "create configmaps": async () => [backup(await service(), 48), 200],
    "patch configmaps": async () => {
      const id = await service();
      expect(await send(backup(id, 48))).toBe(200);
      return [backup(id, 24), 200];
    },
    "get pipes.clouddb.dev/pipescalings": async () => [size(await service({ suspend: true })), 409],
    "patch pipes.clouddb.dev/pipescalings": async () => [size(await service()), 200],
  };

  it.each(Object.entries(ACTING))("%s is required for a request", async (right, prepare) => {
    const [request, status] = await prepare();
    await rights.without(right, async (refusal) => {
      expect(await send(request)).toBe(503);
      await waitForDenial(api.log, refusal);
    });
    expect(await send(request)).toBe(status);
  });

  it("is in one of these tests", () => {
    expect(rights.names).toEqual([...READING, ...Object.keys(ACTING)].toSorted());
  });
});

/** test/integration/in-place.slow.test.ts shows what happens without them. */
const IN_PLACE = [
  "delete apps/replicasets",
  "list apps/replicasets",
  "patch apps/replicasets",
  "patch pods/resize",
];

/** stateful-sets.slow.test.ts and stateful-in-place.slow.test.ts of test/integration show what happens without them. */
const STATEFUL = ["delete pods", "patch pods"];

describe("a permission of the controller", () => {
  let world: TestEnvironment;
  let rights: Rights;
  beforeAll(async () => {
    world = await TestEnvironment.create("basic", cluster);
    rights = await Rights.of("controller", world);
    await world.createPipe({ name: "pipe-a", cores: 1 });
  });
  afterAll(async () => {
    await world?.end();
    await rights?.close();
  });

  const READING = reading(
    "configmaps",
    "apps/deployments",
    "autoscaling/horizontalpodautoscalers",
    "autoscaling.k8s.io/verticalpodautoscalers",
    "pipes.clouddb.dev/pipescalings",
  );

  async function list<T extends KubeObject>(resource: Resource, namespace: string): Promise<readonly T[]> {
    const path = collectionPath(resource, namespace);
    return (await world.client.json<{ readonly items: readonly T[] }>({ path })).items;
  }

  /**
   * Starts a controller for the rest of the test.
   *
   * @returns a function that returns true while it is ready
   */
  async function start(identity = randomUUID()): Promise<() => Promise<boolean>> {
    const before = world.log.length;
    onTestFinished(await world.startController({ identity }));
    const listening = () => world.log.slice(before).find(({ msg }) => msg === "listening");
    const { opsUrl } = await waitFor(listening, { what: "the controller to listen" });
    return async () => (await fetch(`${opsUrl}/readyz`)).ok;
  }

  it.each(READING)("%s is required to become ready", async (right) => {
    const isReady = await rights.without(right, async (refusal) => {
      const isReady = await start();
      await waitForDenial(world.log, refusal);
      expect(await isReady()).toBe(false);
      return isReady;
    });
    await waitFor(isReady, { what: "the controller to be ready" });
  });

  const SEEING = reading("pods");

  it.each(SEEING)("%s is required to resize pods in place, but not to resize pipes", async (right) => {
    const podLabels = { [SERVICE_LABEL]: world.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
    await world.createPipe({ name: "pipe-seen", cores: 1, podLabels });
    const resizedBy = async (cores: number) => {
      await world.requestSize(cores);
      const { status } = await world.waitForCondition("Ready", "True");
      return status?.pipes?.resizedBy?.["pipe-seen"];
    };
    await rights.without(right, async (refusal) => {
      const stop = await world.startController({ resizeStrategy: "InPlaceOrRollout" });
      await world.waitForCondition("Ready", "True");
      await waitForDenial(world.log, refusal);
      expect(await resizedBy(2)).toBe("Rollout");
      await stop();
    });
    const stop = await world.startController({ resizeStrategy: "InPlaceOrRollout" });
    await world.waitForCondition("Ready", "True");
    expect(await resizedBy(1)).toBe("InPlace");
    await stop();
    await kubectl(cluster, ["delete", "deployment", "pipe-seen", "-n", world.pipes]);
  });

  const LOADING = reading("apps/statefulsets");

  it.each(LOADING)("%s is required to resize StatefulSets, but not to resize Deployments", async (right) => {
    const loaders = new Loaders(world);
    await loaders.create({ replicas: 0 });
    await rights.without(right, async (refusal) => {
      await start();
      await world.waitForCondition("Ready", "True");
      await world.requestSize(2);
      await waitForDenial(world.log, refusal);
      const { status } = await world.waitForCondition("Ready", "True");
      expect(status?.pipes?.summary).toBe("1/1");
      expect(templateCpu(await loaders.read())).toBe("1");
    });
    await waitFor(async () => templateCpu(await loaders.read()) === "2", {
      what: "the StatefulSet to follow",
    });
    await kubectl(cluster, ["delete", "statefulset", "loader", "-n", world.pipes]);
    await world.requestSize(1);
    await world.waitForCondition("Ready", "True");
  });

  /** Permissions for the Lease, each with the state of the Lease that requires it. */
  const LEADING: Readonly<Record<string, object | undefined>> = {
    "create coordination.k8s.io/leases": undefined,
    "get coordination.k8s.io/leases": undefined,
    "update coordination.k8s.io/leases": { holderIdentity: "" },
  };

  it.each(Object.entries(LEADING))("%s is required to lead", async (right, spec) => {
    const name = "pipe-scaling-controller";
    const identity = randomUUID();
    const leads = async () => {
      const leases = await list<Lease>(LEASES, world.records);
      return leases.some(({ spec }) => spec?.holderIdentity === identity);
    };
    await kubectl(cluster, ["delete", "lease", name, "-n", world.records, "--ignore-not-found"]);
    if (spec) await world.create(LEASES, world.records, { metadata: { name }, spec });
    await rights.without(right, async (refusal) => {
      await start(identity);
      await waitForDenial(world.log, refusal);
      expect(await leads()).toBe(false);
    });
    await waitFor(leads, { what: "the controller to lead" });
  });

  const NODES = "list nodes";

  it(`${NODES} is required to detect that no node is large enough, but not to resize pipes`, async () => {
    const name = "pipe-b";
    const containers = ["pipe", "helper"];
    const annotations = { [CONTAINER_ANNOTATION]: "pipe" };
    await world.createPipe({ name, cores: 1, strategy: "Recreate", containers, annotations });
    // With the permission, 2 cores fit the node of 256, and 8 do not.
    const helper = { name: "helper", resources: { requests: { cpu: "250" } } };
    await world.patchPipe(name, { spec: { template: { spec: { containers: [helper] } } } });
    const cpu = async () => resourcesOf(await world.pipe(name)).split(" ")[0];

    await rights.without(NODES, async (refusal) => {
      const stop = await world.startController();
      await world.waitForCondition("Ready", "True");
      await world.requestSize(2);
      await waitForDenial(world.log, refusal);
      await world.waitForCondition("Ready", "True");
      expect(await cpu()).toBe("2");
      await stop();
    });
    const stop = await world.startController();
    await world.requestSize(8);
    await world.waitForCondition("Stalled", "True", "NoNodeLargeEnough");
    expect(await cpu()).toBe("2");
    await kubectl(cluster, ["delete", "deployment", name, "-n", world.pipes]);
    await world.requestSize(1);
    await world.waitForCondition("Ready", "True");
    await stop();
  });

  describe("at run time", () => {
    beforeAll(async () => {
      await world.startController();
      await world.waitForCondition("Ready", "True");
    });

    const pathOfScaling = () => objectPath(PIPE_SCALINGS, world.pipes, world.serviceId);

    async function isReported(): Promise<boolean> {
      const { metadata, status } = await world.scaling();
      return status?.observedGeneration === metadata.generation;
    }

    async function attempt(): Promise<Readonly<Record<string, unknown>>> {
      const { metadata } = await world.pipe("pipe-a");
      return JSON.parse(metadata.annotations?.[LAST_ROLLOUT_ANNOTATION] ?? "{}");
    }

    interface Task {
      readonly give: () => Promise<unknown>;
      readonly isDone: () => Promise<boolean>;
    }

    /** Writes that the controller makes as soon as it has the permission. */
    const TASKS: Readonly<Record<string, Task>> = {
      "patch pipes.clouddb.dev/pipescalings/status": { give: () => world.requestSize(2), isDone: isReported },
      "patch apps/deployments": {
        give: () => world.requestSize(3),
        isDone: async () => resourcesOf(await world.pipe("pipe-a")) === "3 12Gi 12Gi",
      },
      "patch apps/statefulsets": {
        give: async () => {
          await new Loaders(world).create({ replicas: 0 });
          await world.requestSize(4);
        },
        isDone: async () => templateCpu(await new Loaders(world).read()) === "4",
      },
      // Simulates an etcd restore: the annotation of the pipe has a later generation than the PipeScaling.
      "get pipes.clouddb.dev/pipescalings": {
        async give() {
          const later = JSON.stringify({ ...(await attempt()), scalingGeneration: 1_000_000 });
          const metadata = { annotations: { [LAST_ROLLOUT_ANNOTATION]: later } };
          await world.patchPipe("pipe-a", { metadata }, CONTROLLER_FIELD_MANAGER);
        },
        isDone: async () => (await attempt())["scalingGeneration"] !== 1_000_000,
      },
      "create pipes.clouddb.dev/pipescalings": {
        give: () => world.client.json({ method: "DELETE", path: pathOfScaling() }),
        isDone: async () => (await list(PIPE_SCALINGS, world.pipes)).length === 1,
      },
    };

    it.each(Object.entries(TASKS))("%s is required for a write", async (right, { give, isDone }) => {
      await rights.without(right, async (refusal) => {
        await give();
        await waitForDenial(world.log, refusal);
        expect(await isDone()).toBe(false);
      });
      await waitFor(isDone, { what: "the write" });
      await world.waitForCondition("Ready", "True");
    });

    async function obstruct(): Promise<void> {
      await world.setTier("basic");
      await world.waitForCondition("Ready", "True");
      await world.setTier("unheard-of");
      await world.waitForCondition("Stalled", "True", "UnknownTier");
    }

    /** Returns the count of the Event about the tier. */
    async function eventCount(): Promise<number> {
      const events = await list<Event>(EVENTS, world.pipes);
      const event = events.find(({ reason }) => reason === "UnknownTier");
      return event ? (event.series?.count ?? 1) : 0;
    }

    /** Permissions for Events, with the count of the Event before. */
    const RECORDING = [
      ["create events.k8s.io/events", 0],
      ["patch events.k8s.io/events", 1],
    ] as const;

    it.each(RECORDING)("%s is required to record an Event", async (right, before) => {
      await rights.without(right, async (refusal) => {
        await obstruct();
        await waitForDenial(world.log, refusal);
        expect(await eventCount()).toBe(before);
      });
      await obstruct();
      await waitFor(async () => (await eventCount()) > before, { what: "the Event to be recorded" });
    });

    it("is in one of these tests", () => {
      const known = [
        ...READING,
        ...SEEING,
        ...LOADING,
        ...Object.keys(LEADING),
        NODES,
        ...Object.keys(TASKS),
        ...RECORDING.map(([right]) => right),
        ...IN_PLACE,
        ...STATEFUL,
      ];
      expect(rights.names).toEqual(known.toSorted());
    });
  });
});

it("the controller requests pages from an API server without streamed lists", async () => {
  const environment = await TestEnvironment.create("basic", cluster);
  onTestFinished(() => environment.end());
  await environment.createPipe({ name: "pipe-a", cores: 1 });
  await environment.startController();
  await environment.waitForCondition("Ready", "True");
  await environment.requestSize(4);
  await environment.waitForCondition("Ready", "True");
  const refused = /^rest_client_requests_total\{(?=.*method="GET")(?=.*code="422").*\} [1-9]/m;
  expect(await environment.scrape()).toMatch(refused);
  expect(environment.errors).toEqual([]);
});

interface Event extends KubeObject {
  readonly reason: string;
  readonly series?: { readonly count: number };
}
