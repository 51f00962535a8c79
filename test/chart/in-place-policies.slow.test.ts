import type { Cluster } from "@pipe-scaling/local-cluster";
import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CONTAINER_ANNOTATION, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../src/crd/names.ts";
import type { KubeClient, KubeRequest } from "../../src/kube/client.ts";
import type { KubeObject, ManagedFields } from "../../src/kube/objects.ts";
import { collectionPath, objectPath, PODS, REPLICA_SETS, type Resource } from "../../src/kube/paths.ts";
import { type PipeOptions, pipeDeployment } from "../support/fixtures/pipe.ts";
import { PatientClient } from "../support/patient-client.ts";
import { clientOf, install, prepareRelease, type Release, remove } from "./accounts.ts";
import { dryRunOf, expectDenied } from "./denials.ts";

const LABELS = { [SERVICE_LABEL]: "a", [TYPE_LABEL]: "database" };
const NAMED = { [CONTAINER_ANNOTATION]: "pipe" };
const BOTH = ["pipe", "sidecar"];

/** Pipes, by name, with and without what a resize in place requires. */
const PIPES: Readonly<Record<string, Partial<PipeOptions>>> = {
  named: { containers: BOTH, annotations: NAMED, podAnnotations: NAMED, podLabels: LABELS },
  only: { podLabels: LABELS },
  unnamed: { containers: BOTH, annotations: NAMED, podLabels: LABELS },
  shrinking: { podLabels: LABELS },
  "with-shrinking-sidecar": {
    containers: BOTH,
    annotations: NAMED,
    podAnnotations: NAMED,
    podLabels: LABELS,
  },
  unreported: { podLabels: LABELS },
  waiting: { podLabels: LABELS },
  resized: { podLabels: LABELS },
  unlabeled: {},
  "without-service": { podLabels: { [TYPE_LABEL]: "database" } },
  guaranteed: { podLabels: LABELS },
  unlimited: { podLabels: LABELS },
  "without-requests": { podLabels: LABELS },
  "with-sidecar": { podLabels: LABELS },
  "other-type": { podLabels: { ...LABELS, [TYPE_LABEL]: "kafka" } },
};

/** A size above the largest one, which a container runs until the kubelet can reduce it. */
const EARLIER = { requests: { cpu: "64", memory: "256Gi" }, limits: { memory: "256Gi" } };

/** The statuses that the kubelet reports for the containers of these pipes, instead of those with their own resources. */
const RUNNING: Readonly<Record<string, readonly object[]>> = {
  shrinking: [{ name: "pipe", resources: EARLIER }],
  "with-shrinking-sidecar": [{ name: "sidecar", resources: EARLIER }],
  unreported: [],
  waiting: [{ name: "pipe", ready: false, state: { waiting: { reason: "CrashLoopBackOff" } } }],
};

let cluster: Cluster;
let release: Release;
let controller: KubeClient;
let admin: PatientClient;
/** Names of a pod and a ReplicaSet of each pipe. */
const pods = new Map<string, string>();
const replicaSets = new Map<string, string>();

beforeAll(async () => {
  cluster = await sharedCluster();
  release = await prepareRelease(cluster);
  await install(cluster, release, "--set", "crds.enabled=false");
  controller = await clientOf(cluster, release, "controller");
  admin = await PatientClient.of(cluster);
  await apply(
    cluster,
    Object.entries(PIPES).map(([name, options]) => deployment(name, options)),
  );
  for (const name of Object.keys(PIPES)) {
    pods.set(name, await waitFor(() => objectOf(PODS, name, isRunning), { what: `the pod of ${name}` }));
    replicaSets.set(name, await waitFor(() => objectOf(REPLICA_SETS, name), { what: "its ReplicaSet" }));
    if (RUNNING[name]) await report(name, RUNNING[name]);
  }
  const isInForce = (text: string) => text.includes("ValidatingAdmissionPolicy");
  for (const [what, attempt] of [
    ["pods", () => patchPod("unlabeled", sizeOf("pipe"))],
    ["ReplicaSets", () => patchReplicaSet("unlabeled", template(sizeOf("pipe")))],
    ["deleted ReplicaSets", () => deleteReplicaSet(replicaSets.get("only") ?? "")],
  ] as const) {
    await waitFor(async () => isInForce(await attempt()), { what: `the policy for ${what} to be in force` });
  }
});
afterAll(async () => {
  await controller?.close();
  await admin?.close();
  if (release) await remove(cluster, release);
});

