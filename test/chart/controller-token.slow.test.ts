import { randomUUID } from "node:crypto";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LAST_ROLLOUT_ANNOTATION, LEASE_NAME } from "../../src/controller/names.ts";
import {
  formatLastRollout,
  type LastRollout,
  parseLastRollout,
} from "../../src/controller/observe/last-rollout.ts";
import { presentForm } from "../../src/controller/observe/pipe-view.ts";
import { type Allotment, resourcesFor, resourcesOf } from "../../src/controller/observe/resources.ts";
import { toPipeView } from "../../src/controller/observe/workloads/deployment.ts";
import { API_VERSION, CONTROLLER_FIELD_MANAGER, KIND, PIPE_SCALINGS } from "../../src/crd/names.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import type { KubeClient, KubeRequest } from "../../src/kube/client.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import {
  collectionPath,
  DEPLOYMENTS,
  EVENTS,
  LEASES,
  objectPath,
  type Resource,
} from "../../src/kube/paths.ts";
import type { Deployment } from "../../src/kube/workloads.ts";
import { pipeDeployment } from "../support/fixtures/pipe.ts";
import { PatientClient } from "../support/patient-client.ts";
import { clientOf, install, prepareRelease, type Release, remove } from "./accounts.ts";
import { dryRunOf, expectDenied } from "./denials.ts";
import { anEvent } from "./events.ts";

// Each test sends a request with the token of the controller to the API server, as a thief could.
const OWNER = { apiVersion: "v1", kind: "ConfigMap", name: "absent", uid: randomUUID() };
const SERVICE = randomUUID();
const MANAGED = { query: { fieldManager: CONTROLLER_FIELD_MANAGER } };

/** Resources that are no valid size. */
const SMALL: Allotment = { requests: { cpu: "250m", memory: null }, limits: { memory: null } };

let cluster: Cluster;
let release: Release;
let controller: KubeClient;
let admin: PatientClient;

beforeAll(async () => {
  cluster = await sharedCluster();
  release = await prepareRelease(cluster);
  await install(cluster, release, "--set", "crds.enabled=false");
  controller = await clientOf(cluster, release, "controller");
  admin = await PatientClient.of(cluster);
  await apply(cluster, [
    deployment("pipe", resourcesFor(sizeOfCores(1), false)),
    deployment("small", { requests: { cpu: "250m" } }),
    {
      apiVersion: API_VERSION,
      kind: KIND,
      metadata: { name: SERVICE, namespace: release.pipes },
      spec: { suspend: true },
    },
  ]);
  const attempts: readonly (() => Promise<string>)[] = [
    () => patchPipe("pipe", resized(amounts("1000", "4000Gi"))),
    () => create(PIPE_SCALINGS, release.pipes, scaling("evil")),
    () => create(LEASES, release.records, lease("evil")),
    () => create(EVENTS, release.pipes, event({ reportingController: "evil" })),
  ];
  for (const attempt of attempts) {
    const isDenied = async () => {
      expectDenied(await attempt(), "the controller may");
      return true;
    };
    await waitFor(isDenied, { what: "the policies to take effect" });
  }
});
afterAll(async () => {
  await controller?.close();
  await admin?.close();
  if (release) await remove(cluster, release);
});

function deployment(name: string, resources: object) {
  const pipe = pipeDeployment({ name, namespace: release.pipes, serviceId: SERVICE, replicas: 0 });
  const { template } = pipe.spec;
  const containers = template.spec.containers.map((container) => ({ ...container, resources }));
  return {
    ...pipe,
    spec: { ...pipe.spec, template: { ...template, spec: { ...template.spec, containers } } },
  };
}

function create(resource: Resource, namespace: string, body: object): Promise<string> {
  return dryRunOf(controller, {
    method: "POST",
    path: collectionPath(resource, namespace),
    ...MANAGED,
    body,
  });
}

function patch(resource: Resource, namespace: string, name: string, body: object): KubeRequest {
  const path = objectPath(resource, namespace, name);
  return { method: "PATCH", path, ...MANAGED, patchType: "application/merge-patch+json", body };
}

