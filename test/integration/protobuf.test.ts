import { randomUUID } from "node:crypto";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import fc from "fast-check";
import { PbfReader } from "pbf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toKeyView, toRecordView } from "../../src/api/cluster/views.ts";
import { toNodeView } from "../../src/capacity/node-view.ts";
import { podRequests } from "../../src/capacity/pod-requests.ts";
import { toHorizontalAutoscalerView } from "../../src/controller/observe/autoscaler-view.ts";
import { toPodView } from "../../src/controller/observe/pod-view.ts";
import { toPipeView } from "../../src/controller/observe/workloads/deployment.ts";
import { KubeApiError } from "../../src/kube/errors.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import {
  CONFIG_MAPS,
  collectionPath,
  DEPLOYMENTS,
  HORIZONTAL_AUTOSCALERS,
  NODES,
  objectPath,
  PODS,
  type Resource,
  SECRETS,
} from "../../src/kube/paths.ts";
import { type List, listOf } from "../../src/kube/protobuf/envelope.ts";
import type { Deployment } from "../../src/kube/workloads.ts";
import { recordKindOf } from "../../src/records/kinds.ts";
import { organizationConfigMap } from "../../src/records/organization.ts";
import { watchEvents } from "../../src/runtime/watch-stream.ts";
import { TestEnvironment } from "../support/test-environment.ts";

const OBJECTS = 40;

