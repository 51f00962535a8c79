import { randomUUID } from "node:crypto";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { helm } from "@pipe-scaling/local-cluster/helm";
import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { API_FIELD_MANAGER, CONTROLLER_FIELD_MANAGER } from "../../src/crd/names.ts";
import type { KubeClient } from "../../src/kube/client.ts";
import { CONFIG_MAPS, collectionPath, DEPLOYMENTS, objectPath } from "../../src/kube/paths.ts";
import { pipeDeployment } from "../support/fixtures/pipe.ts";
import { PatientClient } from "../support/patient-client.ts";
import { clientOf, install, prepareRelease, type Release, remove } from "./accounts.ts";
import { outcomeOf } from "./denials.ts";
import { parseManifests } from "./tools.ts";

let cluster: Cluster;
let release: Release;
let controller: KubeClient;
let api: KubeClient;
let hasClaims: boolean;

beforeAll(async () => {
  cluster = await sharedCluster();
  release = await prepareRelease(cluster);
  // Other tests apply the same CRD.
  await install(cluster, release, "--set", "crds.enabled=false");
  controller = await clientOf(cluster, release, "controller");
  api = await clientOf(cluster, release, "api");
  await apply(cluster, [
    pipe(),
    lonePipe(),
    { ...pipe(), metadata: { ...pipe().metadata, name: "other", labels: {} } },
  ]);
  hasClaims = await createClaimingPipe();
  // New policies and permissions take effect after about a second.
  const isHeld = (outcome: string) => outcome.includes("ValidatingAdmissionPolicy");
  await waitFor(async () => isHeld(await patchedAs(controller, { spec: { replicas: 2 } })), {
    what: "the controller's policy to take effect",
  });
  await waitFor(async () => isHeld(await writeRecord(api, "organization-a", "organization")), {
    what: "the API's policy to take effect",
  });
});
afterAll(async () => {
  await controller?.close();
  await api?.close();
  if (release) await remove(cluster, release);
});

/** A Deployment with one of each field, so that each can be changed. */
function pipe() {
  const options = {
    name: "pipe",
    namespace: release.pipes,
    serviceId: "a",
    cores: 1,
    containers: ["pipe", "sidecar"],
  };
  const deployment = pipeDeployment({
    ...options,
    annotations: { "pipes.clouddb.dev/container": "pipe", "example.com/team": "data" },
  });
  const { spec } = deployment.spec.template;
  const containers = spec.containers.map((container) => ({
    ...container,
    env: [{ name: "SOURCE", value: "orders" }],
    resources: {
      requests: { cpu: "1", memory: "4Gi", "ephemeral-storage": "1Gi" },
      limits: { cpu: "8", memory: "4Gi" },
    },
  }));
  const initContainers = [{ name: "wait", image: "registry.example/wait:1" }];
  return {
    ...deployment,
    spec: {
      ...deployment.spec,
      minReadySeconds: 1,
      template: {
        ...deployment.spec.template,
        spec: { ...spec, containers, initContainers },
      },
    },
  };
}

/** A pipe with a single container, which needs no annotation and has no resources yet. */
function lonePipe() {
  return pipeDeployment({ name: "lone", namespace: release.pipes, serviceId: "a" });
}

/** Creates a pipe that claims devices, and returns false if the cluster drops the claims. */
async function createClaimingPipe(): Promise<boolean> {
  const deployment = pipeDeployment({ name: "claiming", namespace: release.pipes, serviceId: "a" });
  const { spec } = deployment.spec.template;
  const containers = spec.containers.map((each) => ({ ...each, resources: { claims: [{ name: "disk" }] } }));
  const resourceClaims = ["disk", "network"].map((name) => ({ name, resourceClaimName: name }));
  const template = { ...deployment.spec.template, spec: { ...spec, containers, resourceClaims } };
  const body = { ...deployment, spec: { ...deployment.spec, template } };
  const admin = await PatientClient.of(cluster);
  // Not with kubectl, which validates fields that Kubernetes 1.30 does not know.
  const stored = await admin.json<typeof body>({
    method: "POST",
    path: collectionPath(DEPLOYMENTS, release.pipes),
    body,
  });
  await admin.close();
  return stored.spec.template.spec.containers[0]?.resources.claims !== undefined;
}

/** Returns the outcome of a dry-run patch. */
function patchedAs(client: KubeClient, body: object, name = "pipe"): Promise<string> {
  return outcomeOf(
    client.json({
      method: "PATCH",
      path: objectPath(DEPLOYMENTS, release.pipes, name),
      query: { dryRun: "All", fieldManager: CONTROLLER_FIELD_MANAGER },
      patchType: "application/strategic-merge-patch+json",
      body,
    }),
  );
}

const container = (change: object, name = "pipe") => ({
  spec: { template: { spec: { containers: [{ name, ...change }] } } },
});
const size = { requests: { cpu: "4", memory: "16Gi" }, limits: { memory: "16Gi" } };
const pod = (change: object) => ({ spec: { template: { spec: change } } });