function pipePatch(name: string, body: object): KubeRequest {
  return {
    ...patch(DEPLOYMENTS, release.pipes, name, body),
    query: { fieldManager: CONTROLLER_FIELD_MANAGER },
    patchType: "application/strategic-merge-patch+json",
  };
}

function patchPipe(name: string, body: object): Promise<string> {
  return dryRunOf(controller, pipePatch(name, body));
}

const amounts = (cpu: string, memory: string) => ({ requests: { cpu, memory }, limits: { memory } });
const resized = (resources: object) => ({
  spec: { template: { spec: { containers: [{ name: "pipe", resources }] } } },
});
const annotated = (text: string) => ({ metadata: { annotations: { [LAST_ROLLOUT_ANNOTATION]: text } } });

const KEYS = "the keys of its annotation only as it writes them itself";

/** A resize to one core from another size. */
function parsedRollout(lastGoodSize: Allotment): LastRollout {
  return {
    size: sizeOfCores(1),
    lastGoodSize,
    isRollback: false,
    startedAtMs: 0,
    cameUp: false,
    attempts: 1,
    serviceId: SERVICE,
    scalingUid: randomUUID(),
    scalingGeneration: 1,
    generation: 2,
    revision: 2,
    progressedAtS: 0,
    replicas: 0,
  };
}

/** The annotation of such a resize. */
function lastRollout(lastGoodSize: Allotment): string {
  return formatLastRollout(parsedRollout(lastGoodSize), randomUUID());
}

describe("with the token of the controller, the size of a pipe", () => {
  it.each([1, 7, 24])("may be %d cores with their memory", async (cores) => {
    const resources = resourcesFor(sizeOfCores(cores), false);
    expect(await patchPipe("pipe", resized(resources))).toBe("accepted");
    expect(await patchPipe("small", resized(resources))).toBe("accepted");
  });

  it.each([
    ["1000 cores", amounts("1000", "4000Gi")],
    ["one step more than the largest tier", amounts("25", "100Gi")],
    ["1 MiB", amounts("1", "1Mi")],
    ["half a core", amounts("500m", "2Gi")],
    ["more memory than belongs to the cores", amounts("1", "96Gi")],
    ["a memory limit of another size", { limits: { memory: "96Gi" } }],
    ["a memory request of another size", { requests: { memory: "1Gi" } }],
    ["no memory limit", { limits: { memory: null } }],
    ["no request", { requests: { cpu: null } }],
  ])("may not be %s", async (_, resources) => {
    expectDenied(await patchPipe("pipe", resized(resources)), "only the sizes of tiers");
  });

  it("may return to resources that are no valid size after the annotation recorded them", async () => {
    const back = resized(resourcesFor(SMALL, false));
    const name = "rolled-back";
    await apply(cluster, [deployment(name, { requests: { cpu: "250m" } })]);
    const change = {
      ...annotated(lastRollout(SMALL)),
      ...resized(resourcesFor(sizeOfCores(1), false)),
    };
    await controller.json(pipePatch(name, change));
    expect(await patchPipe(name, back)).toBe("accepted");
    expect(await patchPipe(name, { ...annotated(lastRollout(SMALL)), ...back })).toBe("accepted");
    expectDenied(await patchPipe(name, resized(amounts("250m", "1Gi"))), "only the sizes of tiers");
  });

  it("may return to a size that is no step after the annotation recorded it", async () => {
    const half = { cpuMillicores: 500, memoryGib: 3 };
    const name = "half";
    await apply(cluster, [deployment(name, resourcesFor(half, false))]);
    const change = { ...annotated(lastRollout(half)), ...resized(resourcesFor(sizeOfCores(1), false)) };
    await controller.json(pipePatch(name, change));
    expect(await patchPipe(name, resized(resourcesFor(half, false)))).toBe("accepted");
    for (const other of [amounts("500m", "2Gi"), amounts("24", "3Gi")])
      expectDenied(await patchPipe(name, resized(other)), "only the sizes of tiers");
  });
});