function deployment(name: string, options: Partial<PipeOptions>) {
  const pipe = pipeDeployment({ name, namespace: release.pipes, serviceId: "a", cores: 1, ...options });
  const { spec } = pipe.spec.template;
  const cpuLimit = name === "guaranteed" ? "1" : "8";
  const limits = { ...(name in RUNNING ? {} : { cpu: cpuLimit }), memory: "4Gi" };
  const requests = { cpu: "1", memory: "4Gi" };
  const resources = {
    ...(name !== "without-requests" && { requests }),
    ...(name !== "unlimited" && { limits }),
  };
  const containers = spec.containers.map((container) => ({
    ...container,
    env: [{ name: "SOURCE", value: "orders" }],
    resources,
  }));
  const sidecar = { name: "proxy", image: "registry.example/proxy:1", restartPolicy: "Always", resources };
  const initContainers = name === "with-sidecar" ? [sidecar] : [];
  const template = { ...pipe.spec.template, spec: { ...spec, containers, initContainers } };
  return { ...pipe, spec: { ...pipe.spec, template } };
}

async function objectOf(
  resource: Resource,
  app: string,
  isReady: (object: KubeObject) => boolean = () => true,
): Promise<string | undefined> {
  const { items } = await admin.json<{ readonly items: readonly KubeObject[] }>({
    path: collectionPath(resource, release.pipes),
    query: { labelSelector: `app=${app}` },
  });
  return items.find(isReady)?.metadata.name;
}

function isRunning({ status }: KubeObject & { readonly status?: { readonly containerStatuses?: unknown } }) {
  return JSON.stringify(status?.containerStatuses ?? []).includes('"resources"');
}

/** Sets the statuses of the containers of a pod, as its kubelet does. */
function report(pipe: string, statuses: readonly object[]): Promise<unknown> {
  const path = `${objectPath(PODS, release.pipes, pods.get(pipe) ?? "")}/status`;
  const common = { image: "pipe", imageID: "", restartCount: 0 };
  const state = { running: { startedAt: "2026-01-01T00:00:00Z" } };
  const containerStatuses = statuses.map((each) => ({ ...common, ready: true, state, ...each }));
  return admin.json({
    ...patch(path, { status: { containerStatuses } }),
    query: { fieldManager: "kubelet" },
  });
}

function patch(path: string, body: object): KubeRequest {
  const query = { fieldManager: CONTROLLER_FIELD_MANAGER };
  return { method: "PATCH", path, query, patchType: "application/strategic-merge-patch+json", body };
}

function patchPod(pipe: string, body: object, client = controller): Promise<string> {
  const path = objectPath(PODS, release.pipes, pods.get(pipe) ?? "");
  return dryRunOf(client, patch(`${path}/resize`, body));
}

function patchReplicaSet(pipe: string, body: object, client = controller): Promise<string> {
  return dryRunOf(client, patch(objectPath(REPLICA_SETS, release.pipes, replicaSets.get(pipe) ?? ""), body));
}

function deleteReplicaSet(name: string, client = controller): Promise<string> {
  return dryRunOf(client, { method: "DELETE", path: objectPath(REPLICA_SETS, release.pipes, name) });
}

const SIZE = { requests: { cpu: "2", memory: "8Gi" }, limits: { memory: "8Gi" } };

/** The part of a pod with a change of one of its containers. */
const change = (name: string, to: object) => ({ spec: { containers: [{ name, ...to }] } });
const sizeOf = (name: string, resources: object = SIZE) => change(name, { resources });
const template = (pod: object) => ({ spec: { template: pod } });