describe("with the controller's token", () => {
  it.each([
    ["the size of the named container", container({ resources: size }), "pipe"],
    ["the size of the only container, which had none", container({ resources: size }), "lone"],
    [
      "an existing CPU limit, to the request",
      container({
        resources: { requests: { cpu: "4", memory: "16Gi" }, limits: { cpu: "4000m", memory: "16Gi" } },
      }),
      "pipe",
    ],
    [
      "our own annotations",
      {
        metadata: {
          annotations: {
            "pipes.clouddb.dev/last-rollout": "{}",
          },
        },
      },
      "pipe",
    ],
  ])("%s can be changed", async (_, body, name) => {
    expect(await patchedAs(controller, body, name)).toBe("accepted");
  });

  it.each([
    ["the image", container({ image: "registry.example/evil:1" }), "only the resources of one container"],
    ["the command", container({ command: ["sh"] }), "only the resources of one container"],
    [
      "the environment",
      container({ env: [{ name: "A", value: "b" }] }),
      "only the resources of one container",
    ],
    [
      "the security context of a container",
      container({ securityContext: { privileged: true } }),
      "only the resources of one container",
    ],
    [
      "a probe that runs a command",
      container({ livenessProbe: { exec: { command: ["sh"] } } }),
      "only the resources of one container",
    ],
    [
      "the size of another container",
      container({ resources: size }, "sidecar"),
      "only the resources of one container",
    ],
    [
      "the number of containers",
      container({ image: "registry.example/evil:1" }, "evil"),
      "only the resources of one container",
    ],
    ["a CPU limit", container({ resources: { limits: { cpu: "4" } } }), "only the cpu and memory requests"],
    [
      "a CPU limit on a container without one",
      container({ resources: { requests: { cpu: "4" }, limits: { cpu: "4" } } }, "sidecar"),
      "only",
    ],
    [
      "a disk request",
      container({ resources: { requests: { "ephemeral-storage": "2Gi" } } }),
      "only the cpu and memory requests",
    ],
    [
      "the removal of a CPU limit",
      container({ resources: { limits: { cpu: null } } }),
      "only the cpu and memory requests",
    ],
    [
      "the removal of a disk request",
      container({ resources: { requests: { "ephemeral-storage": null } } }),
      "only the cpu and memory requests",
    ],
    ["the removal of the environment", container({ env: null }), "only the resources of one container"],
    ["the removal of init containers", pod({ initContainers: null }), "only the size of a container"],
    ["the removal of minReadySeconds", { spec: { minReadySeconds: null } }, "only the size of a container"],
    ["the removal of labels", { metadata: { labels: null } }, "only its own annotations"],
    [
      "a device",
      container({ resources: { limits: { "example.com/gpu": "1" } } }),
      "only the cpu and memory requests",
    ],
    [
      "an init container",
      pod({ initContainers: [{ name: "wait", image: "registry.example/evil:1" }] }),
      "only the size of a container",
    ],
    ["the service account of the pods", pod({ serviceAccountName: "other" }), "only the size of a container"],
    [
      "the volumes of the pods",
      pod({ volumes: [{ name: "v", hostPath: { path: "/" } }] }),
      "only the size of a container",
    ],
    ["the pods' network", pod({ hostNetwork: true }), "only the size of a container"],
    ["the pods' nodes", pod({ nodeName: "node-0" }), "only the size of a container"],
    [
      "the pods' labels",
      { spec: { template: { metadata: { labels: { a: "b" } } } } },
      "only the size of a container",
    ],
    [
      "the pods' annotations",
      { spec: { template: { metadata: { annotations: { a: "b" } } } } },
      "only the size of a container",
    ],
    ["the replicas", { spec: { replicas: 0 } }, "only the size of a container"],
    ["a pause", { spec: { paused: true } }, "only together with a change of its size"],
    ["the deadline", { spec: { progressDeadlineSeconds: 10 } }, "only the size of a container"],
    ["labels", { metadata: { labels: { a: "b" } } }, "only its own annotations"],
    [
      "the service of the pipe",
      { metadata: { labels: { "pipes.clouddb.dev/service": "b" } } },
      "only its own annotations",
    ],
    [
      "an annotation of another writer",
      { metadata: { annotations: { "example.com/team": "other" } } },
      "only its own annotations",
    ],
    [
      "the removal of an annotation of another writer",
      { metadata: { annotations: { "example.com/team": null } } },
      "only its own annotations",
    ],
    [
      "the annotation that names the pipe container",
      { metadata: { annotations: { "pipes.clouddb.dev/container": "sidecar" } } },
      "only its own annotations",
    ],
    ["finalizers", { metadata: { finalizers: ["example.com/a"] } }, "only its own annotations"],
    [
      "owners",
      { metadata: { ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "a", uid: "a" }] } },
      "only its own annotations",
    ],
  ])("%s cannot be changed", async (_, body, sentence) => {
    const outcome = await patchedAs(controller, body);
    expect(outcome).toMatch(/^422 .*ValidatingAdmissionPolicy/s);
    expect(outcome).toContain(sentence);
  });

  it.for([
    ["a resource claim", { claims: [{ name: "network" }] }],
    ["the removal of a resource claim", { claims: null }],
  ] as const)("%s cannot be changed", async ([_, resources], { skip }) => {
    skip(!hasClaims, "resource claims are off before Kubernetes 1.34");
    const outcome = await patchedAs(controller, container({ resources }), "claiming");
    expect(outcome).toMatch(/^422 .*ValidatingAdmissionPolicy/s);
    expect(outcome).toContain("only the cpu and memory requests");
  });

  it("the order of containers and the content of a container cannot be changed", async () => {
    const [first, second] = pipe().spec.template.spec.containers;
    const replacedBy = (...containers: readonly unknown[]) =>
      pod({ containers: [{ $patch: "replace" }, ...containers] });
    const sentence = "only the resources of one container";
    expect(await patchedAs(controller, replacedBy(first, second))).toBe("accepted");
    expect(await patchedAs(controller, replacedBy(second, first))).toContain(sentence);
    expect(await patchedAs(controller, replacedBy({ ...first, tty: true }, second))).toContain(sentence);
    expect(await patchedAs(controller, replacedBy(first))).toContain(sentence);
  });

  it("a Deployment that is not a pipe cannot be changed", async () => {
    expect(await patchedAs(controller, container({ resources: size }), "other")).toContain(
      "only Deployments with the labels of a database pipe of a service",
    );
  });

  it("only the policy denies these writes, and only for the controller", async () => {
    const admin = await PatientClient.of(cluster);
    expect(await patchedAs(admin, container({ image: "registry.example/pipe:2" }))).toBe("accepted");
    await admin.close();
  });
});

