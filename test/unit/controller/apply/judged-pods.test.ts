import { describe, expect, it } from "vitest";
import { apply } from "../../../../src/controller/apply/apply.ts";
import { DATABASE_TYPE, TEMPLATE_HASH_LABEL, TYPE_LABEL } from "../../../../src/controller/names.ts";
import { toPodView } from "../../../../src/controller/observe/pod-view.ts";
import { toPipeView } from "../../../../src/controller/observe/workloads/deployment.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import type { Pod } from "../../../../src/kube/pods.ts";
import { anApplier } from "../../../support/fixtures/applier.ts";
import { pipeDeployment } from "../../../support/fixtures/pipe.ts";
import { aRollout } from "../../../support/fixtures/snapshot.ts";

const ONE = sizeOfCores(1);
const LABELS = { [TYPE_LABEL]: DATABASE_TYPE, [TEMPLATE_HASH_LABEL]: "hash" };

function aPod(name: string, resourceVersion: string, labels: Record<string, string> = LABELS): Pod {
  const ownerReferences = [{ kind: "ReplicaSet", name: "a-hash", uid: "uid-set" }];
  const metadata = { name, namespace: "pipes", uid: `uid-${name}`, resourceVersion, generation: 1, labels };
  return { metadata: { ...metadata, ownerReferences }, spec: { containers: [] } };
}

function aDeployment() {
  const made = pipeDeployment({ name: "a", namespace: "pipes", serviceId: "service" });
  const metadata = { ...made.metadata, uid: "uid", resourceVersion: "1", generation: 1 };
  return { ...made, metadata, spec: { ...made.spec, selector: { matchLabels: { app: "a" } } } };
}

/** Writes a judgment about the pod a-1 in version 5. @param listed the pods in a read, or its error */
async function judged(listed: readonly Pod[] | Error, type: "adopt" | "roll-back" = "adopt") {
  const deployment = aDeployment();
  const made = anApplier(({ method, path }) => {
    if (method === "PATCH") return deployment;
    if (!path.endsWith("/pods")) return { items: [deployment] };
    if (listed instanceof Error) throw listed;
    return { items: listed };
  });
  const seen = toPodView(aPod("a-1", "5"));
  made.caches.pods.apply(seen);
  const pipe = toPipeView(deployment);
  made.caches.pipes.of(pipe.kind).apply(pipe);
  const action = { pipe, container: "pipe", size: ONE, rollout: aRollout(ONE), judged: [seen] };
  const error = await apply(made.applier, { type, ...action });
  const cached = [...made.caches.pods.values()].map(
    ({ metadata: { name, resourceVersion } }) => `${name} ${resourceVersion}`,
  );
  return { error, cached, isWritten: made.requests.some(({ method }) => method === "PATCH") };
}

const refused = (code: number, message: string) =>
  new KubeApiError("GET /pods", code, JSON.stringify({ message }));

describe.each(["adopt", "roll-back"] as const)("a judgment about pods (%s)", (type) => {
  it("is written if the pods are as they were seen", async () => {
    const pods = [aPod("a-1", "5"), aPod("a-2", "6", { [TEMPLATE_HASH_LABEL]: "hash" })];
    expect(await judged(pods, type)).toMatchObject({ isWritten: true, error: undefined, cached: ["a-1 5"] });
  });

  it.each([
    ["has changed", [aPod("a-1", "6")], ["a-1 6"]],
    ["is gone", [], []],
    ["is not the only one", [aPod("a-1", "5"), aPod("a-2", "6")], ["a-1 5", "a-2 6"]],
    ["was replaced", [aPod("a-2", "6")], ["a-2 6"]],
  ])("is not written if the pod %s, and the next decision knows it", async (_, pods, cached) => {
    expect(await judged(pods, type)).toMatchObject({ isWritten: false, error: { isConflict: true }, cached });
  });

  it("is written if the permission to read pods is missing, which the watch may not show for minutes", async () => {
    const forbidden = refused(403, 'pods is forbidden: User "controller" cannot list resource "pods"');
    expect(await judged(forbidden, type)).toMatchObject({ isWritten: true, error: undefined });
  });

  it("is not written if the pods cannot be read for another reason", async () => {
    const { error, isWritten } = await judged(refused(500, "etcd"), type);
    expect([error?.reason, isWritten]).toEqual(["WriteFailed", false]);
  });
});
