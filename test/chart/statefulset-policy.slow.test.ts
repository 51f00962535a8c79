import { randomUUID } from "node:crypto";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CONTAINER_ANNOTATION, LAST_ROLLOUT_ANNOTATION, SERVICE_LABEL } from "../../src/controller/names.ts";
import { resourcesFor } from "../../src/controller/observe/resources.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../src/crd/names.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import { dryRunOf, expectDenied } from "./denials.ts";
import { StatefulPipes } from "./stateful-pipes.ts";
import { amounts, annotationOf, hold, partition, resize, template, UNLABEL } from "./stateful-writes.ts";

// Each test sends a write to a StatefulSet, as the controller or a thief of its token could.
let pipes: StatefulPipes;
beforeAll(async () => {
  pipes = await StatefulPipes.start(await sharedCluster());
  await pipes.create("only");
  await pipes.create("limited", { resources: amounts("1", "4Gi", { cpu: "1" }) });
  await pipes.create("named", {
    containers: ["pipe", "sidecar"],
    annotations: { [CONTAINER_ANNOTATION]: "pipe" },
  });
  await pipes.create("on-delete", { spec: { updateStrategy: { type: "OnDelete" } } });
  await pipes.create("rich", {
    annotations: { "example.com/team": "data" },
    resources: {
      requests: { cpu: "1", memory: "4Gi", "ephemeral-storage": "1Gi" },
      limits: { cpu: "8", memory: "4Gi" },
    },
    podSpec: { initContainers: [{ name: "wait", image: "registry.example/wait:1" }] },
    spec: {
      minReadySeconds: 1,
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1, maxUnavailable: 2 } },
    },
  });
});
afterAll(() => pipes?.end());

