import { randomUUID } from "node:crypto";
import type { V1ManagedFieldsEntry } from "@kubernetes/client-node";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import {
  LAST_ROLLOUT_ANNOTATION,
  LEASE_NAME,
  SERVICE_LABEL,
  TYPE_LABEL,
} from "../../src/controller/names.ts";
import {
  API_FIELD_MANAGER,
  API_VERSION,
  CONTROLLER_FIELD_MANAGER,
  KIND,
  PIPE_SCALINGS,
} from "../../src/crd/names.ts";
import { REQUEST_ANNOTATION } from "../../src/crd/scaling-request.ts";
import type { KubeClient, KubeRequest } from "../../src/kube/client.ts";
import { KubeApiError } from "../../src/kube/errors.ts";
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
import { pipeDeployment } from "../support/fixtures/pipe.ts";
import { PatientClient } from "../support/patient-client.ts";
import { clientOf, install, prepareRelease, type Release, remove } from "./accounts.ts";
import { dryRunOf, expectDenied } from "./denials.ts";
import { anEvent } from "./events.ts";
import { withOneOlder } from "./records-by-age.ts";
import { pipeStatefulSet } from "./stateful-pipes.ts";

/*
 * The tests send the requests of a thief who wants to leave something behind: texts that fill etcd, forged field
 * managers, pods without limits, and a Lease that no other process can get. The API server stores none of them.
 */

const ORGANIZATION = randomUUID();
const SERVICE = randomUUID();
const EDITED = randomUUID();
const LABELS = { [SERVICE_LABEL]: SERVICE, [TYPE_LABEL]: "database" };
const RESOURCES = { requests: { cpu: "1", memory: "4Gi" }, limits: { memory: "4Gi" } };
const TIME = "2026-01-01T00:00:00Z";
const USED = new Map([[randomUUID(), new Date(TIME)]]);
const USAGE = keyUsageConfigMap(ORGANIZATION, USED);
const POLICY = { periodInHours: 48, retentionPeriodInHours: 48, startTime: "3:00" } as const;
const BACKUP = backupConfigMap(SERVICE, ORGANIZATION, POLICY);
/** Characters of a text that would fill etcd after some thousand writes. */
const LONG = 300_000;
/** Below the limit of the API server, 1.5 MiB per request. */
const HUGE = 1_000_000;

/** Times are texts in JSON. */
type Field = Omit<V1ManagedFieldsEntry, "time"> & { readonly time?: string };

let cluster: Cluster;
let release: Release;
let controller: KubeClient;
let api: KubeClient;
let admin: PatientClient;
let pod: string;
let replicaSet: string;

beforeAll(async () => {
  cluster = await sharedCluster();
  release = await prepareRelease(cluster);
  await install(cluster, release, "--set", "crds.enabled=false");
  controller = await clientOf(cluster, release, "controller");
  api = await clientOf(cluster, release, "api");
  admin = await PatientClient.of(cluster);
  await apply(cluster, [
    deployment("pipe", 1),
    deployment("edited", 0),
    pipeStatefulSet("stateful", release.pipes, { replicas: 1 }),
    ...[USAGE, BACKUP].map((record) => ({
      ...record,
      metadata: { ...record.metadata, namespace: release.records },
    })),
    ...[SERVICE, EDITED].map((name) => ({
      apiVersion: API_VERSION,
      kind: KIND,
      metadata: { name, namespace: release.pipes },
      spec: { replicaCpuMillicores: 1000, replicaMemoryGb: 4, strategy: "Rollout" },
    })),
  ]);
  for (let index = 0; index < 11; index += 1) {
    await admin.json({
      ...patchOf(DEPLOYMENTS, "edited", { metadata: { annotations: { [`example.com/a${index}`]: "a" } } }),
      query: { fieldManager: `editor-${index}` },
    });
  }
  pod = await waitFor(() => nameOf(PODS), { what: "the pod of the pipe" });
  replicaSet = await waitFor(() => nameOf(REPLICA_SETS), { what: "the ReplicaSet of the pipe" });
  const denied: readonly (() => Promise<string>)[] = [
    () => create(PIPE_SCALINGS, { ...scaling(), metadata: { name: "evil" } }),
    () => create(LEASES, { ...lease(), metadata: { name: "evil" } }),
    () => create(EVENTS, event({ reportingController: "evil" })),
    () => change(DEPLOYMENTS, "pipe", { spec: { replicas: 2 } }),
    () => change(REPLICA_SETS, replicaSet, { spec: { replicas: 2 } }),
    () => change(PODS, pod, sized({ requests: { cpu: "0" } }), "/resize"),
    () => change(STATEFUL_SETS, "stateful", { spec: { replicas: 2 } }),
    () => change(PODS, "stateful-0", { metadata: { labels: { a: "b" } } }),
    () => changeAsApi(PIPE_SCALINGS, SERVICE, { spec: { suspend: true } }),
    () => changeAsApi(CONFIG_MAPS, BACKUP.metadata.name, { data: { evil: "a" } }),
  ];
  for (const attempt of denied) {
    const isDenied = async () => (await attempt()).includes("ValidatingAdmissionPolicy");
    await waitFor(isDenied, { what: "the policies to take effect" });
  }
});
afterAll(async () => {
  for (const client of [controller, api, admin]) await client?.close();
  if (release) await remove(cluster, release);
});