/** Resources of a container with a CPU limit. */
const limited = (cpu: string, memory: string) => ({ requests: { cpu, memory }, limits: { cpu, memory } });
const memoryOf = (memory: string) => ({ requests: { memory }, limits: { memory } });

/** Resources above the largest size, and a pipe that they are valid for. */
const TOO_LARGE: readonly [what: string, pipe: string, resources: object][] = [
  ["more CPU than 24 cores", "guaranteed", limited("24001m", "4Gi")],
  ["more memory than 96 GiB", "only", memoryOf("98305Mi")],
  ["a memory limit of more than 96 GiB", "only", { limits: { memory: "98305Mi" } }],
];

/** Resources below the smallest size. A limit of 0 is none, and pods with no more than that are the first to be evicted. */
const TOO_SMALL: readonly [what: string, pipe: string, resources: object][] = [
  ["less CPU than 1m", "only", { requests: { cpu: "0" } }],
  ["less memory than 1 MiB", "only", memoryOf("1023Ki")],
  ["a memory request of less than 1 MiB", "only", { requests: { memory: "1023Ki" } }],
  ["no memory", "only", memoryOf("0")],
  ["a memory of less than a byte", "only", memoryOf("1m")],
];

/** A resize in place cannot change the QoS class. */
const OTHER_CLASS: readonly [what: string, pipe: string, resources: object][] = [
  ["no CPU", "guaranteed", limited("0", "4Gi")],
  ["no resources", "guaranteed", limited("0", "0")],
];

/** A patch of an object of a pipe, and the rule that rejects it. */
type Denial = readonly [what: string, pipe: string, body: object, sentence: string];

/** Resources that the controller may not set, and the rule that rejects them. */
const FORBIDDEN_RESOURCES: readonly [string, object, string][] = [
  ["a CPU limit other than the request", { limits: { cpu: "4" } }, "only the cpu and memory requests"],
  [
    "a request of ephemeral storage",
    { requests: { "ephemeral-storage": "2Gi" } },
    "only the cpu and memory requests",
  ],
];

