import { randomUUID } from "node:crypto";
import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { NEVER_READY_LABEL, STOP_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { REVISION_HASH_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import type { KubeObject, ManagedFields } from "../../src/kube/objects.ts";
import { collectionPath, PODS } from "../../src/kube/paths.ts";
import { pipeDeployment } from "../support/fixtures/pipe.ts";
import { dryRunOf, expectDenied, outcomeOf } from "./denials.ts";
import { isReady, PIPE_LABELS, type StatefulOptions, StatefulPipes } from "./stateful-pipes.ts";

// Each test sends a write to a pod or its deletion, as the controller or a thief of its token could.
const BROKEN = { ...PIPE_LABELS, [NEVER_READY_LABEL]: "true" };

/** StatefulSets, by name, each with one pod. */
const OWNERS: Readonly<Record<string, StatefulOptions>> = {
  ready: { podLabels: PIPE_LABELS, graceSeconds: 30 },
  broken: { podLabels: BROKEN, graceSeconds: 30 },
  unscheduled: { podLabels: PIPE_LABELS, graceSeconds: 30, podSpec: { nodeSelector: { absent: "true" } } },
  ending: { podLabels: BROKEN, graceSeconds: 30, podAnnotations: { [STOP_AFTER_ANNOTATION]: "1h" } },
  unlabeled: { podLabels: { [NEVER_READY_LABEL]: "true" } },
  "without-service": { podLabels: { [TYPE_LABEL]: "database", [NEVER_READY_LABEL]: "true" } },
  "other-type": { podLabels: { ...BROKEN, [TYPE_LABEL]: "kafka" } },
};

let pipes: StatefulPipes;
/** Names of the pods of a Deployment and of none, with the labels of pipes. */
let others: readonly (readonly [what: string, name: string])[];

beforeAll(async () => {
  const cluster = await sharedCluster();
  pipes = await StatefulPipes.start(cluster);
  const { pipes: namespace } = pipes.release;
  const deployment = pipeDeployment({ name: "deployed", namespace, serviceId: "a", podLabels: BROKEN });
  const lone = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "lone", namespace, labels: BROKEN },
    spec: deployment.spec.template.spec,
  };
  await apply(cluster, [deployment, lone]);
  for (const [name, options] of Object.entries(OWNERS)) await pipes.create(name, { replicas: 1, ...options });
  const ofDeployment = async () => {
    const path = collectionPath(PODS, namespace);
    const query = { labelSelector: "app=deployed" };
    return (await pipes.admin.json<{ items: readonly KubeObject[] }>({ path, query })).items[0]?.metadata
      .name;
  };
  others = [
    ["of a Deployment", await waitFor(ofDeployment, { what: "the pod of the Deployment" })],
    ["of no owner", "lone"],
  ];
  const exists = (name: string) => pipes.pod(`${name}-0`, ({ metadata }) => metadata.name !== "");
  for (const name of Object.keys(OWNERS)) await exists(name);
  await pipes.pod("ready-0", isReady);
  for (const name of ["broken-0", "ending-0"]) await pipes.pod(name, isScheduled);
  // The owner gives the pod an hour to end.
  const body = { gracePeriodSeconds: 3600 };
  await pipes.admin.json({ method: "DELETE", path: pipes.path("ending-0", PODS), body });
});
afterAll(async () => {
  if (!pipes) return;
  const body = { gracePeriodSeconds: 0 };
  await pipes.admin.json({ method: "DELETE", path: pipes.path("ending-0", PODS), body });
  await pipes.end();
});

function isScheduled(pod: KubeObject & { readonly spec?: { readonly nodeName?: string } }): boolean {
  return pod.spec?.nodeName !== undefined;
}

const labeled = (labels: object) => ({ metadata: { labels } });
const revision = (value: string | null) => labeled({ [REVISION_HASH_LABEL]: value });

