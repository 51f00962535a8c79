import { randomUUID } from "node:crypto";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LEASE_NAME, REVISION_HASH_LABEL, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { resourcesFor } from "../../src/controller/observe/resources.ts";
import {
  API_FIELD_MANAGER,
  API_VERSION,
  CONTROLLER_FIELD_MANAGER,
  KIND,
  PIPE_SCALINGS,
} from "../../src/crd/names.ts";
import { REQUEST_ANNOTATION } from "../../src/crd/scaling-request.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import type { KubeClient, KubeRequest } from "../../src/kube/client.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import {
  CONFIG_MAPS,
  collectionPath,
  DEPLOYMENTS,
  EVENTS,
  LEASES,
  objectPath,
  PODS,
  REPLICA_SETS,
  type Resource,
  STATEFUL_SETS,
} from "../../src/kube/paths.ts";
import { backupConfigMap } from "../../src/records/backup.ts";
import { keyUsageConfigMap } from "../../src/records/key-usage.ts";
import { membersConfigMap } from "../../src/records/members.ts";
import { pipeDeployment } from "../support/fixtures/pipe.ts";
import { mutatingPolicy, TAG, taggedObjects } from "../support/mutating-policy.ts";
import { PatientClient } from "../support/patient-client.ts";
import { clientOf, install, prepareRelease, type Release, remove } from "./accounts.ts";
import { dryRunOf, expectDenied } from "./denials.ts";
import { anEvent } from "./events.ts";
import { pipeStatefulSet } from "./stateful-pipes.ts";

// An organization labels and annotates every object that is created or updated, with a webhook or a tool such as Kyverno.
const SERVICE = randomUUID();
const ORGANIZATION = randomUUID();
const JOINED = new Date("2026-01-01T00:00:00Z");
const ADA = { userId: "ada", name: "Ada", email: "ada@example.com", role: "admin", joinedAt: JOINED };
const POLICY = { periodInHours: 48, retentionPeriodInHours: 48, startTime: "3:00" } as const;
const MEMBERS = membersConfigMap(ORGANIZATION, [ADA, { ...ADA, userId: "bob" }]);
const BACKUP = backupConfigMap(SERVICE, ORGANIZATION, POLICY);
const USAGE = keyUsageConfigMap(ORGANIZATION, new Map([[randomUUID(), JOINED]]));
const LABELS = { [SERVICE_LABEL]: "a", [TYPE_LABEL]: "database" };

let cluster: Cluster;
let release: Release;
let controller: KubeClient;
let api: KubeClient;
let admin: PatientClient;
let policies: readonly string[] = [];
let lease: KubeObject;
let event: KubeObject;
const names = { pod: "", replicaSet: "" };

beforeAll(async () => {
  cluster = await sharedCluster();
  release = await prepareRelease(cluster);
  await install(cluster, release, "--set", "crds.enabled=false");
  controller = await clientOf(cluster, release, "controller");
  api = await clientOf(cluster, release, "api");
  admin = await PatientClient.of(cluster);
  const namespace = release.pipes;
  const pipe = pipeDeployment({ name: "pipe", namespace, serviceId: "a", cores: 1, podLabels: LABELS });
  await apply(cluster, [
    pipe,
    pipeStatefulSet("stateful", namespace, { replicas: 1 }),
    {
      apiVersion: API_VERSION,
      kind: KIND,
      metadata: { name: SERVICE, namespace },
      spec: { replicaCpuMillicores: 1000, replicaMemoryGb: 4 },
    },
    ...[MEMBERS, BACKUP, USAGE].map((record) => ({
      ...record,
      metadata: { ...record.metadata, namespace: release.records },
    })),
  ]);
  lease = await controller.json(creation(LEASES, release.records, newLease()));
  event = await controller.json(creation(EVENTS, release.pipes, anEvent(release.pipes)));
  const attempts: readonly (() => Promise<string>)[] = [
    () => dryRunOf(controller, strategic(DEPLOYMENTS, "pipe", { spec: { replicas: 2 } })),
    () => dryRunOf(controller, creation(LEASES, release.records, newLease({ name: "evil" }))),
    () => dryRunOf(api, creation(CONFIG_MAPS, release.records, newRecord({ name: "evil" }))),
  ];
  for (const attempt of attempts) {
    const isDenied = async () => (await attempt()).includes("ValidatingAdmissionPolicy");
    await waitFor(isDenied, { what: "the policies of the chart to take effect" });
  }
  names.pod = await nameOf(PODS);
  const isCreated = () =>
    admin.json({ path: objectPath(PODS, namespace, "stateful-0") }).catch(() => undefined);
  await waitFor(isCreated, { what: "the pod of the StatefulSet" });
  names.replicaSet = await nameOf(REPLICA_SETS);
  await mutate();
});
afterAll(async () => {
  await controller?.close();
  await api?.close();
  for (const kind of ["mutatingadmissionpolicybinding", "mutatingadmissionpolicy"])
    await kubectl(cluster, ["delete", kind, ...policies]);
  await admin?.close();
  if (release) await remove(cluster, release);
});