describe("with the token of the controller, a resize of a pod", () => {
  beforeAll(async () => {
    const path = objectPath(PODS, release.pipes, pods.get("resized") ?? "");
    await controller.json(patch(`${path}/resize`, sizeOf("pipe")));
  });

  it.each([
    ["the container that the annotation names", "named", sizeOf("pipe")],
    ["the only container", "only", sizeOf("pipe")],
    [
      "an existing CPU limit, to the request",
      "guaranteed",
      sizeOf("pipe", { requests: { cpu: "2" }, limits: { cpu: "2" } }),
    ],
    ["a size, to the largest", "guaranteed", sizeOf("pipe", limited("24", "96Gi"))],
    ["a size, to the smallest", "guaranteed", sizeOf("pipe", limited("1m", "1Mi"))],
    ["a size, to a template of less than 1 GiB", "only", sizeOf("pipe", memoryOf("512Mi"))],
  ])("may change %s", async (_, pipe, body) => {
    expect(await patchPod(pipe, body)).toBe("accepted");
  });

  it.each<Denial>([
    ["a pod without labels", "unlabeled", sizeOf("pipe"), "only pods with the labels"],
    ["a pod without the label of a service", "without-service", sizeOf("pipe"), "only pods with the labels"],
    ["a pod of another type", "other-type", sizeOf("pipe"), "only pods with the labels"],
    ["another container", "named", sizeOf("sidecar"), "only the resources of one container"],
    [
      "a container of several if the annotation is missing",
      "unnamed",
      sizeOf("pipe"),
      "only the resources of one container",
    ],
    [
      "a sidecar",
      "with-sidecar",
      { spec: { initContainers: [{ name: "proxy", resources: SIZE }] } },
      "only the size of a container of a pod",
    ],
    ...FORBIDDEN_RESOURCES.slice(0, 1).map(
      ([what, resources, sentence]): Denial => [what, "only", sizeOf("pipe", resources), sentence],
    ),
  ])("may not change %s", async (_, pipe, body, sentence) => {
    expectDenied(await patchPod(pipe, body), sentence);
  });

  it.each([...TOO_LARGE, ...TOO_SMALL])("may not set %s", async (_, pipe, resources) => {
    const outcome = await patchPod(pipe, sizeOf("pipe", resources));
    expectDenied(outcome, "only sizes from 1m CPU with 1Mi memory to 24 CPU with 96Gi");
  });

  it.each([
    ["as the kubelet reports it", EARLIER],
    [
      "in other words",
      { requests: { cpu: "64000m", memory: "262144Mi" }, limits: { memory: "274877906944" } },
    ],
  ])("may set a size above the largest one that the container still runs, %s", async (_, resources) => {
    expect(await patchPod("shrinking", sizeOf("pipe", resources))).toBe("accepted");
  });

  it.each<[what: string, pipe: string, { cpu?: string; memory?: string; limit?: string }]>([
    ["more CPU than the container runs", "shrinking", { cpu: "64001m" }],
    ["less CPU than that, and more than the largest size has", "shrinking", { cpu: "32" }],
    ["a larger memory limit than that of the container", "shrinking", { limit: "262145Mi" }],
    ["more memory than the container runs", "shrinking", { memory: "262145Mi", limit: "262145Mi" }],
    [
      "a smaller memory request than that, and a larger limit",
      "shrinking",
      { memory: "1Gi", limit: "257Gi" },
    ],
    ["the size that another container runs", "with-shrinking-sidecar", {}],
    ["a size that no status reports", "unreported", {}],
    ["a size that the status of its container does not report", "waiting", {}],
  ])("may not set %s", async (_, pipe, { cpu = "64", memory = "256Gi", limit = "256Gi" }) => {
    const resources = { requests: { cpu, memory }, limits: { memory: limit } };
    const outcome = await patchPod(pipe, sizeOf("pipe", resources));
    expectDenied(outcome, "only sizes from 1m CPU with 1Mi memory to 24 CPU with 96Gi");
  });

  it("may set a size that is allowed, whatever the container runs", async () => {
    for (const pipe of Object.keys(RUNNING)) expect(await patchPod(pipe, sizeOf("pipe"))).toBe("accepted");
  });

  it.each([
    ["the image", change("pipe", { image: "registry.example/evil:1" })],
    ["labels", { metadata: { labels: { a: "b" } } }],
    ["annotations", { metadata: { annotations: { [CONTAINER_ANNOTATION]: "sidecar" } } }],
    ["finalizers", { metadata: { finalizers: ["example.com/a"] } }],
    [
      "the resize policy",
      change("pipe", { resizePolicy: [{ resourceName: "cpu", restartPolicy: "RestartContainer" }] }),
    ],
  ])("cannot change %s, which the API server ignores or rejects", async (_, body) => {
    const path = objectPath(PODS, release.pipes, pods.get("only") ?? "");
    const read = async () => {
      const { metadata, ...pod } = await admin.json<KubeObject>({ path });
      const { managedFields: _fields, resourceVersion: _version, ...rest } = metadata;
      return { ...pod, metadata: rest };
    };
    const before = await read();
    await dryRunOf(controller, { ...patch(`${path}/resize`, body), query: { dryRun: undefined } });
    expect(await read()).toEqual(before);
  });

  // The controller ends a resize by this time.
  it.each(["1970-01-01T00:00:01Z", "2100-01-01T00:00:00Z", undefined])(
    "cannot have the time %s in its record, because the API server ignores records sent to a subresource",
    async (time) => {
      const isOwn = ({ subresource }: ManagedFields) => subresource === "resize";
      const path = objectPath(PODS, release.pipes, pods.get("resized") ?? "");
      const { managedFields = [] } = (await admin.json<KubeObject>({ path })).metadata;
      const own = { manager: CONTROLLER_FIELD_MANAGER, operation: "Update", apiVersion: "v1" };
      const forged = {
        ...own,
        time,
        subresource: "resize",
        fieldsType: "FieldsV1",
        fieldsV1: { "f:spec": {} },
      };
      const metadata = { managedFields: [...managedFields.filter((each) => !isOwn(each)), forged] };
      for (const change of [{}, sizeOf("pipe", memoryOf("12Gi"))]) {
        const { query, ...request } = patch(`${path}/resize`, { ...change, metadata });
        const resized = await controller.json<KubeObject>({ ...request, query: { ...query, dryRun: "All" } });
        const record = resized.metadata.managedFields?.find(isOwn);
        expect(Math.abs(Date.parse(record?.time ?? "") - Date.now())).toBeLessThan(300_000);
      }
    },
  );

  it("is denied by the policy only to the controller", async () => {
    expect(await patchPod("unlabeled", sizeOf("pipe"), admin)).toBe("accepted");
  });
});