function deployment(name: string, replicas: number) {
  const pipe = pipeDeployment({ name, namespace: release.pipes, serviceId: SERVICE, replicas });
  const { metadata, spec } = pipe.spec.template;
  const template = {
    metadata: { ...metadata, labels: { ...metadata.labels, ...LABELS } },
    spec: { ...spec, containers: spec.containers.map((each) => ({ ...each, resources: RESOURCES })) },
  };
  return { ...pipe, spec: { ...pipe.spec, template } };
}

async function nameOf(resource: Resource): Promise<string | undefined> {
  const { items } = await admin.json<{ readonly items: readonly KubeObject[] }>({
    path: collectionPath(resource, release.pipes),
    query: { labelSelector: "app=pipe" },
  });
  return items.find((each) => JSON.stringify(each).includes('"resources"'))?.metadata.name;
}

const namespaceOf = ({ plural }: Resource) =>
  [CONFIG_MAPS.plural, LEASES.plural].includes(plural) ? release.records : release.pipes;

function pathOf(resource: Resource, name: string, subresource = ""): string {
  return objectPath(resource, namespaceOf(resource), name) + subresource;
}

function patchOf(resource: Resource, name: string, body: object, subresource = ""): KubeRequest {
  const isBuiltIn = [DEPLOYMENTS, STATEFUL_SETS, REPLICA_SETS, PODS].some(
    ({ plural }) => plural === resource.plural,
  );
  return {
    method: "PATCH",
    path: pathOf(resource, name, subresource),
    query: { fieldManager: CONTROLLER_FIELD_MANAGER },
    patchType: isBuiltIn ? "application/strategic-merge-patch+json" : "application/merge-patch+json",
    body,
  };
}

/** RBAC allows the controller to replace its Lease only. */
async function changeOf(
  resource: Resource,
  name: string,
  { metadata = {}, spec = {} }: Change,
  subresource = "",
): Promise<KubeRequest> {
  if (resource.plural !== LEASES.plural) return patchOf(resource, name, { metadata }, subresource);
  const path = pathOf(LEASES, name);
  const current = await admin.json<KubeObject & { readonly spec: object }>({ path });
  const body = {
    ...current,
    metadata: { ...current.metadata, ...metadata },
    spec: { ...current.spec, ...spec },
  };
  return { method: "PUT", path, query: { fieldManager: CONTROLLER_FIELD_MANAGER }, body };
}

interface Change {
  readonly metadata?: object;
  readonly spec?: object;
}

function change(resource: Resource, name: string, body: object, subresource = ""): Promise<string> {
  return dryRunOf(controller, patchOf(resource, name, body, subresource));
}

const asApi = (request: KubeRequest): KubeRequest => ({
  ...request,
  query: { fieldManager: API_FIELD_MANAGER },
});

function changeAsApi(resource: Resource, name: string, body: object): Promise<string> {
  return dryRunOf(api, asApi(patchOf(resource, name, body)));
}

function creation(resource: Resource, body: object, fieldManager = CONTROLLER_FIELD_MANAGER): KubeRequest {
  return {
    method: "POST",
    path: collectionPath(resource, namespaceOf(resource)),
    query: { fieldManager },
    body,
  };
}

function create(resource: Resource, body: object, fieldManager?: string): Promise<string> {
  return dryRunOf(controller, creation(resource, body, fieldManager));
}

async function recordsOf(resource: Resource, name: string): Promise<readonly Field[]> {
  return recordsIn(await admin.json<unknown>({ path: pathOf(resource, name) }));
}

const recordsSchema = z.object({
  metadata: z.object({ managedFields: z.array(z.custom<Field>()).optional() }),
});
const recordsIn = (object: unknown) => recordsSchema.parse(object).metadata.managedFields ?? [];

/**
 * Expects that a policy denies the request, or that the API server ignores the forged records: then those of others are
 * as before, and ours is short.
 */