/** A MutatingAdmissionPolicy acts like a webhook. */
async function mutate() {
  const namespaces = [release.pipes, release.records];
  policies = namespaces.map((namespace) => `${namespace}-tags`);
  const all = namespaces.flatMap((namespace) =>
    mutatingPolicy({ name: `${namespace}-tags`, namespace, ...taggedObjects() }),
  );
  await apply(cluster, all);
  for (const namespace of namespaces) {
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "any" } };
    const request = { ...creation(CONFIG_MAPS, namespace, body), query: { dryRun: "All" } };
    const isMutated = async () => (await admin.json<KubeObject>(request)).metadata.labels?.[TAG] === "a";
    await waitFor(isMutated, { what: "the mutating policy to take effect" });
  }
}

function nameOf(resource: Resource): Promise<string> {
  const find = async () => {
    const query = { labelSelector: "app=pipe" };
    const request = { path: collectionPath(resource, release.pipes), query };
    return (await admin.json<{ items: readonly KubeObject[] }>(request)).items[0]?.metadata.name;
  };
  return waitFor(find, { what: `the ${resource.plural}` });
}

function creation(resource: Resource, namespace: string, body: object): KubeRequest {
  const fieldManager = resource === CONFIG_MAPS ? API_FIELD_MANAGER : CONTROLLER_FIELD_MANAGER;
  return { method: "POST", path: collectionPath(resource, namespace), query: { fieldManager }, body };
}

function newLease(metadata: object = {}) {
  const spec = { holderIdentity: "a", leaseDurationSeconds: 15 };
  return { apiVersion: LEASES.apiVersion, kind: "Lease", metadata: { name: LEASE_NAME, ...metadata }, spec };
}

function newScaling(metadata: object = {}) {
  return {
    apiVersion: API_VERSION,
    kind: KIND,
    metadata: { name: randomUUID(), ...metadata },
    spec: { suspend: true },
  };
}

function newRecord(metadata: object = {}) {
  return { ...BACKUP, metadata: { ...BACKUP.metadata, name: `backup-${randomUUID()}`, ...metadata } };
}

function patch(resource: Resource, namespace: string, name: string, body: object): KubeRequest {
  const isApis = namespace === release.records || resource === PIPE_SCALINGS;
  return {
    method: "PATCH",
    path: objectPath(resource, namespace, name),
    query: { fieldManager: isApis ? API_FIELD_MANAGER : CONTROLLER_FIELD_MANAGER },
    patchType: "application/merge-patch+json",
    body,
  };
}

const resized = () => ({ containers: [{ name: "pipe", resources: resourcesFor(sizeOfCores(2), false) }] });

function strategic(resource: Resource, name: string, body: object): KubeRequest {
  return {
    ...patch(resource, release.pipes, name, body),
    patchType: "application/strategic-merge-patch+json",
  };
}