function writeRecord(client: KubeClient, name: string, kind: string): Promise<string> {
  return outcomeOf(
    client.json({
      method: "POST",
      path: collectionPath(CONFIG_MAPS, release.records),
      query: { dryRun: "All", fieldManager: API_FIELD_MANAGER },
      body: {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name, labels: { "pipes.clouddb.dev/resource": kind } },
      },
    }),
  );
}

describe("with the API's token", () => {
  it.each(["backup", "key-usage"])("a record of %s can be written", async (kind) => {
    expect(await writeRecord(api, `${kind}-${randomUUID()}`, kind)).toBe("accepted");
  });

  it.each([
    ["an organization", `organization-${randomUUID()}`, "organization"],
    ["a service", `service-${randomUUID()}`, "service"],
    ["an organization with the name of a members record", "members-a", "organization"],
    ["members with the name of an organization record", "organization-a", "members"],
    ["an object without the label", "members-a", ""],
  ])("%s cannot be written", async (_, name, kind) => {
    expect(await writeRecord(api, name, kind)).toMatch(
      /^422 .*only records of members, backup settings and key usage/s,
    );
  });

  it("an existing organization cannot be patched or turned into another record", async () => {
    const name = `organization-${randomUUID()}`;
    const metadata = {
      name,
      namespace: release.records,
      labels: { "pipes.clouddb.dev/resource": "organization" },
    };
    await apply(cluster, [{ apiVersion: "v1", kind: "ConfigMap", metadata, data: { tier: "basic" } }]);
    const patch = (body: object) =>
      outcomeOf(
        api.json({
          method: "PATCH",
          path: objectPath(CONFIG_MAPS, release.records, name),
          patchType: "application/merge-patch+json",
          body,
        }),
      );
    const labels = { "pipes.clouddb.dev/resource": "members" };
    expect(await patch({ data: { tier: "enterprise" } })).toContain("only records of members");
    expect(await patch({ metadata: { labels }, data: { tier: "enterprise" } })).toContain(
      "only records of members",
    );
  });
});

describe("the expressions of the policies", () => {
  it("have no type errors", async () => {
    const manifest = await helm(["get", "manifest", release.name, "--namespace", release.namespace], cluster);
    const policies = parseManifests(manifest).filter(({ kind }) => kind === "ValidatingAdmissionPolicy");
    const names = policies.map(({ metadata }) => metadata.name);
    expect(names.length).toBeGreaterThan(5);
    const typeErrors = () => Promise.all(names.map(typeErrorsOf));
    const isChecked = (all: readonly unknown[]) => all.every((each) => each !== undefined) && all;
    expect(
      await waitFor(async () => isChecked(await typeErrors()), { what: "the types to be checked" }),
    ).toEqual(names.map(() => ({})));
  });

  /** Returns the type errors in a policy; `undefined` until the API server has checked it. */
  async function typeErrorsOf(policy: string): Promise<unknown> {
    const object = await kubectl(cluster, ["get", "validatingadmissionpolicy", policy, "-o", "json"]);
    return JSON.parse(object).status?.typeChecking;
  }
});