async function expectNoForgery(
  client: KubeClient,
  request: KubeRequest,
  sentence: string,
  before: readonly Field[] = [],
): Promise<void> {
  const query = { dryRun: "All", fieldManager: CONTROLLER_FIELD_MANAGER, ...request.query };
  let after: readonly Field[];
  try {
    after = recordsIn(await client.json<unknown>({ ...request, query }));
  } catch (error) {
    if (!(error instanceof KubeApiError)) throw error;
    expectDenied(`${error.code} ${error.message}`, sentence);
    return;
  }
  const isOwn = ({ manager }: Field) => manager === query.fieldManager;
  const described = (records: readonly Field[]) =>
    records.filter((each) => !isOwn(each)).map(({ time: _, ...each }) => JSON.stringify(each));
  expect(described(after).sort()).toEqual(described(before).sort());
  const own = JSON.stringify(after.filter(isOwn));
  expect(own.length).toBeLessThan(2000);
  expect(own).not.toContain("f:replicas");
}

const scaling = () => ({
  apiVersion: API_VERSION,
  kind: KIND,
  metadata: { name: randomUUID() },
  spec: { suspend: true },
});

function lease(spec: object = {}, metadata: object = {}) {
  return {
    apiVersion: LEASES.apiVersion,
    kind: "Lease",
    metadata: { name: LEASE_NAME, ...metadata },
    spec: {
      holderIdentity: "a",
      leaseDurationSeconds: 15,
      renewTime: "2026-01-01T00:00:00.000000Z",
      ...spec,
    },
  };
}

function event(changes: object = {}, regarding: object = {}) {
  return anEvent(release.pipes, { ...changes, regarding });
}

const sized = (resources: object) => ({ spec: { containers: [{ name: "pipe", resources }] } });
const template = (change: object) => ({ spec: { template: change } });
const text = (length: number) => "a".repeat(length);

/** A field set with a field of this many characters. */
const fields = (length: number) => ({ "f:spec": { [`f:${text(length)}`]: {} } });

function record(changes: Partial<Field> = {}, apiVersion = "v1"): Field {
  const manager = CONTROLLER_FIELD_MANAGER;
  return { manager, operation: "Update", apiVersion, time: TIME, fieldsType: "FieldsV1", ...changes };
}

/** Records of field managers that a thief may add to an object. Takes the API version of the object. */
const FORGED: readonly [what: string, (apiVersion: string) => Field][] = [
  ["a long record of its own", (version) => record({ fieldsV1: fields(HUGE) }, version)],
  [
    "a long record of another manager",
    (version) => record({ manager: "helm", fieldsV1: fields(HUGE) }, version),
  ],
  [
    "a short record of another manager",
    (version) => record({ manager: "helm", fieldsV1: fields(1) }, version),
  ],
  [
    "a record of all older changes",
    (version) => record({ manager: "ancient-changes", fieldsV1: fields(HUGE) }, version),
  ],
  [
    "a record of the time before the first apply",
    (version) => record({ manager: "before-first-apply", fieldsV1: fields(HUGE) }, version),
  ],
  ["a record of its own with a long API version", () => record({ fieldsV1: { "f:spec": {} } }, text(LONG))],
  [
    "a record of its own of another subresource",
    (version) => record({ subresource: "scale", fieldsV1: { "f:spec": {} } }, version),
  ],
  [
    "a record of its own of a field that it may not write",
    (version) => record({ fieldsV1: { "f:spec": { "f:replicas": {} } } }, version),
  ],
];

describe("with the token of the controller, the field managers of a new object", () => {
  it.each(FORGED)("may not include %s, in a PipeScaling", async (_, forged) => {
    const managedFields = [forged(API_VERSION)];
    const body = { ...scaling(), metadata: { name: randomUUID(), managedFields } };
    const sentence = "may not change the field managers of a PipeScaling";
    await expectNoForgery(controller, creation(PIPE_SCALINGS, body), sentence);
  });

  it.each(FORGED)("may not include %s, in a Lease", async (_, forged) => {
    const body = lease({}, { managedFields: [forged(LEASES.apiVersion)] });
    const sentence = "may not change the field managers of a Lease";
    await expectNoForgery(controller, creation(LEASES, body), sentence);
  });

  it.each(FORGED)("may not include %s, in an Event", async (_, forged) => {
    const { metadata } = event();
    const body = event({ metadata: { ...metadata, managedFields: [forged(EVENTS.apiVersion)] } });
    const sentence = "may not change the field managers of an Event";
    await expectNoForgery(controller, creation(EVENTS, body), sentence);
  });

  it("may be no one but the controller", async () => {
    expectDenied(await create(PIPE_SCALINGS, scaling(), "helm"), "field managers of a PipeScaling");
    expectDenied(await create(EVENTS, event(), "helm"), "field managers of an Event");
    expectDenied(await create(LEASES, lease(), "helm"), "field managers of a Lease");
    expectDenied(await create(LEASES, lease(), "pipe-scaling"), "field managers of a Lease");
  });

  it("are accepted as the API server writes them", async () => {
    expect(await create(PIPE_SCALINGS, scaling())).toBe("accepted");
    expect(await create(EVENTS, event())).toBe("accepted");
    expect(await create(LEASES, lease())).toBe("accepted");
  });
});

