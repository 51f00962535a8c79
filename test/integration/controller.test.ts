import { randomUUID } from "node:crypto";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { START_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  CONTAINER_ANNOTATION,
  DATABASE_TYPE,
  LAST_ROLLOUT_ANNOTATION,
  REVISION_ANNOTATION,
  SERVICE_LABEL,
  TYPE_LABEL,
} from "../../src/controller/names.ts";
import {
  API_VERSION,
  CONTROLLER_FIELD_MANAGER,
  IGNORE_WINDOW_ANNOTATION,
  KIND,
  PIPE_SCALINGS,
} from "../../src/crd/names.ts";
import type { PipeScaling } from "../../src/crd/pipe-scaling.ts";
import { formatScalingRequest, REQUEST_ANNOTATION } from "../../src/crd/scaling-request.ts";
import type { WindowScope } from "../../src/domain/rollout-window.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import { CONFIG_MAPS, collectionPath, DEPLOYMENTS, EVENTS, objectPath } from "../../src/kube/paths.ts";
import type { Deployment } from "../../src/kube/workloads.ts";
import { serviceConfigMapName } from "../../src/records/service.ts";
import { pipeDeployment } from "../support/fixtures/pipe.ts";
import { setQuota } from "../support/limits.ts";
import { conditionOf, resourcesOf, TestEnvironment } from "../support/test-environment.ts";

interface PipeEvent {
  readonly reason: string;
  readonly note: string;
  readonly regarding: { readonly name: string };
  readonly reportingController?: string;
}

interface Managed {
  readonly metadata: {
    readonly managedFields: readonly { readonly manager: string; readonly fieldsV1: object }[];
  };
}

function scalingObject(name: string): object {
  return { apiVersion: API_VERSION, kind: KIND, metadata: { name }, spec: {} };
}

describe("the controller", () => {
  let environment: TestEnvironment;
  beforeEach(async () => {
    environment = await TestEnvironment.create();
  });
  afterEach(() => environment.end());

  it("creates a service's PipeScaling with the size of its first pipe, and leaves the pipe alone", async () => {
    await environment.startController();
    await environment.createPipe({ name: "pipe-a", cores: 1 });
    const scaling = await environment.waitForCondition("Ready", "True", "Scaled");
    expect(scaling.spec).toEqual({ replicaCpuMillicores: 1000, replicaMemoryGb: 4 });
    expect(scaling.status).toMatchObject({
      desired: {
        replicaCpuMillicores: 1000,
        replicaMemoryGb: 4,
        source: "Spec",
        summary: "1 cpu / 4 Gi",
      },
      effective: { replicaCpuMillicores: 1000, replicaMemoryGb: 4 },
      pipes: { total: 1, updated: 1, summary: "1/1" },
      computeUnits: 0.5,
      tier: "basic",
    });
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("1 4Gi 4Gi");
  });

  it("resizes all pipes to the requested size, and changes nothing else", async () => {
    await environment.startController();
    for (const name of ["pipe-a", "pipe-b", "pipe-c"])
      await environment.createPipe({ name, cores: 1, replicas: 2 });
    await environment.createPipe({ name: "other", cores: 1, type: "object-storage" });
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(4);
    const scaling = await environment.waitForCondition("Ready", "True");
    expect(scaling.status).toMatchObject({
      effective: { summary: "4 cpu / 16 Gi" },
      pipes: { summary: "3/3" },
      replicas: 6,
      computeUnits: 12,
    });
    expect(conditionOf(scaling, "Reconciling")).toBeUndefined();
    for (const name of ["pipe-a", "pipe-b", "pipe-c"]) {
      const pipe = await environment.pipe(name);
      expect(resourcesOf(pipe)).toBe("4 16Gi 16Gi");
      expect(pipe.status?.updatedReplicas).toBe(2);
    }
    expect((await environment.pipe("other")).metadata.generation).toBe(1);
  });
});