describe("an object that is read as protobuf", () => {
  let environment: TestEnvironment;
  beforeAll(async () => {
    environment = await TestEnvironment.create();
    environment.onEnd(() => environment.deleteAll(HORIZONTAL_AUTOSCALERS));
    await Promise.all(
      fc.sample(deploymentSpec, OBJECTS).map((spec, at) =>
        create(DEPLOYMENTS, `pipe-${at}`, {
          spec,
          metadata: { annotations: { "example.com/note": "ä 😀" } },
        }),
      ),
    );
    await Promise.all(
      fc.sample(data, OBJECTS).map((each, at) => create(CONFIG_MAPS, `map-${at}`, { data: each })),
    );
    await Promise.all(
      fc.sample(data, OBJECTS).map((each, at) => create(SECRETS, `secret-${at}`, { stringData: each })),
    );
    await Promise.all(
      fc
        .sample(autoscalerSpec, OBJECTS)
        .map((spec, at) => create(HORIZONTAL_AUTOSCALERS, `hpa-${at}`, { spec })),
    );
    const owner = { id: randomUUID(), name: "ACME", createdAt: new Date(0), tier: "basic" };
    const record = organizationConfigMap(owner);
    await create(CONFIG_MAPS, record.metadata.name, record);
    await create(CONFIG_MAPS, "ending", { metadata: { finalizers: ["example.com/hold"] } });
    const { client, pipes } = environment;
    await client.json({ method: "DELETE", path: objectPath(CONFIG_MAPS, pipes, "ending") });
    const taints = [{ key: "for", value: "others", effect: "NoSchedule" }];
    await create(NODES, "cordoned", { spec: { unschedulable: true, taints } });
    environment.onEnd(() => client.json({ method: "DELETE", path: `${pathOf(NODES)}/cordoned` }));
    await create(DEPLOYMENTS, "running", { spec: { replicas: 1, ...workload({}) } });
    const unschedulable = {
      nodeSelector: { no: "node" },
      resources: { requests: { cpu: "2" }, limits: { cpu: "4" } },
    };
    await create(DEPLOYMENTS, "pending", {
      spec: { replicas: 1, ...workload(unschedulable, { resources: PIPE }) },
    });
    const pending = await waitFor(
      async () => (await list(PODS, "json")).find((each) => JSON.stringify(each).includes("Unschedulable")),
      { what: "a pod that fits no node" },
    );
    await client.json({
      method: "PATCH",
      path: `${objectPath(PODS, pipes, pending.metadata.name)}/status`,
      patchType: "application/merge-patch+json",
      body: { status: { observedGeneration: 1, containerStatuses: [RESTARTED] } },
    });
    await waitFor(
      async () => (await list(DEPLOYMENTS, "json")).some(({ status }) => status?.availableReplicas === 1),
      { what: "a pod that runs" },
    );
    // The controller manager has observed all of them, so they do not change between the two lists.
    await waitFor(
      async () =>
        (await list(DEPLOYMENTS, "json")).every(({ status }) => (status?.conditions ?? []).length > 0),
      { what: "the conditions of all Deployments" },
    );
  });
  afterAll(() => environment.end());

  function create(resource: Resource, name: string, object: object): Promise<unknown> {
    const body = {
      ...object,
      metadata: { ...("metadata" in object ? (object.metadata as object) : {}), name },
    };
    return environment.client.json({ method: "POST", path: pathOf(resource), body });
  }

  function pathOf({ plural, apiVersion }: Resource): string {
    return collectionPath({ plural, apiVersion }, plural === "nodes" ? undefined : environment.pipes);
  }

  async function list<Raw>(resource: Resource<Raw>, format: "json" | "protobuf"): Promise<readonly Raw[]> {
    const path = pathOf(resource);
    const message = format === "protobuf" && resource.message ? listOf(resource.message) : undefined;
    const { items = [] } = await environment.client.json<List<Raw>>({ path, message });
    return items;
  }

  /** Reads both formats until nothing has changed in between. */
  async function bothWays<Raw extends KubeObject>(resource: Resource<Raw>) {
    return waitFor(
      async () => {
        const json = await list(resource, "json");
        const protobuf = await list(resource, "protobuf");
        const versions = (of: readonly Raw[]) => of.map(({ metadata }) => metadata.resourceVersion).join();
        return versions(json) === versions(protobuf) ? { json, protobuf } : undefined;
      },
      { what: `two lists of ${resource.plural} at the same versions` },
    );
  }

  /** Compares all objects of a kind, and their projections. */
  function kind<Raw extends KubeObject>(resource: Resource<Raw>, view: (raw: Raw) => unknown) {
    const every = resource.message?.read(new EveryField(new Uint8Array()));
    const compare = async () => {
      const { json, protobuf } = await bothWays(resource);
      expect(protobuf.length).toBeGreaterThan(0);
      expect(protobuf).toEqual(json.map((each) => declaredOf(each, every)));
      expect(protobuf.map(view)).toEqual(json.map(view));
    };
    // All kinds have the same metadata.
    const paths = (of: unknown) =>
      pathsIn(of, every, resource.plural).map((path) => path.replace(/^\w+\.metadata/, "metadata"));
    const seen = async () => (await list(resource, "protobuf")).flatMap(paths);
    return { plural: resource.plural, compare, declared: paths(every), seen };
  }

  const KINDS = [
    kind(DEPLOYMENTS, toPipeView),
    kind(PODS, toPodView),
    // The view has the taints as they are, so those in JSON have undeclared fields.
    kind(NODES, (raw) => ({ ...toNodeView(raw), taints: [] })),
    kind(CONFIG_MAPS, (raw) => recordKindOf(raw.metadata.labels) && toRecordView(raw, () => true)),
    kind(SECRETS, toKeyView),
    kind(HORIZONTAL_AUTOSCALERS, toHorizontalAutoscalerView),
  ];

  it.each(KINDS)(
    "has the declared values of the same object in JSON, and the same view: $plural",
    ({ compare }) => compare(),
  );

  it("has each declared field at least once in all these objects", async () => {
    const seen = new Set((await Promise.all(KINDS.map((each) => each.seen()))).flat());
    expect(KINDS.flatMap(({ declared }) => declared).filter((path) => !seen.has(path))).toEqual([]);
  });

  it("has all data of ConfigMaps and Secrets", async () => {
    for (const resource of [CONFIG_MAPS, SECRETS]) {
      const { json, protobuf } = await bothWays<KubeObject & { readonly data?: object }>(resource);
      expect(protobuf.map((each) => each.data)).toEqual(json.map((each) => each.data));
    }
  });

  it("has the requests of its pods", async () => {
    const { json, protobuf } = await bothWays(DEPLOYMENTS);
    expect(protobuf.map(({ spec }) => podRequests(spec.template.spec))).toEqual(
      json.map(({ spec }) => podRequests(spec.template.spec)),
    );
  });

  it("has the variables and arguments of its containers", async () => {
    const { json, protobuf } = await bothWays(DEPLOYMENTS);
    const readsOf = ({ spec }: Deployment) =>
      [...spec.template.spec.containers, ...(spec.template.spec.initContainers ?? [])].map(
        ({ name, command, args, env }) => {
          const variables = env?.map((each) => {
            const { resource, containerName } = each.valueFrom?.resourceFieldRef ?? {};
            return { name: each.name, value: each.value, resource, containerName };
          });
          return { name, command, args, variables };
        },
      );
    expect(protobuf.map(readsOf)).toEqual(json.map(readsOf));
    expect(JSON.stringify(protobuf.map(readsOf))).toContain(
      '"resource":"limits.memory","containerName":"pipe"',
    );
  });

  it("is the same from a watch and from a list, up to the bookmark that ends the initial events", async () => {
    const { protobuf } = await bothWays(DEPLOYMENTS);
    const abort = new AbortController();
    const stream = await environment.client.stream({
      path: collectionPath(DEPLOYMENTS, environment.pipes),
      query: {
        watch: true,
        allowWatchBookmarks: true,
        sendInitialEvents: true,
        resourceVersionMatch: "NotOlderThan",
      },
      signal: abort.signal,
      message: DEPLOYMENTS.message,
    });
    expect(stream.isProtobuf).toBe(true);
    const watched: unknown[] = [];
    const options = { path: "pipes", isKnown: () => false, message: DEPLOYMENTS.message };
    for await (const event of watchEvents(stream, options)) {
      if (event.type === "BOOKMARK") {
        expect(event.object.metadata.annotations).toEqual({ "k8s.io/initial-events-end": "true" });
        break;
      }
      if (event.type === "ADDED") watched.push(event.object);
    }
    abort.abort();
    expect(watched).toHaveLength(protobuf.length);
    expect(watched).toEqual(expect.arrayContaining([...protobuf]));
  });

  it("leads to the same error as in JSON if it does not exist", async () => {
    const path = objectPath(DEPLOYMENTS, environment.pipes, "missing");
    const { message } = DEPLOYMENTS;
    const [json, protobuf] = await Promise.all([
      environment.client.json({ path }).catch((error: unknown) => error),
      environment.client.json({ path, message }).catch((error: unknown) => error),
    ]);
    expect(protobuf).toBeInstanceOf(KubeApiError);
    expect(protobuf).toEqual(json);
  });
});

