import { describe, expect, it } from "vitest";
import { apply } from "../../../../src/controller/apply/apply.ts";
import { presentForm } from "../../../../src/controller/observe/pipe-view.ts";
import { keyOfPipe } from "../../../../src/controller/observe/workloads/kinds.ts";
import { toStatefulPipeView } from "../../../../src/controller/observe/workloads/stateful-set.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../../src/crd/names.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import type { Container } from "../../../../src/kube/pods.ts";
import type { StatefulSet } from "../../../../src/kube/workloads.ts";
import { anApplier } from "../../../support/fixtures/applier.ts";
import { podOfSet } from "../../../support/fixtures/held-commit.ts";
import { managedBy } from "../../../support/fixtures/resized-deployment.ts";
import { aRollout } from "../../../support/fixtures/snapshot.ts";
import { aStatefulSet } from "../../../support/fixtures/stateful-set.ts";
import { patched } from "../../../support/simulation/patch.ts";

const HOLDER = {
  manager: CONTROLLER_FIELD_MANAGER,
  operation: "Update",
  time: "2026-01-01T00:00:00Z",
  fieldsV1: { "f:spec": { "f:updateStrategy": { "f:rollingUpdate": { "f:partition": {} } } } },
};

/** The API server omits an empty `requests`. */
function withoutEmpty(key: string, value: unknown): unknown {
  return key === "requests" && Object.keys(Object(value)).length === 0 ? undefined : value;
}

/** One commit of a StatefulSet that Kubernetes does not see. @returns its template before and after */
async function undone(resources: NonNullable<Container["resources"]>) {
  const made = aStatefulSet({ options: { resources }, metadata: { managedFields: managedBy("owner") } });
  let current: StatefulSet = made;
  const pods = [0, 1, 2].map((number) => podOfSet(number, "a-1"));
  const server = anApplier((request: KubeRequest) => {
    if (request.method === undefined) return { items: request.path.endsWith("/pods") ? pods : [current] };
    const { metadata, spec = {} } = JSON.parse(JSON.stringify(request.body));
    const { resourceVersion, generation = 0, annotations } = current.metadata;
    current = {
      ...JSON.parse(JSON.stringify(patched(current, { spec }, true), withoutEmpty)),
      metadata: {
        ...current.metadata,
        resourceVersion: `${Number(resourceVersion) + 1}`,
        generation: generation + 1,
        annotations: { ...annotations, ...metadata.annotations },
        managedFields: [...managedBy(CONTROLLER_FIELD_MANAGER), HOLDER],
      },
    };
    return current;
  });
  const pipe = toStatefulPipeView(current);
  expect(pipe.size).toEqual(sizeOfCores(1));
  server.caches.pipes.of(pipe.kind).apply(pipe);
  const rollout = aRollout(sizeOfCores(4), {
    isCommitting: true,
    committedRevision: "a-1",
    inPlaceStartedAtMs: 0,
    startedAtMs: server.clock.now(),
    generation: 8,
    lastGoodSize: presentForm(pipe),
    template: pipe.inTurn?.template,
  });
  await apply(server.applier, { type: "commit", pipe, container: "pipe", rollout });
  const held = server.caches.pipes.get(keyOfPipe(pipe));
  if (!held) throw new Error("the pipe left the cache");
  expect(held).toMatchObject({ isPausedForCommit: true, size: sizeOfCores(4) });
  const action = { type: "continue-commit", pipe: held, container: "pipe", mayReplacePods: false } as const;
  await apply(server.applier, { ...action, isOverdue: true });
  expect(server.caches.pipes.get(keyOfPipe(pipe))).toMatchObject({ isPausedForCommit: false });
  return { before: made.spec.template, after: current.spec.template };
}

describe("the template of a StatefulSet whose commit is undone is the one of the revision that its pods have", () => {
  it.each<[string, NonNullable<Container["resources"]>]>([
    ["as the controller writes it", { requests: { cpu: "1000m", memory: "4Gi" }, limits: { memory: "4Gi" } }],
    ["no memory request", { requests: { cpu: "1000m" }, limits: { memory: "4Gi" } }],
    ["no request", { limits: { cpu: "1000m", memory: "4Gi" } }],
    [
      "memory in bytes",
      { requests: { cpu: "1000m", memory: "4294967296" }, limits: { memory: "4294967296" } },
    ],
  ])("%s", async (_, resources) => {
    const { before, after } = await undone(resources);
    expect(after).toEqual(before);
  });
});