describe("with the token of the controller, the field managers", () => {
  // Not before the attempts to create one.
  beforeAll(async () => {
    await admin.json(creation(LEASES, lease()));
  });

  const CASES: readonly [Resource, string, () => string, string][] = [
    [DEPLOYMENTS, "", () => "pipe", "of a Deployment"],
    [REPLICA_SETS, "", () => replicaSet, "of a ReplicaSet"],
    [STATEFUL_SETS, "", () => "stateful", "of a StatefulSet"],
    [PODS, "/resize", () => pod, "of a pod"],
    [PODS, "", () => "stateful-0", "of a pod"],
    [PIPE_SCALINGS, "/status", () => SERVICE, "of a PipeScaling"],
    [LEASES, "", () => LEASE_NAME, "of a Lease"],
  ];

  describe.each(CASES)("of existing %o%s", (resource, subresource, name, what) => {
    const attempt = async (edit: (records: readonly Field[]) => readonly object[]) => {
      const before = await recordsOf(resource, name());
      const metadata = { managedFields: edit(before) };
      const sentence = `may not change the field managers ${what}`;
      const request = await changeOf(resource, name(), { metadata }, subresource);
      await expectNoForgery(controller, request, sentence, before);
    };

    it.each(FORGED)("may not gain %s", async (_, forged) => {
      const added = forged(resource.apiVersion);
      const isSame = (each: Field) =>
        each.manager === added.manager && each.subresource === added.subresource;
      await attempt((records) => [...records.filter((each) => !isSame(each)), added]);
    });

    it("may not be removed", async () => {
      await attempt(() => [{}]);
    });

    it("may not have more fields in the record of another manager", async () => {
      await attempt((records) =>
        records.map((each) => ({ ...each, fieldsV1: { ...each.fieldsV1, [`f:${text(LONG)}`]: {} } })),
      );
      await attempt((records) =>
        records.map((each) => ({
          ...each,
          fieldsV1: { ...each.fieldsV1, "f:metadata": { "f:finalizers": { ".": {} } } },
        })),
      );
    });

    it("may not have another time in the record of another manager", async () => {
      await attempt((records) => records.map((each) => ({ ...each, time: TIME })));
    });

    it("may not have the record of another manager twice", async () => {
      await attempt((records) => [
        ...records,
        ...records.map((each) => ({ ...each, apiVersion: "example.com/v1", fieldsV1: fields(LONG) })),
        ...records.map((each) => ({ ...each, subresource: "scale", fieldsV1: fields(LONG) })),
      ]);
    });
  });

  it("of a Deployment with more than ten may not gain fields that none of them had", async () => {
    const attempt = async (fieldsV1: object) => {
      const records = await recordsOf(DEPLOYMENTS, "edited");
      const edited = records.map((each) =>
        each.manager === "ancient-changes" ? { ...each, fieldsV1 } : each,
      );
      expect(records.map(({ manager }) => manager)).toContain("ancient-changes");
      return change(DEPLOYMENTS, "edited", { metadata: { managedFields: edited } });
    };
    expectDenied(await attempt(fields(HUGE)), "may not change the field managers of a Deployment");
    expectDenied(await attempt({ "f:metadata": { "f:annotations": { "f:b": {} } } }), "field managers");
  });

  it("of a Deployment with more than ten may not be said to be of another time, when some are merged", async () => {
    const attempt = async (timeOf: (merged: Field) => string | undefined) => {
      const { metadata } = await admin.json<KubeObject>({ path: pathOf(DEPLOYMENTS, "edited") });
      const records: readonly Field[] = metadata.managedFields ?? [];
      const merged = records.find(({ manager }) => manager === "editor-9");
      if (!merged) throw new Error("editor-9 has no record");
      const managedFields = records
        .filter((each) => each !== merged)
        .map((each) => (each.manager === "ancient-changes" ? { ...each, time: timeOf(merged) } : each));
      const annotations = { [LAST_ROLLOUT_ANNOTATION]: "{}" };
      const { resourceVersion } = metadata;
      return change(DEPLOYMENTS, "edited", { metadata: { resourceVersion, annotations, managedFields } });
    };
    for (const time of ["2100-01-01T00:00:00Z", "2001-01-01T00:00:00Z", undefined])
      expectDenied(await attempt(() => time), "field managers of a Deployment");
    expect(await attempt(({ time }) => time)).toBe("accepted");
  });

  it("of a Deployment with more than ten may not become several ones of older changes", async () => {
    const { metadata } = await admin.json<KubeObject>({ path: pathOf(DEPLOYMENTS, "edited") });
    const records: readonly Field[] = metadata.managedFields ?? [];
    const managedFields = records.map((each) =>
      each.manager?.startsWith("editor-")
        ? { ...each, manager: "ancient-changes", subresource: each.manager }
        : each,
    );
    expect(managedFields).not.toEqual(records);
    const { resourceVersion } = metadata;
    const outcome = await change(DEPLOYMENTS, "edited", { metadata: { resourceVersion, managedFields } });
    expectDenied(outcome, "field managers of a Deployment");
  });

  it("of an object with more than ten may not become those of older changes", async () => {
    for (const [resource, name, what] of [
      [DEPLOYMENTS, "edited", "of a Deployment"],
      [STATEFUL_SETS, "stateful", "of a StatefulSet"],
      [REPLICA_SETS, replicaSet, ""],
    ] as const) {
      for (let index = 0; index < 11; index += 1) {
        const body = { metadata: { annotations: { [`example.com/b${index}`]: "a" } } };
        const query = { fieldManager: `other-${index}` };
        await admin.json({ ...patchOf(resource, name, body), query });
      }
      const cpu = { requests: { cpu: "2", memory: "8Gi" }, limits: { memory: "8Gi" } };
      const request = patchOf(resource, name, template(sized(cpu)));
      const merged = { ...request, query: { fieldManager: "ancient-changes" } };
      // The record of the controller manager, which set the size of the ReplicaSet, is one of them.
      if (resource.plural !== REPLICA_SETS.plural)
        expectDenied(await dryRunOf(controller, merged), `may not change the field managers ${what}`);
      expect(await dryRunOf(controller, request)).toBe("accepted");
    }
  });

  it("of a Deployment may lose only fields of the size, among the resources of its container", async () => {
    const disk = { "ephemeral-storage": "1Gi" };
    const { spec, ...others } = deployment("amounts", 0);
    const pod = {
      ...spec.template.spec,
      containers: spec.template.spec.containers.map((each) => ({
        ...each,
        resources: { requests: { ...RESOURCES.requests, ...disk }, limits: { ...RESOURCES.limits, ...disk } },
      })),
    };
    await apply(cluster, [{ ...others, spec: { ...spec, template: { ...spec.template, spec: pod } } }]);
    const without = (text: string) => async () => {
      const { metadata } = await admin.json<KubeObject>({ path: pathOf(DEPLOYMENTS, "amounts") });
      const records = JSON.stringify(metadata.managedFields);
      expect(records).toContain(text);
      const managedFields: unknown = JSON.parse(records.replace(text, ""));
      const { resourceVersion } = metadata;
      const outcome = await change(DEPLOYMENTS, "amounts", { metadata: { resourceVersion, managedFields } });
      // The controller manager has written the status meanwhile.
      return outcome.startsWith("409 ") ? undefined : outcome;
    };
    const what = "a write without a conflict";
    for (const text of [
      '"f:ephemeral-storage":{},',
      '"f:limits":{"f:ephemeral-storage":{},"f:memory":{}},',
      ',"f:resources":{"f:limits":{"f:ephemeral-storage":{},"f:memory":{}},"f:requests":{"f:cpu":{},"f:ephemeral-storage":{},"f:memory":{}}}',
    ])
      expectDenied(await waitFor(without(text), { what }), "field managers of a Deployment");
    expect(await waitFor(without('"f:cpu":{},'), { what })).toBe("accepted");
    const cpu = { requests: { cpu: "2", memory: "8Gi" }, limits: { memory: "8Gi" } };
    expect(await change(DEPLOYMENTS, "amounts", template(sized(cpu)))).toBe("accepted");
  });

  it("of a Deployment may not say that another manager paused it", async () => {
    const [other] = (await recordsOf(DEPLOYMENTS, "pipe")).map(({ manager }) => manager);
    const cpu = { requests: { cpu: "2", memory: "8Gi" }, limits: { memory: "8Gi" } };
    const body = { spec: { paused: true, template: sized(cpu) } };
    const request = patchOf(DEPLOYMENTS, "pipe", body);
    expect(await dryRunOf(controller, request)).toBe("accepted");
    const forged = await dryRunOf(controller, { ...request, query: { fieldManager: other } });
    expectDenied(forged, "may not change the field managers of a Deployment");
  });
});