const ANY = "*";

/** Reads a message as an object with each declared field; maps have the key `ANY`. */
class EveryField extends PbfReader {
  #ofEntry = 0;

  override readFields<T>(read: (number: number, object: T, reader: PbfReader) => void, object: T): T {
    for (let number = 1; number <= 100; number += 1) read(number, object, this);
    return object;
  }

  /** Only maps call it: the key, the value, the end. */
  override nextField(): number {
    this.#ofEntry = (this.#ofEntry + 1) % 3;
    return this.#ofEntry;
  }

  override readVarint(): number {
    return 1;
  }

  override readBoolean(): boolean {
    return true;
  }

  override readString(): string {
    return ANY;
  }

  override readBytes(): Uint8Array {
    return Buffer.from(JSON.stringify(ANY));
  }
}

function hasFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(ANY in value);
}

/** The part of a value in JSON that is declared. */
function declaredOf(json: unknown, every: unknown): unknown {
  if (Array.isArray(json) && Array.isArray(every)) return json.map((each) => declaredOf(each, every[0]));
  if (!hasFields(json) || !hasFields(every)) return json;
  // JSON has the number of restarts even if it is 0.
  const isAbsent = (key: string) => !(key in json) || (key === "restartCount" && json[key] === 0);
  return Object.fromEntries(
    Object.entries(every).flatMap(([key, of]) => (isAbsent(key) ? [] : [[key, declaredOf(json[key], of)]])),
  );
}

/** The paths of all fields that occur in a value. */
function pathsIn(value: unknown, every: unknown, path: string): string[] {
  if (Array.isArray(value) && Array.isArray(every))
    return value.flatMap((each) => pathsIn(each, every[0], path));
  if (!hasFields(value) || !hasFields(every)) return [path];
  return [path, ...Object.entries(value).flatMap(([key, of]) => pathsIn(of, every[key], `${path}.${key}`))];
}

const text = fc.stringMatching(/^[a-z]([-a-z0-9]{0,20}[a-z0-9])?$/);
const data = fc.dictionary(text, fc.string({ unit: "grapheme", maxLength: 200 }), { maxKeys: 5 });

const cpu = fc.constantFrom("1", "500m", "1500m", "24");
const memory = fc.constantFrom("1Gi", "4Gi", "512Mi", "100000000");
const resources = fc.record(
  {
    requests: fc.record({ cpu, memory }),
    limits: fc.record({ cpu: fc.constant("64"), memory: fc.constant("512Gi") }),
  },
  { requiredKeys: [] },
);

const READS = [
  { name: "A", value: "b" },
  { name: "OWN", valueFrom: { resourceFieldRef: { resource: "requests.cpu" } } },
  { name: "PIPE", valueFrom: { resourceFieldRef: { resource: "limits.memory", containerName: "pipe" } } },
];
const COMMAND = { command: ["sh"], args: ["-c", "x"], env: READS };