describe("a rescale in progress", () => {
  let environment: TestEnvironment;
  beforeEach(async () => {
    environment = await TestEnvironment.create();
  });
  afterEach(() => environment.end());

  const names = ["pipe-a", "pipe-b", "pipe-c"];

  it("resizes one pipe first, and the others only after that one runs the size", async () => {
    await environment.startController();
    // The new pods of the canary are slow, so any other resize before that is too early.
    for (const name of names)
      await environment.createPipe({ name, cores: 1, podAnnotations: { [START_AFTER_ANNOTATION]: "3s" } });
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(2);
    const scaling = await waitFor(
      async () => {
        const now = await environment.scaling();
        return now.status?.desired?.replicaCpuMillicores === 2000 ? now : undefined;
      },
      { what: "the new desired size in the status" },
    );
    expect(conditionOf(scaling, "Ready")).toMatchObject({ status: "False", reason: "Progressing" });
    expect(conditionOf(scaling, "Reconciling")?.status).toBe("True");
    const given = await waitFor(
      async () => {
        const sizes = await Promise.all(names.map(async (name) => resourcesOf(await environment.pipe(name))));
        const those = sizes.filter((size) => size === "2 8Gi 8Gi");
        return those.length > 0 && those;
      },
      { what: "the first pipe to get the size" },
    );
    expect(given).toHaveLength(1);
    expect(scaling.status?.effective?.summary).toBe("1 cpu / 4 Gi");
  });

  it("is completed by the next controller if the first one ends during it", async () => {
    const stop = await environment.startController();
    for (const name of names) await environment.createPipe({ name, cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(4);
    await waitFor(async () => (await environment.scaling()).status?.desired?.summary === "4 cpu / 16 Gi", {
      what: "the rescale to begin",
    });
    await stop();
    await environment.startController();
    const scaling = await environment.waitForCondition("Ready", "True");
    expect(scaling.status?.effective?.summary).toBe("4 cpu / 16 Gi");
  });

  it("is attributed to the API request with its size, and to none for another size", async () => {
    await environment.startController();
    await environment.createPipe({ name: "pipe-a", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    const request = {
      requestId: "8e9fb9a8-0000-4000-8000-000000000000",
      apiKey: "k",
      requestedAt: "2026-01-01T00:00:00Z",
      replicaCpuMillicores: 2000,
      replicaMemoryGb: 8,
    };
    await environment.patchScaling(
      { replicaCpuMillicores: 2000, replicaMemoryGb: 8 },
      { [REQUEST_ANNOTATION]: formatScalingRequest(request) },
    );
    const credited = await environment.waitForCondition("Ready", "True");
    expect(credited.status?.propagation).toMatchObject({
      requestId: request.requestId,
      startedAt: expect.any(String),
      completedAt: expect.any(String),
    });
    const attempt = (await environment.pipe("pipe-a")).metadata.annotations?.[LAST_ROLLOUT_ANNOTATION];
    expect(JSON.parse(attempt ?? "")).toMatchObject({ size: "2000m/8Gi", requestId: request.requestId });
    await environment.requestSize(3);
    const edited = await environment.waitForCondition("Ready", "True");
    expect(edited.status?.propagation?.requestId).toBeUndefined();
  });
});

describe("the controller's metrics", () => {
  it("have the names of controller-runtime for the runtime, and other names for the pipes", async () => {
    const environment = await TestEnvironment.create();
    try {
      await environment.createPipe({ name: "pipe-a", cores: 1 });
      // The start of a pipe that the controller sees before it is up counts, too.
      await waitFor(async () => (await environment.pipe("pipe-a")).status?.availableReplicas === 1, {
        what: "the pipe to be up",
      });
      await environment.startController();
      await environment.waitForCondition("Ready", "True");
      await environment.requestSize(2);
      await environment.waitForCondition("Ready", "True");
      const text = await waitFor(
        async () => {
          const now = await environment.scrape();
          return now.includes("pipe_scaling_propagation_seconds_count 1\n") ? now : undefined;
        },
        { what: "the duration of the resize" },
      );
      for (const series of [
        'leader_election_master_status{name="pipescaling"} 1',
        'workqueue_depth{name="pipescaling"} 0',
        'controller_runtime_max_concurrent_reconciles{controller="pipescaling"} 16',
        'pipe_scaling_pipes{state="done"} 1',
        'pipe_scaling_services{condition="Ready"} 1',
      ])
        expect(text).toContain(`${series}\n`);
      for (const counter of [
        'workqueue_adds_total{name="pipescaling"}',
        'workqueue_queue_duration_seconds_count{name="pipescaling"}',
        'workqueue_work_duration_seconds_count{name="pipescaling"}',
        'controller_runtime_reconcile_total{controller="pipescaling",result="success"}',
        `rest_client_requests_total{code="200",method="PATCH",host="${new URL(environment.cluster.server).host}"}`,
      ])
        expect(text.split("\n").find((line) => line.startsWith(counter))).toMatch(/ [1-9]\d*$/);
    } finally {
      await environment.end();
    }
  });
});

describe("tiers", () => {
  let environment: TestEnvironment;
  beforeEach(async () => {
    environment = await TestEnvironment.create();
  });
  afterEach(() => environment.end());

  it("resize the pipes without a requested size when they change", async () => {
    await environment.startController();
    await environment.createPipe({ name: "pipe-a", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(null);
    await environment.waitForCondition("Ready", "True");
    await environment.setTier("scale");
    const scaling = await waitFor(
      async () => {
        const now = await environment.scaling();
        return now.status?.tier === "scale" && conditionOf(now, "Ready")?.status === "True" ? now : undefined;
      },
      { what: "the default size of the tier" },
    );
    expect(scaling.status?.effective?.summary).toBe("2 cpu / 8 Gi");
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("2 8Gi 8Gi");
  });

  it("cap the requested size, and report it", async () => {
    await environment.setTier("small");
    await environment.startController();
    await environment.createPipe({ name: "pipe-a", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(4);
    const scaling = await environment.waitForCondition("Ready", "True", "TierLimited");
    expect(scaling.status?.desired).toMatchObject({ replicaCpuMillicores: 2000, source: "TierLimit" });
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("2 8Gi 8Gi");
  });

  it("stop every rescale if they are unknown, and the status lists the known ones", async () => {
    await environment.startController();
    await environment.createPipe({ name: "pipe-a", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await environment.setTier("gold");
    const scaling = await environment.waitForCondition("Stalled", "True", "UnknownTier");
    expect(conditionOf(scaling, "Stalled")?.message).toContain("basic, scale, enterprise, small");
    expect(conditionOf(scaling, "Reconciling")).toBeUndefined();
    await environment.setTier("basic");
    await environment.waitForCondition("Ready", "True");
  });
});

describe("a closed rollout window", () => {
  let environment: TestEnvironment;
  const opening = new Date();
  opening.setUTCMonth(opening.getUTCMonth() + 6, 1);
  const opensAt = `${opening.toISOString().slice(0, 8)}01T02:30:00Z`;

  beforeEach(async () => {
    environment = await TestEnvironment.create();
  });
  afterEach(() => environment.end());

  async function setWindow(appliesTo: WindowScope): Promise<void> {
    const { records, serviceId, client } = environment;
    const schedule = `30 2 1 ${opening.getUTCMonth() + 1} *`;
    await client.json({
      method: "PATCH",
      path: objectPath(CONFIG_MAPS, records, serviceConfigMapName(serviceId)),
      patchType: "application/merge-patch+json",
      body: { data: { rolloutWindow: JSON.stringify({ schedule, duration: "15m", appliesTo }) } },
    });
  }

  async function waitForWindow(): Promise<void> {
    const waiting = await environment.waitForCondition("Ready", "False", "WaitingForWindow");
    expect(conditionOf(waiting, "Ready")?.message).toContain(
      `1 waiting for the rollout window, which opens at ${opensAt}.`,
    );
  }

  it("holds back a rescale until the time in the status, or until an annotation overrides it", async () => {
    await setWindow("restarts");
    await environment.startController();
    await environment.createPipe({ name: "pipe-a", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(4);
    await waitForWindow();
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("1 4Gi 4Gi");
    const until = new Date(Date.now() + 60_000).toISOString();
    await environment.patchScaling(undefined, { [IGNORE_WINDOW_ANNOTATION]: until });
    await environment.waitForCondition("Ready", "True", "Scaled");
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("4 16Gi 16Gi");
  });

  it("holds back a resize in place only if it applies to all", async () => {
    await setWindow("restarts");
    const stop = await environment.startController({ resizeStrategy: "InPlaceOrRollout" });
    const podLabels = { [SERVICE_LABEL]: environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
    await environment.createPipe({ name: "pipe-a", cores: 1, podLabels });
    await environment.waitForCondition("Ready", "True");
    const revision = await revisionOf("pipe-a");
    await environment.requestSize(4);
    await waitFor(async () => resourcesOf(await environment.pipe("pipe-a")) === "4 16Gi 16Gi", {
      what: "the size in the template",
    });
    await environment.waitForCondition("Ready", "True", "Scaled");
    expect(await revisionOf("pipe-a")).toBe(revision);
    // A controller lists the records before it leads, but a running one may see the size before the window.
    await stop();
    await setWindow("all");
    await environment.startController({ resizeStrategy: "InPlaceOrRollout" });
    await environment.requestSize(8);
    await waitForWindow();
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("4 16Gi 16Gi");
  });

  /** A new ReplicaSet raises it. */
  async function revisionOf(name: string): Promise<string | undefined> {
    return (await environment.pipe(name)).metadata.annotations?.[REVISION_ANNOTATION];
  }
});

describe("objects that the controller leaves alone", () => {
  let environment: TestEnvironment;
  beforeEach(async () => {
    environment = await TestEnvironment.create();
  });
  afterEach(() => environment.end());

  it("include all fields of a Deployment except its own", async () => {
    await environment.startController();
    await environment.createPipe({ name: "pipe-a", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    const before = await environment.pipe("pipe-a");
    await environment.requestSize(4);
    await environment.waitForCondition("Ready", "True");
    const after = await environment.pipe("pipe-a");
    const container = after.spec.template.spec.containers[0];
    expect(after.spec).toEqual({
      ...before.spec,
      template: {
        ...before.spec.template,
        spec: { ...before.spec.template.spec, containers: [{ ...container, resources: expect.anything() }] },
      },
    });
    const { metadata } = await environment.client.json<Managed>({
      path: objectPath(DEPLOYMENTS, environment.pipes, "pipe-a"),
    });
    const ours = metadata.managedFields.filter((each) => each.manager === CONTROLLER_FIELD_MANAGER);
    expect(ours.map((each) => each.fieldsV1)).toEqual([
      {
        "f:metadata": {
          "f:annotations": {
            [`f:${LAST_ROLLOUT_ANNOTATION}`]: {},
          },
        },
        "f:spec": {
          "f:template": {
            "f:spec": {
              "f:containers": {
                'k:{"name":"pipe"}': {
                  "f:resources": {
                    "f:limits": { "f:memory": {} },
                    "f:requests": { "f:cpu": {}, "f:memory": {} },
                  },
                },
              },
            },
          },
        },
      },
    ]);
  });

  it("include everything while the service is suspended", async () => {
    await environment.startController();
    await environment.createPipe({ name: "pipe-a", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await environment.patchScaling({ suspend: true });
    await environment.waitForCondition("Ready", "Unknown", "Suspended");
    await environment.requestSize(4);
    await environment.waitForCondition("Ready", "Unknown", "Suspended");
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("1 4Gi 4Gi");
    await environment.patchScaling({ suspend: null });
    await environment.waitForCondition("Ready", "True");
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("4 16Gi 16Gi");
  });

  it("include the pipes of a deleted PipeScaling, which is created again with their size", async () => {
    await environment.startController();
    await environment.createPipe({ name: "pipe-a", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(4);
    const before = await environment.waitForCondition("Ready", "True");
    const generation = (await environment.pipe("pipe-a")).metadata.generation;
    await kubectl(environment.cluster, ["delete", "psc", environment.serviceId, "-n", environment.pipes]);
    const after = await waitFor(
      async () => {
        const now = await environment.scaling();
        return now.metadata.uid === before.metadata.uid || conditionOf(now, "Ready")?.status !== "True"
          ? undefined
          : now;
      },
      { what: "the PipeScaling to exist again" },
    );
    expect(after.spec).toEqual({ replicaCpuMillicores: 4000, replicaMemoryGb: 16 });
    expect((await environment.pipe("pipe-a")).metadata.generation).toBe(generation);
  });

  it("include a PipeScaling of an unknown service, whose status reports it", async () => {
    await environment.startController();
    const name = "11111111-1111-1111-1111-111111111111";
    await environment.create(PIPE_SCALINGS, environment.pipes, scalingObject(name));
    const seen = await waitFor(async () => conditionOf(await environment.scaling(name), "Stalled"), {
      what: "the problem in the status",
    });
    expect(seen).toMatchObject({ status: "True", reason: "UnknownService" });
    expect(seen.message).toContain(`service-${name}`);
  });

  it("include a PipeScaling in the wrong namespace, whose status reports it, and the pipes there", async () => {
    await environment.startController({ pipeNamespaces: [environment.pipes, environment.records] });
    await environment.create(PIPE_SCALINGS, environment.records, scalingObject(environment.serviceId));
    const foreign = pipeDeployment({
      name: "foreign",
      namespace: environment.records,
      serviceId: environment.serviceId,
      cores: 3,
    });
    await environment.create(DEPLOYMENTS, environment.records, foreign);
    await environment.createPipe({ name: "pipe-a", cores: 3 });
    await environment.waitForCondition("Ready", "True");
    const seen = await waitFor(
      async () => {
        const path = objectPath(PIPE_SCALINGS, environment.records, environment.serviceId);
        return conditionOf(await environment.client.json<PipeScaling>({ path }), "Stalled");
      },
      { what: "the problem in the status" },
    );
    expect(seen).toMatchObject({ reason: "WrongNamespace" });
    const path = objectPath(DEPLOYMENTS, environment.records, "foreign");
    expect(resourcesOf(await environment.client.json<Deployment>({ path }))).toBe("3 12Gi 12Gi");
  });

  it("include pipes of an unknown service or a malformed organization without a PipeScaling, which an Event on each reports", async () => {
    const { records, pipes, client, organizationName } = environment;
    await client.json({
      method: "PATCH",
      path: objectPath(CONFIG_MAPS, records, organizationName),
      patchType: "application/merge-patch+json",
      body: { data: { tier: null } },
    });
    await environment.createPipe({ name: "pipe-a", cores: 3 });
    await environment.createPipe({ name: "pipe-b", cores: 3, serviceId: randomUUID() });
    await environment.startController();
    const read = async () => {
      const { items } = await client.json<{ readonly items: readonly PipeEvent[] }>({
        path: collectionPath(EVENTS, pipes),
      });
      const ours = items.filter(({ reportingController = "" }) =>
        reportingController.includes("pipe-scaling"),
      );
      const texts = ours.map(({ regarding, reason, note }) => `${regarding.name} ${reason}: ${note}`);
      return texts.length >= 2 ? texts.toSorted() : undefined;
    };
    const events = await waitFor(read, { what: "an Event on each pipe" });
    expect(events).toEqual([
      expect.stringMatching(`^pipe-a MalformedRecord: The ConfigMap ${organizationName} is malformed: `),
      expect.stringMatching(/^pipe-b UnknownService: The service .* does not exist: there is no ConfigMap/),
    ]);
    const lines = environment.log.filter(({ msg }) => String(msg).startsWith("the pipe is left alone: "));
    expect(lines.map(({ pipe, reason }) => `${pipe} ${reason}`).toSorted()).toEqual([
      "pipe-a MalformedRecord",
      "pipe-b UnknownService",
    ]);
    for (const name of ["pipe-a", "pipe-b"])
      expect((await environment.pipe(name)).metadata.generation).toBe(1);
  });

  it("include a pipe with several containers until an annotation selects one", async () => {
    await environment.startController();
    await environment.createPipe({ name: "pipe-a", cores: 2, containers: ["pipe", "sidecar"] });
    const stalled = await environment.waitForCondition("Stalled", "True", "ContainerUnclear");
    expect(conditionOf(stalled, "Stalled")?.message).toContain(CONTAINER_ANNOTATION);
    await environment.patchPipe("pipe-a", {
      metadata: { annotations: { [CONTAINER_ANNOTATION]: "sidecar" } },
    });
    await environment.waitForCondition("Ready", "True");
    const [pipe, sidecar] = (await environment.pipe("pipe-a")).spec.template.spec.containers;
    expect(pipe?.resources?.requests?.["cpu"]).toBe("2");
    // The size held the largest container, so the one that the annotation names keeps what it had.
    expect(sidecar?.resources?.requests?.["cpu"]).toBe("2");
  });
});

describe("a size that a pipe cannot run", () => {
  let environment: TestEnvironment;
  beforeEach(async () => {
    environment = await TestEnvironment.create();
  });
  afterEach(() => environment.end());

  it("is rolled back and reported if its rollout never completes, and the other pipes are not restarted", async () => {
    await environment.startController({ rolloutTimeoutMs: 2000 });
    for (const name of ["pipe-a", "pipe-b"]) await environment.createPipe({ name, cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await setQuota(environment, { "requests.memory": "10Gi" });
    await environment.requestSize(24);
    const stalled = await environment.waitForCondition("Stalled", "True");
    expect(stalled.status?.failures).toMatchObject([
      { size: { replicaCpuMillicores: 24_000, replicaMemoryGb: 96, summary: "24 cpu / 96 Gi" }, attempts: 1 },
    ]);
    await waitFor(
      async () => {
        const sizes = await Promise.all(
          ["pipe-a", "pipe-b"].map(async (name) => resourcesOf(await environment.pipe(name))),
        );
        return sizes.every((size) => size === "1 4Gi 4Gi");
      },
      { what: "both pipes to have the old size" },
    );
    const after = await environment.scaling();
    expect(after.spec?.replicaCpuMillicores).toBe(24_000);
    expect(after.status?.effective?.summary).toBe("1 cpu / 4 Gi");
  });

  it("is reported in Events with its request, like a size that all pipes run", async () => {
    await environment.startController();
    await environment.createPipe({ name: "pipe-a", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await environment.patchPipe("pipe-a", {
      spec: { template: { spec: { containers: [{ name: "pipe", resources: { limits: { cpu: "2" } } }] } } },
    });
    for (const cores of [2, 4]) {
      const request = {
        requestId: `request-${cores}`,
        apiKey: "k",
        requestedAt: "2026-01-01T00:00:00Z",
        replicaCpuMillicores: cores * 1000,
        replicaMemoryGb: cores * 4,
      };
      const annotations = { [REQUEST_ANNOTATION]: formatScalingRequest(request) };
      await environment.patchScaling(
        { replicaCpuMillicores: cores * 1000, replicaMemoryGb: cores * 4 },
        annotations,
      );
      if (cores === 2) await environment.waitForCondition("Ready", "True");
      else await environment.waitForCondition("Stalled", "True", "CpuLimitTooLow");
    }
    const events = await waitFor(
      async () => {
        const args = ["get", "events.events.k8s.io", "-n", environment.pipes, "-o", "json"];
        const {
          items,
        }: { items: { type: string; reason: string; note: string; regarding: { kind: string } }[] } =
          JSON.parse(await kubectl(environment.cluster, args));
        const ours = items.filter((each) => each.regarding.kind === KIND);
        return ours.length >= 3 ? ours.map((each) => `${each.type} ${each.reason}: ${each.note}`) : undefined;
      },
      { what: "three events about the PipeScaling" },
    );
    expect(events, events.join("\n")).toHaveLength(3);
    expect(events).toContain("Normal Scaled: The one pipe runs 1 cpu / 4 Gi.");
    expect(events).toContainEqual(
      expect.stringMatching(/^Normal Scaled: The one pipe runs 2 cpu \/ 8 Gi \(request request-2\)/),
    );
    expect(events).toContainEqual(
      expect.stringMatching(
        /^Warning CpuLimitTooLow: pipe-a could not be resized to 4 cpu \/ 16 Gi: .*CPU limit.*request request-4/s,
      ),
    );
  });

  it("is reported with the remedy if the CPU limit is too low, and applied when the limit is raised", async () => {
    await environment.startController();
    await environment.createPipe({ name: "pipe-a", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await environment.patchPipe("pipe-a", {
      spec: { template: { spec: { containers: [{ name: "pipe", resources: { limits: { cpu: "2" } } }] } } },
    });
    await environment.requestSize(4);
    const stalled = await environment.waitForCondition("Stalled", "True", "CpuLimitTooLow");
    expect(conditionOf(stalled, "Stalled")?.message).toContain(
      'the container "pipe" has a CPU limit of 2000m, which is below the 4000m of the size: remove limits.cpu',
    );
    await environment.patchPipe("pipe-a", {
      spec: { template: { spec: { containers: [{ name: "pipe", resources: { limits: { cpu: "8" } } }] } } },
    });
    const scaling = await environment.waitForCondition("Ready", "True");
    expect(scaling.status?.failures).toBeUndefined();
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("4 16Gi 16Gi");
  });

  it("is applied to a pipe with a CPU limit equal to it, and the status reports that its container is Guaranteed", async () => {
    await environment.startController();
    await environment.createPipe({ name: "pipe-a", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await environment.patchPipe("pipe-a", {
      spec: { template: { spec: { containers: [{ name: "pipe", resources: { limits: { cpu: "2" } } }] } } },
    });
    await environment.requestSize(2);
    const scaling = await environment.waitForCondition("Ready", "True");
    expect(conditionOf(scaling, "Ready")?.message).toBe(
      "The one pipe runs 2 cpu / 8 Gi. The CPU limit of pipe-a equals the size, so its container with this size is Guaranteed and not Burstable; the QoS class of a pod depends on all of its containers.",
    );
    const { items }: { items: readonly (KubeObject & { status: { qosClass: string } })[] } = JSON.parse(
      await kubectl(environment.cluster, ["get", "pods", "-n", environment.pipes, "-o", "json"]),
    );
    const running = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    expect(running.map(({ status }) => status.qosClass)).toEqual(["Guaranteed"]);
  });

  it("is applied a few more times if another writer overwrites it, and then not again", async () => {
    await environment.startController();
    await environment.createPipe({ name: "pipe-a", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(4);
    await environment.waitForCondition("Ready", "True");
    const takeBack = {
      spec: { template: { spec: { containers: [{ name: "pipe", resources: { requests: { cpu: "1" } } }] } } },
    };
    await environment.patchPipe("pipe-a", takeBack);
    await waitFor(async () => resourcesOf(await environment.pipe("pipe-a")) === "4 16Gi 16Gi", {
      what: "the size to be applied again",
    });
    await environment.patchPipe("pipe-a", takeBack);
    const stalled = await environment.waitForCondition("Stalled", "True", "FieldConflict");
    expect(conditionOf(stalled, "Stalled")?.message).toContain(
      'another writer, "somebody", has changed the container\'s resources: omit requests.cpu',
    );
  });
});