describe("with the token of the controller, a template whose size has another form", () => {
  it.each<[string, object, boolean?]>([
    ["no-memory-request", { requests: { cpu: "1" }, limits: { memory: "4Gi" } }],
    ["in-bytes", { requests: { cpu: "1", memory: "4294967296" }, limits: { memory: "4294967296" } }],
    ["only-limits", { limits: { cpu: "1", memory: "4Gi" } }],
    ["no-cpu-request", { requests: { memory: "4Gi" }, limits: { cpu: "1", memory: "4Gi" } }],
    ["only-limits-of-no-size", { limits: { cpu: "1500m", memory: "3000Mi" } }, true],
  ])("may become the same again: %s", async (name, resources, isNoSize = false) => {
    await apply(cluster, [deployment(name, resources)]);
    const read = () => admin.json<Deployment>({ path: objectPath(DEPLOYMENTS, release.pipes, name) });
    const before = await read();
    const pipe = toPipeView(before);
    const form = presentForm(pipe);
    const size = isNoSize ? undefined : sizeOfCores(1);
    expect([pipe.size, form]).toEqual([size, resourcesOf({ name, resources })]);
    if (!form) return;
    const change = resized(resourcesFor(sizeOfCores(2), pipe.cpuLimitFollows));
    await controller.json(pipePatch(name, { ...annotated(lastRollout(form)), ...change }));
    const own = resourcesFor(form, pipe.cpuLimitFollows);
    if (own.limits.cpu !== undefined) {
      const throttled = { ...own, limits: { ...own.limits, cpu: "1m" } };
      expectDenied(await patchPipe(name, resized(throttled)), "an existing cpu limit to the cpu request");
    }
    await controller.json(pipePatch(name, resized(own)));
    expect((await read()).spec.template).toEqual(before.spec.template);
  });
});