describe("with the token of the controller, the size of a container", () => {
  it.each<[string, object]>([
    ["the cpu request", { requests: { cpu: null } }],
    ["the memory request", { requests: { memory: null } }],
    ["the memory limit", { limits: { memory: null } }],
    ["all requests", { requests: null }],
    ["all limits", { limits: null }],
    ["all resources", { requests: null, limits: null }],
  ])("in a ReplicaSet may not lose %s", async (_, resources) => {
    const outcome = await change(REPLICA_SETS, replicaSet, template(sized(resources)));
    expectDenied(outcome, "may remove neither requests nor limits");
  });

  it("in a Deployment may not lose its limit together with a pause", async () => {
    const body = { spec: { paused: true, template: sized({ limits: { memory: null } }) } };
    expectDenied(await change(DEPLOYMENTS, "pipe", body), "only the sizes of tiers");
  });
});

describe("with the token of the controller, a new object", () => {
  it.each<[string, () => object]>([
    ["a uid of 1 MB", () => event({}, { uid: text(HUGE) })],
    ["a name of 1 MB", () => event({}, { name: text(HUGE) })],
    ["a name of 254 characters", () => event({}, { name: text(254) })],
    ["a field path", () => event({}, { fieldPath: "spec" })],
    ["a resource version", () => event({}, { resourceVersion: text(LONG) })],
    ["an object of another namespace", () => event({}, { namespace: "kube-system" })],
  ])("may not be an Event with %s", async (_, body) => {
    expectDenied(await create(EVENTS, body()), "only Events about an object of their namespace");
  });

  it("has no link to itself, as an Event", async () => {
    const body = event({ metadata: { ...event().metadata, selfLink: text(HUGE) } });
    expect(
      await controller.json({
        ...creation(EVENTS, body),
        query: { dryRun: "All", fieldManager: CONTROLLER_FIELD_MANAGER },
      }),
    ).not.toHaveProperty("metadata.selfLink");
  });

  it("may not be an Event with a source of earlier versions, which the API server refuses itself", async () => {
    const outcome = await create(EVENTS, event({ deprecatedSource: { component: text(HUGE) } }));
    expect(outcome).toMatch(/^422 .*source: Invalid value/s);
  });

  it("may not be a PipeScaling with a strategy", async () => {
    const outcome = await create(PIPE_SCALINGS, { ...scaling(), spec: { strategy: "Rollout" } });
    expectDenied(outcome, "only PipeScalings with a size");
  });

  it("has no link to itself, as a PipeScaling", async () => {
    const metadata = { name: randomUUID(), selfLink: text(HUGE) };
    const request = creation(PIPE_SCALINGS, { ...scaling(), metadata });
    const query = { ...request.query, dryRun: "All" };
    expect(await controller.json({ ...request, query })).not.toHaveProperty("metadata.selfLink");
  });
});