describe("with the token of the controller, a pod of a StatefulSet", () => {
  it.each([
    ["a revision of its StatefulSet", "ready-6d8f9c7b44"],
    ["a revision with a short name", "ready-6"],
  ])("may get the label of %s", async (_, value) => {
    expect(await pipes.patchPod("ready-0", revision(value))).toBe("accepted");
  });

  it("may get the label although it is not ready", async () => {
    expect(await pipes.patchPod("broken-0", revision("broken-6d8f9c7b44"))).toBe("accepted");
  });

  it.each<[string, string | null]>([
    ["the revision of another StatefulSet", "broken-6d8f9c7b44"],
    ["the revision of a StatefulSet with a name of the same length", "other-6d8f9c7b44"],
    ["the revision of a StatefulSet whose name begins like its own", "ready-too-6d8f9c7b44"],
    ["the name of its StatefulSet", "ready"],
    ["a longer hash", "ready-6d8f9c7b44x"],
    ["63 characters", `ready-${"x".repeat(57)}`],
    ["a hash in capitals", "ready-6D8F"],
    ["nothing", ""],
    ["no value", null],
  ])("may not get the label with %s", async (_, value) => {
    expectDenied(await pipes.patchPod("ready-0", revision(value)), "only with the name of a revision");
  });

  const ONLY_LABEL = "only the label controller-revision-hash of a pod";
  const OWNER = { apiVersion: "v1", kind: "ConfigMap", name: "absent", uid: randomUUID() };

  it.each<[string, object]>([
    ["another label", labeled({ a: "b" })],
    ["the label of its service", labeled({ "pipes.clouddb.dev/service": "b" })],
    ["the label of its index", labeled({ "apps.kubernetes.io/pod-index": "7" })],
    ["labels, to none", labeled({ app: null })],
    ["annotations", { metadata: { annotations: { a: "b" } } }],
    ["finalizers", { metadata: { finalizers: ["example.com/never"] } }],
    ["its owners", { metadata: { ownerReferences: [OWNER] } }],
    ["its owners, to none", { metadata: { ownerReferences: null } }],
    ["its image", { spec: { containers: [{ name: "pipe", image: "evil" }] } }],
    ["its deadline", { spec: { activeDeadlineSeconds: 1 } }],
  ])("may not get a change of %s", async (_, body) => {
    expectDenied(await pipes.patchPod("ready-0", body), ONLY_LABEL);
  });

  it.each<[string, object, object]>([
    ["a finalizer", { finalizers: ["example.com/never"] }, {}],
    ["an image", {}, { containers: [{ name: "pipe", image: "evil" }] }],
  ])("may not get %s together with the label", async (_, metadata, spec) => {
    const labels = { [REVISION_HASH_LABEL]: "ready-6d8f9c7b44" };
    expectDenied(await pipes.patchPod("ready-0", { metadata: { ...metadata, labels }, spec }), ONLY_LABEL);
  });

  it("may not get the label in the name of another manager", async () => {
    const path = pipes.path("ready-0", PODS);
    const request = pipes.request(path, revision("ready-6d8f9c7b44"), "helm");
    const sentence = "may not change the field managers of a pod";
    expectDenied(await dryRunOf(pipes.controller, request), sentence);
  });

  it("may not get another time in the record of its resize", async () => {
    const resources = { requests: { cpu: "2", memory: "8Gi" }, limits: { memory: "8Gi" } };
    const body = { spec: { containers: [{ name: "pipe", resources }] } };
    await pipes.controller.json(pipes.request(`${pipes.path("ready-0", PODS)}/resize`, body));
    const metadata = revision("ready-6d8f9c7b44").metadata;
    for (const labels of [{}, metadata.labels]) {
      const attempt = async () => {
        const { resourceVersion, managedFields = [] } = (await pipes.pod("ready-0", isReady)).metadata;
        const isResize = ({ subresource }: ManagedFields) => subresource === "resize";
        expect(managedFields.some(isResize)).toBe(true);
        const records = managedFields.map((each) =>
          isResize(each) ? { ...each, time: "2100-01-01T00:00:00Z", fieldsV1: { "f:spec": {} } } : each,
        );
        const sent = { metadata: { resourceVersion, labels, managedFields: records } };
        const outcome = await pipes.patchPod("ready-0", sent);
        return outcome.startsWith("409 ") ? undefined : outcome;
      };
      const outcome = await waitFor(attempt, { what: "a write without a conflict" });
      expectDenied(outcome, "may not choose the time of its record");
    }
  });

  it("may not get the label without the labels of a pipe", async () => {
    for (const name of ["unlabeled", "without-service", "other-type"]) {
      const outcome = await pipes.patchPod(`${name}-0`, revision(`${name}-6d8f9c7b44`));
      expectDenied(outcome, "only pods of StatefulSets with the labels");
    }
  });

  it("is the only one that may get the label", async () => {
    for (const [, name] of others) {
      const outcome = await pipes.patchPod(name, revision("deployed-6d8f9c7b44"));
      expectDenied(outcome, "only pods of StatefulSets with the labels");
      expect(await pipes.patchPod(name, revision("deployed-6d8f9c7b44"), pipes.admin)).toBe("accepted");
    }
  });
});