describe("with the token of the controller, the annotation of a pipe", () => {
  it.each<[string, string, Allotment]>([
    ["the current size", "pipe", sizeOfCores(1)],
    ["another valid size", "pipe", sizeOfCores(24)],
    ["the current resources, which are no valid size", "small", SMALL],
  ])("may record %s", async (_, name, size) => {
    expect(await patchPipe(name, annotated(lastRollout(size)))).toBe("accepted");
  });

  it.each<[string, Allotment]>([
    ["resources that the pipe never had", SMALL],
    ["a size of 1000 cores", sizeOfCores(1000)],
    ["a size that is no step", { cpuMillicores: 1, memoryGib: 1 }],
    ["its memory with other CPU", { cpuMillicores: 999_000, memoryGib: 4 }],
    ["its CPU with other memory", { cpuMillicores: 1000, memoryGib: 96 }],
  ])("may not record %s", async (_, size) => {
    expectDenied(await patchPipe("pipe", annotated(lastRollout(size))), "only a valid size");
  });

  it("may not record a size twice", async () => {
    const twice = lastRollout(sizeOfCores(1)) + lastRollout(SMALL);
    expectDenied(await patchPipe("pipe", annotated(twice)), "only a valid size");
  });

  // A parser of JSON finds the same key in all of these.
  it.each<[string, string]>([
    ["an escaped letter", '"lastGood\\u0053ize":"'],
    ["an escaped letter in small hexadecimal digits", '"\\u006castGoodSize":"'],
    [
      "escaped letters only",
      `"${[..."lastGoodSize"].map((each) => `\\u00${each.charCodeAt(0).toString(16)}`).join("")}":"`,
    ],
    ["a space before the colon", '"lastGoodSize" :"'],
    ["a space after the colon", '"lastGoodSize": "'],
    ["spaces around the colon", '"lastGoodSize" : "'],
    ["a line break after the colon", '"lastGoodSize":\n"'],
    ["a tab before the colon", '"lastGoodSize"\t:"'],
    ["spaces around it", ' \r\n "lastGoodSize" : "'],
  ])("may not record a size by a key with %s", async (_, key) => {
    for (const size of [sizeOfCores(1000), SMALL]) {
      const hidden = lastRollout(size).replace('"lastGoodSize":"', key);
      expect(parseLastRollout(hidden)?.lastGoodSize).toEqual(size);
      expectDenied(await patchPipe("pipe", annotated(hidden)), KEYS);
    }
    // The last one counts.
    const hidden = lastRollout(SMALL).slice(1).replace('"lastGoodSize":"', key);
    const twice = `${lastRollout(sizeOfCores(1)).slice(0, -1)},${hidden}`;
    expect(parseLastRollout(twice)?.lastGoodSize).toEqual(SMALL);
    expectDenied(await patchPipe("pipe", annotated(twice)), KEYS);
  });

  it("may not record a size by a key with a space before it", async () => {
    const spaced = lastRollout(SMALL).replace('"lastGoodSize":"', ' "lastGoodSize":"');
    expectDenied(await patchPipe("pipe", annotated(spaced)), "only a valid size");
  });

  it.each([
    ["an escaped letter", '"isCommittin\\u0067":true'],
    ["a space after the colon", '"isCommitting": true'],
    ["a line break before the colon", '"isCommitting"\n:true'],
  ])("may not say by a key with %s that the controller paused the pipe", async (_, entry) => {
    const hidden = lastRollout(sizeOfCores(1)).replace("{", `{${entry},`);
    expect(parseLastRollout(hidden)?.isCommitting).toBe(true);
    expectDenied(await patchPipe("pipe", annotated(hidden)), KEYS);
  });

  it.each([
    "lastGoodSize",
    "isCommitting",
    'the key "lastGoodSize" : "1000000m/4000Gi"',
    '{"lastGoodSize":1,"isCommitting":"no"}',
    ',"lastGoodSize',
    '{ "isCommitting',
    "\\u0053 \\\\u0053 \\\\\\u0053 {",
    '\\"lastGoodSize\\" : \\',
    "<a> & 'b' \u0000\u0001\t\r\n\u001f\u007f\u0080\u2028",
    "é 🙂 \ud83d \ude42",
  ])("may have each text as the controller writes it, such as %j", async (message) => {
    const rollout: LastRollout = {
      ...parsedRollout(sizeOfCores(2)),
      failure: { reason: "FailedCreate", message },
      inPlaceFailure: { size: sizeOfCores(2), reason: "Deferred", message, atMs: 1 },
      outOfMemory: { size: sizeOfCores(1), previous: sizeOfCores(2), pipe: message, message, atMs: 1 },
      isCommitting: false,
      serviceId: message,
      requestId: message,
      template: message,
    };
    const text = formatLastRollout(rollout, randomUUID());
    expect(parseLastRollout(text)).toEqual(rollout);
    expect(await patchPipe("pipe", annotated(text))).toBe("accepted");
  });

  it("may not record a size of a pipe with several containers, none of which can be resized", async () => {
    await apply(cluster, [
      pipeDeployment({
        name: "several",
        namespace: release.pipes,
        serviceId: SERVICE,
        replicas: 0,
        containers: ["pipe", "sidecar"],
      }),
    ]);
    for (const size of [{ cpuMillicores: 999_999_999, memoryGib: 999_999_999 }, sizeOfCores(1000), SMALL])
      expectDenied(await patchPipe("several", annotated(lastRollout(size))), "only a valid size");
    expect(await patchPipe("several", annotated(lastRollout(sizeOfCores(1))))).toBe("accepted");
  });

  it("may have 8192 characters, but not more", async () => {
    expect(await patchPipe("pipe", annotated("a".repeat(8192)))).toBe("accepted");
    expectDenied(await patchPipe("pipe", annotated("a".repeat(8193))), "at most 8192 characters");
  });
});