describe("with the token of the controller, a StatefulSet", () => {
  it.each([
    ["the size of its only container", "only", resize(4)],
    ["the size of the container that the annotation names", "named", resize(4)],
    ["its size, although its strategy is OnDelete", "on-delete", resize(4)],
    [
      "an existing CPU limit, to the request",
      "limited",
      { spec: template(amounts("4", "16Gi", { cpu: "4" })) },
    ],
    ["the annotation of the controller", "only", annotationOf(randomUUID())],
    ["its size, although it has a partition of its owner", "rich", resize(4)],
  ])("may get a change of %s", async (_, name, body) => {
    expect(await pipes.send(name, body)).toBe("accepted");
  });

  it("may get its size in the records of the controller, when it is adopted", async () => {
    const amount = { "f:cpu": {}, "f:memory": {} };
    const size = { "f:resources": { "f:requests": amount, "f:limits": { "f:memory": {} } } };
    const pod = { "f:spec": { "f:containers": { 'k:{"name":"pipe"}': size } } };
    const own = {
      manager: CONTROLLER_FIELD_MANAGER,
      operation: "Update",
      apiVersion: "apps/v1",
      fieldsType: "FieldsV1",
      fieldsV1: { "f:spec": { "f:template": pod } },
    };
    expect(await pipes.sendManagers("only", (records) => [...records, own])).toBe("accepted");
  });

  it("may return to resources that are no size of a tier after the annotation recorded them", async () => {
    const small = { requests: { cpu: "250m", memory: "1Gi" }, limits: { memory: "1Gi" } };
    await pipes.create("small", { resources: small });
    const recorded = annotationOf(await pipes.uidOf("small"), { lastGoodSize: small });
    await pipes.write("small", { ...recorded, ...resize(1) });
    expect(await pipes.send("small", { spec: template(small) })).toBe("accepted");
    const other = { ...small, requests: { cpu: "251m", memory: "1Gi" } };
    expectDenied(await pipes.send("small", { spec: template(other) }), "only the sizes of tiers");
  });

  it.each<[string, object, string]>([
    ["half a core", template(amounts("500m", "2Gi")), "only the sizes of tiers"],
    ["no memory limit", template({ limits: { memory: null } }), "only the sizes of tiers"],
    ["no request", template({ requests: { cpu: null } }), "only the sizes of tiers"],
    ["no resources", template({ requests: null, limits: null }), "only the cpu and memory requests"],
    ["another CPU limit", template({ limits: { cpu: "4" } }), "only the cpu and memory requests"],
    ["no CPU limit", template({ limits: { cpu: null } }), "only the cpu and memory requests"],
    [
      "a disk request",
      template({ requests: { "ephemeral-storage": "2Gi" } }),
      "only the cpu and memory requests",
    ],
  ])("may not get %s", async (_, spec, sentence) => {
    expectDenied(await pipes.send("rich", { spec }), sentence);
  });

  it("may not get more than the largest tier, or a CPU limit that it did not have", async () => {
    const large = await pipes.send("only", { spec: template(amounts("25", "100Gi")) });
    expectDenied(large, "only the sizes of tiers");
    const outcome = await pipes.send("only", { spec: template({ limits: { cpu: "1" } }) });
    expectDenied(outcome, "only the cpu and memory requests");
  });

  const pod = (spec: object) => ({ spec: { template: { spec } } });
  const SPEC = "only the size of a container in the spec";
  const CONTAINER = "only the resources of one container";
  const METADATA = "only its own annotations";

  it.each<[string, object, string]>([
    ["the image", pod({ containers: [{ name: "pipe", image: "evil" }] }), CONTAINER],
    ["the command", pod({ containers: [{ name: "pipe", command: ["sh"] }] }), CONTAINER],
    ["the number of containers", pod({ containers: [{ name: "evil", image: "evil" }] }), CONTAINER],
    ["an init container", pod({ initContainers: [{ name: "wait", image: "evil" }] }), SPEC],
    ["the service account of the pods", pod({ serviceAccountName: "other" }), SPEC],
    ["the network of the pods", pod({ hostNetwork: true }), SPEC],
    ["the grace period of the pods", pod({ terminationGracePeriodSeconds: 1 }), SPEC],
    ["labels of the pods", { spec: { template: { metadata: { labels: { a: "b" } } } } }, SPEC],
    ["annotations of the pods", { spec: { template: { metadata: { annotations: { a: "b" } } } } }, SPEC],
    ["the replicas", { spec: { replicas: 5 } }, SPEC],
    ["the number of revisions", { spec: { revisionHistoryLimit: 0 } }, SPEC],
    ["minReadySeconds", { spec: { minReadySeconds: null } }, SPEC],
    ["the first ordinal", { spec: { ordinals: { start: 7 } } }, SPEC],
    [
      "the retention of its volume claims",
      { spec: { persistentVolumeClaimRetentionPolicy: { whenScaled: "Delete", whenDeleted: "Delete" } } },
      SPEC,
    ],
    [
      "its strategy",
      { spec: { updateStrategy: { type: "OnDelete", rollingUpdate: null } } },
      "only the partition in the update strategy",
    ],
    ["labels", { metadata: { labels: { a: "b" } } }, METADATA],
    ["the service of the pipe", { metadata: { labels: { [SERVICE_LABEL]: "b" } } }, METADATA],
    [
      "the container of the pipe",
      { metadata: { annotations: { [CONTAINER_ANNOTATION]: "wait" } } },
      METADATA,
    ],
    ["an annotation of its owner", { metadata: { annotations: { "example.com/team": null } } }, METADATA],
    ["finalizers", { metadata: { finalizers: ["example.com/never"] } }, METADATA],
    [
      "owners",
      {
        metadata: {
          ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "absent", uid: randomUUID() }],
        },
      },
      METADATA,
    ],
  ])("may not get a change of %s", async (_, body, sentence) => {
    expectDenied(await pipes.send("rich", body), sentence);
  });

  it("may not get another number of pods that may be unavailable", async ({ skip }) => {
    const path = pipes.path("rich");
    const { spec } = await pipes.admin.json<{ spec: { updateStrategy: object } }>({ path });
    const isStored = JSON.stringify(spec.updateStrategy).includes("maxUnavailable");
    skip(!isStored, "the feature gate MaxUnavailableStatefulSet is off");
    for (const maxUnavailable of ["100%", null]) {
      const body = { spec: { updateStrategy: { rollingUpdate: { maxUnavailable } } } };
      expectDenied(await pipes.send("rich", body), "only the partition in the update strategy");
    }
  });

  it("may not get another size of its sidecar", async () => {
    const spec = template(resourcesFor(sizeOfCores(2), false), "sidecar");
    expectDenied(await pipes.send("named", { spec }), CONTAINER);
  });

  it("may not get a long annotation, or one with a size that it never had", async () => {
    const long = { metadata: { annotations: { [LAST_ROLLOUT_ANNOTATION]: "a".repeat(200_000) } } };
    expectDenied(await pipes.send("only", long), "at most 8192 characters");
    const large = annotationOf(randomUUID(), { lastGoodSize: sizeOfCores(1000) });
    expectDenied(await pipes.send("only", large), "only a valid size or the current resources");
  });

  it("may not be changed if it is no pipe", async () => {
    await pipes.create("stranger");
    await pipes.own("stranger", UNLABEL);
    for (const body of [resize(2), hold(2), annotationOf(await pipes.uidOf("stranger"))])
      expectDenied(await pipes.send("stranger", body), "only StatefulSets with the labels");
  });

  it("is restricted only for the controller", async () => {
    const request = pipes.request(pipes.path("only"), { spec: { replicas: 0, ...partition(7) } });
    expect(await dryRunOf(pipes.admin, request)).toBe("accepted");
  });
});