describe("with the token of the controller, an update of a ReplicaSet", () => {
  it.each([
    ["the container that the annotation names", "named", sizeOf("pipe")],
    ["the only container", "only", sizeOf("pipe")],
    ["a pipe, to the largest one", "guaranteed", sizeOf("pipe", limited("24", "96Gi"))],
    ["a pipe, to a small one that it may have had", "guaranteed", sizeOf("pipe", limited("1m", "1Mi"))],
  ])("may change the size of %s", async (_, pipe, pod) => {
    expect(await patchReplicaSet(pipe, template(pod))).toBe("accepted");
  });

  it.each<Denial>([
    [
      "a ReplicaSet without labels",
      "unlabeled",
      template(sizeOf("pipe")),
      "only ReplicaSets with the labels",
    ],
    [
      "a ReplicaSet without the label of a service",
      "without-service",
      template(sizeOf("pipe")),
      "only ReplicaSets with the labels",
    ],
    [
      "a ReplicaSet of another type",
      "other-type",
      template(sizeOf("pipe")),
      "only ReplicaSets with the labels",
    ],
    ["another container", "named", template(sizeOf("sidecar")), "only the resources of one container"],
    [
      "a container of several if the annotation is missing",
      "unnamed",
      template(sizeOf("pipe")),
      "only the resources of one container",
    ],
    [
      "the image",
      "only",
      template(change("pipe", { image: "registry.example/evil:1" })),
      "only the resources of one container",
    ],
    [
      "the environment",
      "only",
      template(change("pipe", { env: null })),
      "only the resources of one container",
    ],
    [
      "the number of containers",
      "only",
      template(change("evil", { image: "registry.example/evil:1" })),
      "only the resources of one container",
    ],
    ...FORBIDDEN_RESOURCES.map(
      ([what, resources, sentence]): Denial => [what, "only", template(sizeOf("pipe", resources)), sentence],
    ),
    [
      "a CPU limit without a request",
      "without-requests",
      template(sizeOf("pipe", { limits: { cpu: "1m" } })),
      "only the cpu and memory requests",
    ],
    [
      "the service account of the pods",
      "only",
      template({ spec: { serviceAccountName: "other" } }),
      "only the size of a container in the spec",
    ],
    [
      "the grace period of the pods, to the default",
      "only",
      template({ spec: { terminationGracePeriodSeconds: null } }),
      "only the size of a container in the spec",
    ],
    [
      "labels of the pods",
      "only",
      template({ metadata: { labels: { a: "b" } } }),
      "only the size of a container in the spec",
    ],
    [
      "annotations of the pods",
      "named",
      template({ metadata: { annotations: { [CONTAINER_ANNOTATION]: "sidecar" } } }),
      "only the size of a container in the spec",
    ],
    ["the replicas", "only", { spec: { replicas: 0 } }, "only the size of a container in the spec"],
    ["labels", "only", { metadata: { labels: { a: "b" } } }, "nothing in the metadata"],
    ["labels, to none", "only", { metadata: { labels: { [TYPE_LABEL]: null } } }, "nothing in the metadata"],
    ["annotations", "only", { metadata: { annotations: { a: "b" } } }, "nothing in the metadata"],
    ["owners, to none", "only", { metadata: { ownerReferences: null } }, "nothing in the metadata"],
    ["finalizers", "only", { metadata: { finalizers: ["example.com/a"] } }, "nothing in the metadata"],
  ])("may not change %s", async (_, pipe, body, sentence) => {
    expectDenied(await patchReplicaSet(pipe, body), sentence);
  });

  it.each([...TOO_LARGE, ...TOO_SMALL, ...OTHER_CLASS])("may not set %s", async (_, pipe, resources) => {
    const outcome = await patchReplicaSet(pipe, template(sizeOf("pipe", resources)));
    expectDenied(outcome, "only sizes from 1m CPU with 1Mi memory to 24 CPU with 96Gi");
  });

  it("may not set a size above the largest one that a container of its pods still runs", async () => {
    const outcome = await patchReplicaSet("shrinking", template(sizeOf("pipe", EARLIER)));
    expectDenied(outcome, "only sizes from 1m CPU with 1Mi memory to 24 CPU with 96Gi");
  });

  it("may not set a memory limit of one byte where there is none", async () => {
    const outcome = await patchReplicaSet("unlimited", template(sizeOf("pipe", memoryOf("1"))));
    expectDenied(outcome, "only sizes from 1m CPU with 1Mi memory");
    expect(await patchReplicaSet("unlimited", template(sizeOf("pipe")))).toBe("accepted");
  });

  it("is denied by the policy only to the controller", async () => {
    expect(await patchReplicaSet("unlabeled", template(sizeOf("pipe")), admin)).toBe("accepted");
  });
});