describe("with the token of the controller, the field managers of a pipe", () => {
  const SENTENCE = "may not change the field managers of a Deployment";

  async function fieldsOf(name: string) {
    const { metadata } = await admin.json<KubeObject>({ path: objectPath(DEPLOYMENTS, release.pipes, name) });
    return metadata.managedFields ?? [];
  }

  it("may not be removed", async () => {
    expectDenied(await patchPipe("pipe", { metadata: { managedFields: [{}] } }), SENTENCE);
  });

  it("may not lose a field that is not of the size", async () => {
    const managedFields = (await fieldsOf("pipe")).map((each) => {
      const text = JSON.stringify(each).replace('"f:image":{},', "");
      return JSON.parse(text);
    });
    expectDenied(await patchPipe("pipe", { metadata: { managedFields } }), SENTENCE);
  });

  it("may not include another manager", async () => {
    const [first] = await fieldsOf("pipe");
    const managedFields = [...(await fieldsOf("pipe")), { ...first, manager: "evil" }];
    expectDenied(await patchPipe("pipe", { metadata: { managedFields } }), SENTENCE);
    const request = pipePatch("pipe", resized(resourcesFor(sizeOfCores(2), false)));
    expectDenied(await dryRunOf(controller, { ...request, query: { fieldManager: "evil" } }), SENTENCE);
  });

  it("may lose a manager of nothing but the size", async () => {
    await apply(cluster, [deployment("shared", {})]);
    const resize = resized(resourcesFor(sizeOfCores(1), false));
    await admin.json({ ...pipePatch("shared", resize), query: { fieldManager: "kubectl-set" } });
    expect(await patchPipe("shared", resized(resourcesFor(sizeOfCores(2), false)))).toBe("accepted");
  });

  it("may lose the only annotation of a manager, of a pipe restored from a backup", async () => {
    const pipe = deployment("restored", resourcesFor(sizeOfCores(1), false));
    const metadata = { ...pipe.metadata, ...annotated(lastRollout(sizeOfCores(1))).metadata };
    await admin.json({
      method: "POST",
      path: collectionPath(DEPLOYMENTS, release.pipes),
      query: { fieldManager: "velero" },
      body: { ...pipe, metadata },
    });
    const resize = {
      ...annotated(lastRollout(sizeOfCores(3))),
      ...resized(resourcesFor(sizeOfCores(2), false)),
    };
    expect(await patchPipe("restored", resize)).toBe("accepted");
  });

  it("may be merged by the API server if there are more than ten", async () => {
    await apply(cluster, [deployment("edited", {})]);
    for (let index = 0; index < 12; index += 1) {
      const annotations = { [`example.com/a${index}`]: "a" };
      const query = { fieldManager: `editor-${index}` };
      await admin.json({ ...pipePatch("edited", { metadata: { annotations } }), query });
    }
    expect(await patchPipe("edited", resized(resourcesFor(sizeOfCores(2), false)))).toBe("accepted");
    expectDenied(await patchPipe("edited", { metadata: { managedFields: [{}] } }), SENTENCE);
  });
});

function scaling(name: string, metadata: object = {}) {
  return { apiVersion: API_VERSION, kind: KIND, metadata: { name, ...metadata }, spec: {} };
}