describe("with the token of the controller, a deletion of a pod", () => {
  const SECONDS = "only with its own grace period";

  it.each(["broken-0", "unscheduled-0"])("is allowed if it is not ready, such as %s", async (name) => {
    expect(await pipes.deletePod(name)).toBe("accepted");
    expect(await pipes.deletePod(name, { propagationPolicy: "Background" })).toBe("accepted");
    const { uid, resourceVersion } = (await pipes.pod(name, () => true)).metadata;
    expect(await pipes.deletePod(name, { preconditions: { uid, resourceVersion } })).toBe("accepted");
  });

  it("is allowed without a body", async () => {
    const request = {
      method: "DELETE",
      path: pipes.path("broken-0", PODS),
      query: { dryRun: "All" },
    } as const;
    expect(await outcomeOf(pipes.controller.json(request))).toBe("accepted");
  });

  it.each(["unscheduled-0", "broken-0"])("takes effect, as of %s", async (name) => {
    const before = await pipes.pod(name, () => true);
    await pipes.controller.json({ method: "DELETE", path: pipes.path(name, PODS) });
    await pipes.pod(name, ({ metadata }) => metadata.uid !== before.metadata.uid);
    if (name === "broken-0") await pipes.pod(name, isScheduled);
  });

  it("is denied if it is ready", async () => {
    expectDenied(await pipes.deletePod("ready-0"), "only pods that are not ready");
  });

  it.each([0, 1, 29, 31])(
    "is denied with the grace period %d instead of its own",
    async (gracePeriodSeconds) => {
      expectDenied(await pipes.deletePod("broken-0", { gracePeriodSeconds }), SECONDS);
    },
  );

  it("is denied at once, too, in the query of the request", async () => {
    const query = { dryRun: "All", gracePeriodSeconds: "0" };
    const request = { method: "DELETE", path: pipes.path("broken-0", PODS), query } as const;
    expectDenied(await outcomeOf(pipes.controller.json(request)), SECONDS);
  });

  it("is denied if it would end sooner than after the deletion by its owner", async () => {
    for (const gracePeriodSeconds of [0, 30])
      expectDenied(await pipes.deletePod("ending-0", { gracePeriodSeconds }), SECONDS);
    const { deletionTimestamp } = (await pipes.pod("ending-0", () => true)).metadata;
    expect(Date.parse(deletionTimestamp ?? "")).toBeGreaterThan(Date.now() + 600_000);
  });

  it.each([
    { propagationPolicy: "Orphan" },
    { propagationPolicy: "Foreground" },
    { orphanDependents: true },
    { orphanDependents: false },
  ])("is denied with %o", async (options) => {
    expectDenied(await pipes.deletePod("broken-0", options), "only with the propagation policy Background");
  });

  it("is denied without the labels of a pipe", async () => {
    for (const name of ["unlabeled-0", "without-service-0", "other-type-0"])
      expectDenied(await pipes.deletePod(name), "only pods of StatefulSets with the labels");
  });

  it("is denied if no StatefulSet owns it", async () => {
    for (const [, name] of others)
      expectDenied(await pipes.deletePod(name), "only pods of StatefulSets with the labels");
  });
});