const WRITES: readonly (readonly [string, () => KubeClient, () => KubeRequest])[] = [
  ["create a PipeScaling", () => controller, () => creation(PIPE_SCALINGS, release.pipes, newScaling())],
  ["create an Event", () => controller, () => creation(EVENTS, release.pipes, anEvent(release.pipes))],
  [
    "count an Event",
    () => controller,
    () =>
      patch(EVENTS, release.pipes, event.metadata.name, {
        series: { count: 2, lastObservedTime: "2026-01-01T00:01:00.000000Z" },
      }),
  ],
  [
    "renew its Lease",
    () => controller,
    () => ({
      method: "PUT",
      path: objectPath(LEASES, release.records, LEASE_NAME),
      query: { fieldManager: CONTROLLER_FIELD_MANAGER },
      body: { ...lease, spec: { ...newLease().spec, holderIdentity: "b" } },
    }),
  ],
  [
    "resize a Deployment",
    () => controller,
    () => strategic(DEPLOYMENTS, "pipe", { spec: { template: { spec: resized() } } }),
  ],
  [
    "resize a StatefulSet",
    () => controller,
    () => strategic(STATEFUL_SETS, "stateful", { spec: { template: { spec: resized() } } }),
  ],
  [
    "resize a ReplicaSet",
    () => controller,
    () => strategic(REPLICA_SETS, names.replicaSet, { spec: { template: { spec: resized() } } }),
  ],
  [
    "resize a pod",
    () => controller,
    () => {
      const request = strategic(PODS, names.pod, { spec: resized() });
      return { ...request, path: `${request.path}/resize` };
    },
  ],
  [
    "label a pod with its revision",
    () => controller,
    () =>
      strategic(PODS, "stateful-0", {
        metadata: { labels: { [REVISION_HASH_LABEL]: "stateful-6d8f9c7b44" } },
      }),
  ],
  ["create a record", () => api, () => creation(CONFIG_MAPS, release.records, newRecord())],
  [
    "remove a member",
    () => api,
    () => patch(CONFIG_MAPS, release.records, MEMBERS.metadata.name, { data: { ada: null } }),
  ],
  [
    "change backup settings",
    () => api,
    () => patch(CONFIG_MAPS, release.records, BACKUP.metadata.name, { data: { backupPeriodInHours: "24" } }),
  ],
  [
    "record the use of a key",
    () => api,
    () =>
      patch(CONFIG_MAPS, release.records, USAGE.metadata.name, {
        data: { [randomUUID()]: JOINED.toISOString() },
      }),
  ],
  [
    "request a size",
    () => api,
    () => ({
      method: "PATCH",
      path: objectPath(PIPE_SCALINGS, release.pipes, SERVICE),
      query: { fieldManager: API_FIELD_MANAGER, force: true },
      patchType: "application/apply-patch+yaml",
      body: {
        apiVersion: API_VERSION,
        kind: KIND,
        metadata: { name: SERVICE, annotations: { [REQUEST_ANNOTATION]: "{}" } },
        spec: { replicaCpuMillicores: 2000, replicaMemoryGb: 8 },
      },
    }),
  ],
];

/** The API server ignores labels in a write of the status. */
const STATUS: (typeof WRITES)[number] = [
  "write the status of a PipeScaling",
  () => controller,
  () => {
    const request = patch(PIPE_SCALINGS, release.pipes, SERVICE, { status: { observedGeneration: 1 } });
    return { ...request, path: `${request.path}/status`, query: { fieldManager: CONTROLLER_FIELD_MANAGER } };
  },
];

describe("where a webhook labels and annotates every object", () => {
  it.each([...WRITES, STATUS])("a process can %s", async (_, client, request) => {
    expect(await dryRunOf(client(), request())).toBe("accepted");
  });

  it.each(WRITES)(
    "a thief of its token cannot %s with a label or an annotation",
    async (_, client, request) => {
      const write = request();
      const { metadata, ...body } = write.body as KubeObject;
      for (const key of ["labels", "annotations"] as const) {
        const marked = (name: string) => ({ ...metadata, [key]: { ...metadata?.[key], [name]: "b" } });
        const attempts: readonly (readonly [manager: unknown, metadata: object])[] = [
          [write.query?.["fieldManager"], marked("example.com/thief")],
          [write.query?.["fieldManager"], marked(TAG)],
          ["kubectl", marked("example.com/thief")],
        ];
        for (const [fieldManager, changed] of attempts) {
          const query = { ...write.query, fieldManager: String(fieldManager) };
          const outcome = await dryRunOf(client(), { ...write, query, body: { ...body, metadata: changed } });
          expectDenied(outcome, " may ");
        }
      }
    },
  );

  it.each(WRITES.filter(([what]) => what !== "request a size"))(
    "a thief of its token cannot %s with a label and without field managers",
    async (_, client, request) => {
      const write = request();
      const { metadata, ...body } = write.body as KubeObject;
      const labels = { ...metadata?.labels, "example.com/thief": "b" };
      const changed = { ...body, metadata: { ...metadata, labels, managedFields: [{}] } };
      expectDenied(await dryRunOf(client(), { ...write, body: changed }), " may ");
    },
  );

  it("the controller can create its Lease", async () => {
    await admin.json({ method: "DELETE", path: objectPath(LEASES, release.records, LEASE_NAME) });
    expect(await dryRunOf(controller, creation(LEASES, release.records, newLease()))).toBe("accepted");
  });
});