describe("with the token of the controller, a deletion of a ReplicaSet", () => {
  beforeAll(async () => {
    await apply(cluster, [
      replicaSet("empty", LABELS),
      replicaSet("empty-unlabeled", {}),
      replicaSet("empty-other-type", { ...LABELS, [TYPE_LABEL]: "kafka" }),
    ]);
  });

  function replicaSet(name: string, labels: object) {
    const { metadata, spec } = pipeDeployment({ name, namespace: release.pipes, serviceId: "a", cores: 1 });
    const { selector, template } = spec;
    const pod = { ...template, metadata: { labels: { ...template.metadata.labels, ...labels } } };
    return {
      apiVersion: "apps/v1",
      kind: "ReplicaSet",
      metadata: { ...metadata, labels },
      spec: { replicas: 0, selector, template: pod },
    };
  }

  it("is allowed if it has the labels of a pipe and no pods", async () => {
    expect(await deleteReplicaSet("empty")).toBe("accepted");
  });

  it.each(["empty-unlabeled", "empty-other-type"])(
    "is denied if its labels are those of %s",
    async (name) => {
      expectDenied(await deleteReplicaSet(name), "only ReplicaSets with the labels");
      expect(await deleteReplicaSet(name, admin)).toBe("accepted");
    },
  );

  it("is denied if it wants pods", async () => {
    const name = replicaSets.get("only") ?? "";
    expectDenied(await deleteReplicaSet(name), "only ReplicaSets without pods");
  });

  it("is denied if it wants pods and has none yet", async () => {
    const { spec, ...starting } = replicaSet("starting", LABELS);
    // Pods with a service account that does not exist cannot be created.
    const template = { ...spec.template, spec: { ...spec.template.spec, serviceAccountName: "absent" } };
    await apply(cluster, [{ ...starting, spec: { ...spec, replicas: 1, template } }]);
    expectDenied(await deleteReplicaSet("starting"), "only ReplicaSets without pods");
  });

  it("is denied if it wants no pods and still has some", async () => {
    const status = patch(`${objectPath(REPLICA_SETS, release.pipes, "empty")}/status`, {
      status: { replicas: 1 },
    });
    // Kubernetes soon corrects the status.
    const attempt = async () => {
      await admin.json(status);
      return (await deleteReplicaSet("empty")).includes("only ReplicaSets without pods");
    };
    await waitFor(attempt, { what: "the deletion to be denied", intervalMs: 10 });
  });
});