const podSpec = fc.record(
  {
    nodeName: text,
    nodeSelector: fc.dictionary(text, text, { maxKeys: 3 }),
    runtimeClassName: text,
    overhead: fc.record({ cpu, memory }),
    tolerations: fc.array(
      fc.record(
        {
          key: text,
          operator: fc.constant("Equal"),
          value: text,
          effect: fc.constantFrom("NoSchedule", "NoExecute"),
        },
        { requiredKeys: ["key", "operator"] },
      ),
      { maxLength: 3 },
    ),
    affinity: fc.record({
      nodeAffinity: fc.record({
        requiredDuringSchedulingIgnoredDuringExecution: fc.record({
          nodeSelectorTerms: fc.array(
            fc.record({
              matchExpressions: fc.array(
                fc.record({
                  key: text,
                  operator: fc.constantFrom("In", "NotIn"),
                  values: fc.tuple(text, text),
                }),
                { minLength: 1, maxLength: 2 },
              ),
              matchFields: text.map((name) => [{ key: "metadata.name", operator: "In", values: [name] }]),
            }),
            { minLength: 1, maxLength: 2 },
          ),
        }),
      }),
    }),
    initContainers: resources.map((of) => [
      { name: "first", image: "first", resources: of },
      { name: "sidecar", image: "sidecar", restartPolicy: "Always", resources: of, ...COMMAND },
    ]),
  },
  { requiredKeys: [] },
);

const strategy = fc.oneof(
  fc.constant({ type: "Recreate" }),
  fc.record({
    type: fc.constant("RollingUpdate"),
    rollingUpdate: fc.record({
      maxSurge: fc.constantFrom(1, 3, "25%", "100%"),
      maxUnavailable: fc.constantFrom(0, 1, "0%", "50%"),
    }),
  }),
);

/** Spec of a Deployment whose pods never start, so its status does not change. */
const deploymentSpec = fc
  .record({
    ...{ pod: podSpec, resources, other: resources },
    ...{ strategy, paused: fc.boolean(), minReadySeconds: fc.nat(100) },
  })
  .map(({ pod, strategy: of, paused, minReadySeconds, ...containers }) => ({
    replicas: 0,
    minReadySeconds,
    strategy: of,
    paused,
    ...workload(pod, containers),
  }));

const PIPE = { requests: { cpu: "1" }, limits: { cpu: "2" } };

const FINISHED_AT = "2026-01-01T00:00:00Z";

/** The status of a container that was killed once. */
const RESTARTED = {
  name: "pipe",
  image: "pipe",
  imageID: "pipe",
  containerID: "test://pipe",
  ready: false,
  restartCount: 1,
  state: { running: { startedAt: FINISHED_AT } },
  lastState: { terminated: { exitCode: 137, reason: "OOMKilled", finishedAt: FINISHED_AT } },
  allocatedResources: { cpu: "1", memory: "1Gi" },
  resources: { requests: { cpu: "1", memory: "1Gi" }, limits: { memory: "2Gi" } },
};

const RESTART = [{ resourceName: "memory", restartPolicy: "RestartContainer" }];

function workload(pod: object, { resources: of = {}, other = {} } = {}) {
  const labels = { app: randomUUID() };
  return {
    selector: { matchLabels: labels },
    template: {
      metadata: { labels, annotations: labels },
      spec: {
        ...pod,
        containers: [
          { name: "pipe", image: "pipe", resources: of, resizePolicy: RESTART },
          { name: "other", image: "other", resources: other, ...COMMAND },
        ],
      },
    },
  };
}

const metric = fc.constantFrom(
  { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 70 } } },
  { type: "Resource", resource: { name: "memory", target: { type: "AverageValue", averageValue: "1Gi" } } },
  {
    type: "ContainerResource",
    containerResource: {
      name: "cpu",
      container: "pipe",
      target: { type: "Utilization", averageUtilization: 5 },
    },
  },
);

const autoscalerSpec = fc.record({
  scaleTargetRef: fc.record({
    apiVersion: fc.constant("apps/v1"),
    kind: fc.constantFrom("Deployment", "StatefulSet"),
    name: text,
  }),
  minReplicas: fc.constant(1),
  maxReplicas: fc.integer({ min: 1, max: 9 }),
  metrics: fc.array(metric, { minLength: 1, maxLength: 3 }),
});