describe("with the token of the controller, a PipeScaling", () => {
  it("may be created with the ID of a service", async () => {
    expect(await create(PIPE_SCALINGS, release.pipes, scaling(randomUUID()))).toBe("accepted");
  });

  it.each<[string, string, object]>([
    ["another name", "evil", {}],
    ["a longer name", `${randomUUID()}-evil`, {}],
    ["a name that ends with an ID", `evil-${randomUUID()}`, {}],
    ["owners", randomUUID(), { ownerReferences: [OWNER] }],
    ["finalizers", randomUUID(), { finalizers: ["example.com/never"] }],
    ["labels", randomUUID(), { labels: { a: "b" } }],
    ["annotations", randomUUID(), { annotations: { a: "b" } }],
  ])("may not be created with %s", async (_, name, metadata) => {
    const outcome = await create(PIPE_SCALINGS, release.pipes, scaling(name, metadata));
    expectDenied(outcome, "only PipeScalings that are named after a service");
  });

  const time = "2026-01-01T00:00:00Z";
  const text = (length: number) => "🙂".repeat(length);
  const condition = (changes: object = {}) => ({
    type: "Ready",
    status: "False",
    lastTransitionTime: time,
    reason: "Progressing",
    message: "",
    ...changes,
  });
  const failure = (changes: object = {}) => ({
    pipe: "pipe",
    reason: "FailedCreate",
    message: "",
    attempts: 1,
    at: time,
    size: { replicaCpuMillicores: 1000, replicaMemoryGb: 4, summary: "1 cpu / 4 Gi" },
    ...changes,
  });
  const pipes = (parts: object) => ({ pipes: { total: 1, updated: 0, summary: "0/1", ...parts } });
  const propagation = (requestId: string) => ({ propagation: { requestId, startedAt: time } });

  function writeStatus(status: object): Promise<string> {
    const request = patch(PIPE_SCALINGS, release.pipes, SERVICE, { status });
    return dryRunOf(controller, { ...request, path: `${request.path}/status` });
  }

  it("may have a status with texts of the lengths of the CRD", async () => {
    const outcome = await writeStatus({
      conditions: [condition({ message: text(8192) })],
      failures: [failure({ message: text(1024) })],
      tier: text(253),
      ...propagation(text(128)),
      ...pipes({ resizedBy: { ["a".repeat(253)]: "Rollout" } }),
    });
    expect(outcome).toBe("accepted");
  });

  it("may have a status with the names of a thousand pipes", async () => {
    const names = Array.from({ length: 1000 }, (_, index) => `statefulset/a-${index}.b${"c".repeat(230)}`);
    const resizedBy = Object.fromEntries(names.map((name) => [name, "Rollout"]));
    expect(await writeStatus(pipes({ resizedBy }))).toBe("accepted");
  });

  // A name in other characters would need up to four times as many bytes.
  it.each<[string, (pipe: string) => object]>([
    ["a pipe that was resized", (pipe) => pipes({ resizedBy: { [pipe]: "Rollout" } })],
    ["a pending pipe", (name) => pipes({ pending: [{ name, state: "Waiting" }] })],
    ["a fallback", (pipe) => pipes({ fallbacks: [{ pipe, reason: "Deferred", message: "" }] })],
    ["a failure", (pipe) => ({ failures: [failure({ pipe })] })],
  ])("may not have a status in which the name of %s has other characters than a name", async (_, status) => {
    for (const name of ["pipe-1", "statefulset/pipe.a-1"])
      expect(await writeStatus(status(name))).toBe("accepted");
    for (const name of [text(150), "", "Pipe", "a b", "a\nb", "é"])
      expect(await writeStatus(status(name))).toMatch(/^422 .*(only lowercase letters|should match)/s);
  });

  it.each<[string, object, RegExp]>([
    ["the message of a condition", { conditions: [condition({ message: text(8193) })] }, /than 8192/],
    ["the reason of a condition", { conditions: [condition({ reason: text(129) })] }, /than 128/],
    [
      "the list of conditions",
      { conditions: Array.from({ length: 9 }, (_, index) => condition({ type: String(index) })) },
      /must have at most 8 items/,
    ],
    ["the message of a failure", { failures: [failure({ message: text(1025) })] }, /than 1024/],
    [
      "the size of a failure",
      {
        failures: [failure({ size: { replicaCpuMillicores: 1000, replicaMemoryGb: 4, summary: text(129) } })],
      },
      /than 128/,
    ],
    ["the pipe of a failure", { failures: [failure({ pipe: text(254) })] }, /than 253/],
    ["the list of failures", { failures: Array(21).fill(failure()) }, /must have at most 20 items/],
    [
      "the message of a pending pipe",
      pipes({ pending: [{ name: "pipe", state: "Waiting", message: text(1025) }] }),
      /than 1024/,
    ],
    [
      "the message of a fallback",
      pipes({ fallbacks: [{ pipe: "pipe", reason: "Deferred", message: text(1025) }] }),
      /than 1024/,
    ],
    [
      "the name of a pipe that was resized",
      pipes({ resizedBy: { ["a".repeat(254)]: "Rollout" } }),
      /at most 253 characters/,
    ],
    ["the summary of the pipes", pipes({ summary: text(129) }), /than 128/],
    ["the ID of a request", propagation(text(129)), /than 128/],
    ["the tier", { tier: text(254) }, /than 253/],
  ])("may not have a status in which %s is longer", async (_, status, rule) => {
    const outcome = await writeStatus(status);
    expect(outcome).toMatch(/^422 /);
    expect(outcome).toMatch(rule);
  });

  it("keeps its field managers and its metadata when its status is written", async () => {
    const path = objectPath(PIPE_SCALINGS, release.pipes, SERVICE);
    const before = await admin.json<KubeObject>({ path });
    const metadata = { managedFields: [{}], finalizers: ["example.com/never"], ownerReferences: [OWNER] };
    const request = patch(PIPE_SCALINGS, release.pipes, SERVICE, { metadata });
    await controller.json({ ...request, path: `${path}/status` });
    const after = await admin.json<KubeObject>({ path });
    const { resourceVersion } = after.metadata;
    // Kubernetes 1.32 adds an entry for the fields that it has ignored, which are all in the metadata.
    const managedFields = after.metadata.managedFields?.filter(
      ({ fieldsV1 }) => Object.keys(fieldsV1 ?? {}).join() !== "f:metadata",
    );
    expect({ ...after.metadata, managedFields }).toEqual({ ...before.metadata, resourceVersion });
  });
});