describe("with the token of the controller, its Lease", () => {
  it.each<[string, object, string]>([
    ["of 61 s", { leaseDurationSeconds: 61 }, "for at most 60 s"],
    ["of 68 years", { leaseDurationSeconds: 2_147_483_647 }, "for at most 60 s"],
    ["with a holder of 1 MB", { holderIdentity: text(HUGE) }, "only the spec of its Lease"],
    ["with a preferred holder of 1 MB", { preferredHolder: text(HUGE) }, "of a Lease"],
    ["with a strategy", { strategy: "OldestEmulationVersion" }, "of a Lease"],
  ])("may not be held %s", async (_, spec, sentence) => {
    const request = await changeOf(LEASES, LEASE_NAME, { spec });
    expectDenied(await dryRunOf(controller, request), sentence);
  });

  it("may be renewed", async () => {
    const renewal = lease({ renewTime: "2026-01-01T00:00:02.000000Z" });
    const request = await changeOf(LEASES, LEASE_NAME, { spec: renewal.spec });
    expect(await dryRunOf(controller, request)).toBe("accepted");
  });
});

describe("with the token of the API, the field managers", () => {
  it.each(FORGED)("of a new record may not include %s", async (_, forged) => {
    const metadata = { ...BACKUP.metadata, name: `backup-${randomUUID()}` };
    const own = forged("v1");
    const manager = own.manager === CONTROLLER_FIELD_MANAGER ? API_FIELD_MANAGER : own.manager;
    const managedFields = [{ ...own, manager }];
    const body = { ...BACKUP, metadata: { ...metadata, managedFields } };
    const sentence = "may not change the field managers of a record";
    await expectNoForgery(api, creation(CONFIG_MAPS, body, API_FIELD_MANAGER), sentence);
  });

  it.each(FORGED)("of a record may not gain %s", async (_, forged) => {
    const own = forged("v1");
    const manager = own.manager === CONTROLLER_FIELD_MANAGER ? API_FIELD_MANAGER : own.manager;
    const before = await recordsOf(CONFIG_MAPS, BACKUP.metadata.name);
    const metadata = { managedFields: [...before, { ...own, manager }] };
    const sentence = "may not change the field managers of a record";
    const request = asApi(patchOf(CONFIG_MAPS, BACKUP.metadata.name, { metadata }));
    await expectNoForgery(api, request, sentence, before);
  });

  it("of a record may not include keys that it does not have", async () => {
    const fieldsV1 = { "f:data": { "f:absent": {} } };
    const forged = record({ manager: API_FIELD_MANAGER, fieldsV1 });
    const managedFields = [...(await recordsOf(CONFIG_MAPS, USAGE.metadata.name)), forged];
    const outcome = await changeAsApi(CONFIG_MAPS, USAGE.metadata.name, { metadata: { managedFields } });
    expectDenied(outcome, "may not change the field managers of a record");
  });

  it.each(FORGED)("of a PipeScaling may not gain %s", async (_, forged) => {
    const own = forged(API_VERSION);
    const manager = own.manager === CONTROLLER_FIELD_MANAGER ? API_FIELD_MANAGER : own.manager;
    const before = await recordsOf(PIPE_SCALINGS, SERVICE);
    const metadata = { managedFields: [...before, { ...own, manager }] };
    const sentence = "may not change the field managers of a PipeScaling";
    const request = asApi(patchOf(PIPE_SCALINGS, SERVICE, { metadata }));
    await expectNoForgery(api, request, sentence, before);
  });

  it("of a PipeScaling may not include the fields of others as its own", async () => {
    const fieldsV1 = { "f:spec": { "f:strategy": {} } };
    const forged = record({ manager: API_FIELD_MANAGER, fieldsV1 }, API_VERSION);
    const managedFields = [...(await recordsOf(PIPE_SCALINGS, SERVICE)), forged];
    const outcome = await changeAsApi(PIPE_SCALINGS, SERVICE, { metadata: { managedFields } });
    expectDenied(outcome, "may not change the field managers of a PipeScaling");
  });

  it("of a PipeScaling without any may be those of a first apply, and no more", async () => {
    await admin.json({
      ...patchOf(PIPE_SCALINGS, EDITED, { metadata: { managedFields: [{}], annotations: { "a.b/c": "d" } } }),
    });
    expect(await recordsOf(PIPE_SCALINGS, EDITED)).toEqual([]);
    const outcome = await dryRunOf(api, {
      method: "PATCH",
      path: pathOf(PIPE_SCALINGS, EDITED),
      query: { fieldManager: API_FIELD_MANAGER, force: true },
      patchType: "application/apply-patch+yaml",
      body: {
        apiVersion: API_VERSION,
        kind: KIND,
        metadata: { name: EDITED, annotations: { [REQUEST_ANNOTATION]: "{}" } },
        spec: { replicaCpuMillicores: 2000, replicaMemoryGb: 8 },
      },
    });
    expect(outcome).toBe("accepted");
    for (const change of [
      { fieldsV1: fields(HUGE) },
      { fieldsV1: { "f:metadata": { "f:labels": { "f:a": {} } } } },
      // The API server would keep thousands of them.
      { operation: "Apply", fieldsV1: { "f:spec": { "f:strategy": {} } } },
      { subresource: "scale", fieldsV1: { "f:spec": { "f:strategy": {} } } },
    ]) {
      const forged = record({ manager: "before-first-apply", ...change }, API_VERSION);
      const body = { metadata: { managedFields: [forged] } };
      expectDenied(await changeAsApi(PIPE_SCALINGS, EDITED, body), "field managers of a PipeScaling");
    }
  });

  it("of a PipeScaling with more than ten may not become those of older changes, or lose an apply", async () => {
    const name = randomUUID();
    await apply(cluster, [{ ...scaling(), metadata: { name, namespace: release.pipes } }]);
    for (let index = 0; index < 11; index += 1) {
      const spec = { replicaCpuMillicores: 1000 * (index + 1), replicaMemoryGb: 4 * (index + 1) };
      const body = { metadata: { annotations: { [`example.com/a${index}`]: "a" } }, spec };
      const query = { fieldManager: `editor-${index}` };
      await admin.json({ ...patchOf(PIPE_SCALINGS, name, body), query });
    }
    const size = { spec: { replicaCpuMillicores: 1000, replicaMemoryGb: 4 } };
    const request = patchOf(PIPE_SCALINGS, name, size);
    const merged = { ...request, query: { fieldManager: "ancient-changes" } };
    expectDenied(await dryRunOf(api, merged), "field managers of a PipeScaling");
    const records = await recordsOf(PIPE_SCALINGS, name);
    const managedFields = records.filter(({ operation }) => operation !== "Apply");
    expect(managedFields.length).toBeLessThan(records.length);
    const outcome = await changeAsApi(PIPE_SCALINGS, name, { metadata: { managedFields } });
    expectDenied(outcome, "field managers of a PipeScaling");
    expect(await changeAsApi(PIPE_SCALINGS, name, size)).toBe("accepted");
    await api.json(asApi(request));
    const after = (await recordsOf(PIPE_SCALINGS, name)).map(({ manager }) => manager);
    expect(after).toEqual(expect.arrayContaining(["ancient-changes", API_FIELD_MANAGER]));
  });

  it.each([
    ["record", CONFIG_MAPS, () => backupConfigMap(randomUUID(), ORGANIZATION, POLICY)],
    ["PipeScaling", PIPE_SCALINGS, () => ({ ...scaling(), metadata: { name: randomUUID() } })],
  ] as const)(
    "of a %s may not lose that of a label, an annotation or a finalizer in the name of older changes",
    async (what, resource, create) => {
      const object = create();
      const { name } = object.metadata;
      const metadata = { ...object.metadata, namespace: namespaceOf(resource) };
      await admin.json({
        ...creation(resource, { ...object, metadata }),
        query: { fieldManager: "editor-0" },
      });
      const edited = async (body: object, editor: number) =>
        admin.json<KubeObject>({
          ...patchOf(resource, name, body),
          query: { fieldManager: `editor-${editor}` },
        });
      for (let index = 1; index < 10; index += 1)
        await edited({ metadata: { annotations: { [`example.com/a${index}`]: "a" } } }, index);
      const tag = { "example.com/thief": "b" };
      for (const change of [{ labels: tag }, { annotations: tag }, { finalizers: ["example.com/never"] }]) {
        const present = await admin.json<KubeObject>({ path: pathOf(resource, name) });
        const older = await edited(withOneOlder(present.metadata), 1);
        expect(older.metadata.managedFields).toHaveLength(10);
        const request = {
          ...patchOf(resource, name, { metadata: change }),
          query: { fieldManager: "ancient-changes" },
        };
        expectDenied(await dryRunOf(api, request), `in the metadata of a ${what}`);
      }
    },
  );

  it("of a record with more than ten may not lose an apply", async () => {
    const { data, ...record } = backupConfigMap(randomUUID(), ORGANIZATION, POLICY);
    const metadata = { ...record.metadata, namespace: release.records };
    const { name } = metadata;
    await apply(cluster, [{ ...record, metadata, data: { ...data, note: "by an administrator" } }]);
    expect(await changeAsApi(CONFIG_MAPS, name, { data: { backupPeriodInHours: null } })).toBe("accepted");
    for (let index = 0; index < 11; index += 1) {
      const body = { data: { [`note-${index}`]: "a" } };
      await admin.json({
        ...patchOf(CONFIG_MAPS, name, body),
        query: { fieldManager: `editor-${index}` },
      });
    }
    const records = await recordsOf(CONFIG_MAPS, name);
    const managedFields = records.filter(({ operation }) => operation !== "Apply");
    expect(managedFields.length).toBeLessThan(records.length);
    const outcome = await changeAsApi(CONFIG_MAPS, name, { metadata: { managedFields } });
    expectDenied(outcome, "field managers of a record");
    const change = { data: { backupPeriodInHours: "24" } };
    const merged = { ...patchOf(CONFIG_MAPS, name, change), query: { fieldManager: "ancient-changes" } };
    expectDenied(await dryRunOf(api, merged), "field managers of a record");
    expect(await changeAsApi(CONFIG_MAPS, name, change)).toBe("accepted");
  });

  it.each(["evil", "a".repeat(200), `${randomUUID()}-evil`])(
    "of a new record do not matter if its name is backup-%s",
    async (suffix) => {
      const metadata = { ...BACKUP.metadata, name: `backup-${suffix}` };
      const request = creation(CONFIG_MAPS, { ...BACKUP, metadata }, API_FIELD_MANAGER);
      expectDenied(await dryRunOf(api, request), "only records of members");
    },
  );
});

it("with the token of the controller, an annotation may not be recorded under another name", async () => {
  const body = { metadata: { annotations: { [LAST_ROLLOUT_ANNOTATION]: "{}" } } };
  const request = { ...patchOf(DEPLOYMENTS, "pipe", body), query: { fieldManager: "helm" } };
  expectDenied(await dryRunOf(controller, request), "Deployment");
});