function lease(name: string, metadata: object = {}) {
  return { apiVersion: LEASES.apiVersion, kind: "Lease", metadata: { name, ...metadata }, spec: {} };
}

describe("with the token of the controller, a Lease", () => {
  it("may be created with the name of the controller's own", async () => {
    expect(await create(LEASES, release.records, lease(LEASE_NAME))).toBe("accepted");
  });

  it("may not be created with another name", async () => {
    expectDenied(await create(LEASES, release.records, lease("evil")), "only its own Lease");
  });

  it("may have a holder of 512 characters, but not more", async () => {
    const held = (length: number) => ({
      ...lease(LEASE_NAME),
      spec: { holderIdentity: "a".repeat(length) },
    });
    expect(await create(LEASES, release.records, held(512))).toBe("accepted");
    expectDenied(await create(LEASES, release.records, held(513)), "at most 512 characters");
  });

  const METADATA: readonly [string, object][] = [
    ["owners", { ownerReferences: [OWNER] }],
    ["finalizers", { finalizers: ["example.com/never"] }],
    ["labels", { labels: { a: "b" } }],
    ["annotations", { annotations: { a: "b" } }],
  ];

  it.each(METADATA)("may not be created with %s", async (_, metadata) => {
    const outcome = await create(LEASES, release.records, lease(LEASE_NAME, metadata));
    expectDenied(outcome, "only the spec of its Lease");
  });

  it("may not change its metadata", async () => {
    const path = objectPath(LEASES, release.records, LEASE_NAME);
    const created = await controller.json<KubeObject>({
      method: "POST",
      path: collectionPath(LEASES, release.records),
      body: lease(LEASE_NAME),
    });
    const update = (change: object) =>
      dryRunOf(controller, { method: "PUT", path, body: { ...created, ...change } });
    expect(await update({ spec: { holderIdentity: "a" } })).toBe("accepted");
    for (const [, metadata] of METADATA) {
      const outcome = await update({ metadata: { ...created.metadata, ...metadata } });
      expectDenied(outcome, "only the spec of its Lease");
    }
  });
});

function event(change: object = {}, metadata: object = {}) {
  return anEvent(release.pipes, { ...change, metadata });
}

describe("with the token of the controller, an Event", () => {
  const about = (apiVersion: string, kind: string) => ({
    regarding: { apiVersion, kind, namespace: release.pipes, name: "a", uid: randomUUID() },
  });

  it("may be about a PipeScaling, a Deployment or a StatefulSet", async () => {
    expect(await create(EVENTS, release.pipes, event())).toBe("accepted");
    for (const kind of ["Deployment", "StatefulSet"])
      expect(await create(EVENTS, release.pipes, event(about("apps/v1", kind)))).toBe("accepted");
  });

  it.each<[string, () => object]>([
    ["about another kind of object", () => event(about("v1", "Pod"))],
    ["in the name of another controller", () => event({ reportingController: "kubelet" })],
    ["with owners", () => event({}, { ownerReferences: [OWNER] })],
    ["with finalizers", () => event({}, { finalizers: ["example.com/never"] })],
    ["with labels", () => event({}, { labels: { a: "b" } })],
    ["with annotations", () => event({}, { annotations: { a: "b" } })],
    ["with a related object", () => event({ related: about("v1", "Secret").regarding })],
  ])("may not be created %s", async (_, body) => {
    expectDenied(await create(EVENTS, release.pipes, body()), "only Events of its own");
  });

  it("may be about an object with a UID of 36 characters, but not more", async () => {
    const about = (length: number) => event({ regarding: { uid: "a".repeat(length) } });
    expect(await create(EVENTS, release.pipes, about(36))).toBe("accepted");
    expectDenied(await create(EVENTS, release.pipes, about(37)), "only Events about an object");
  });

  it("may get a count, but no other change", async () => {
    const path = collectionPath(EVENTS, release.pipes);
    const { metadata } = await controller.json<KubeObject>({
      method: "POST",
      path,
      ...MANAGED,
      body: event(),
    });
    const change = (body: object) => dryRunOf(controller, patch(EVENTS, release.pipes, metadata.name, body));
    const series = { count: 2, lastObservedTime: "2026-01-01T00:01:00.000000Z" };
    expect(await change({ series })).toBe("accepted");
    const owners = await change({ series, metadata: { ownerReferences: [OWNER] } });
    expectDenied(owners, "only the count of its own Events");
    expectDenied(await change({ metadata: { finalizers: ["example.com/never"] } }), "only the count");
  });

  it("of another controller may not be changed", async () => {
    const path = collectionPath(EVENTS, release.pipes);
    const body = event({ reportingController: "example.com/other" });
    const { metadata } = await admin.json<KubeObject>({ method: "POST", path, body });
    const series = { count: 2, lastObservedTime: "2026-01-01T00:01:00.000000Z" };
    const outcome = await dryRunOf(controller, patch(EVENTS, release.pipes, metadata.name, { series }));
    expectDenied(outcome, "only the count of its own Events");
  });
});

// Last, because it upgrades the release.
describe("with the token of the controller and the largest possible sizes, the size of a pipe", () => {
  beforeAll(async () => {
    const values = "sizes.maximumCores=128,tiers.scale.maximumCpuMillicores=128000";
    await install(cluster, release, "--set", `crds.enabled=false,${values}`);
    const isAccepted = async () => (await patchPipe("pipe", sizedTo(128))) === "accepted";
    await waitFor(isAccepted, { what: "the policies of the upgrade to take effect", timeoutMs: 30_000 });
  }, 120_000);

  const sizedTo = (cores: number) => resized(resourcesFor(sizeOfCores(cores), false));

  it("may be 128 cores, also as the last good size, but no more", async () => {
    expect(await patchPipe("small", sizedTo(128))).toBe("accepted");
    expect(await patchPipe("pipe", annotated(lastRollout(sizeOfCores(128))))).toBe("accepted");
    expectDenied(await patchPipe("pipe", sizedTo(129)), "only the sizes of tiers");
    const tooLarge = await patchPipe("pipe", annotated(lastRollout(sizeOfCores(129))));
    expectDenied(tooLarge, "only a valid size");
  });
});
