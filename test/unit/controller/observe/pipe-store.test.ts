import { describe, expect, it } from "vitest";
import { BY_PIPE, BY_SERVICE, createCaches } from "../../../../src/controller/observe/caches.ts";
import { toPodView } from "../../../../src/controller/observe/pod-view.ts";
import { keyOfPipe } from "../../../../src/controller/observe/workloads/kinds.ts";
import { aPipe } from "../../../support/fixtures/snapshot.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";

const deployment = aPipe("a");
const statefulSet = aStatefulPipe();

function podOf(owner: { readonly kind: string; readonly name: string }, labels: Record<string, string>) {
  const metadata = { name: `of-${owner.kind}`, namespace: "pipes", uid: owner.kind, resourceVersion: "1" };
  return toPodView({
    metadata: { ...metadata, labels, ownerReferences: [{ ...owner, uid: "u" }] },
    spec: { containers: [] },
  });
}

describe("a Deployment and a StatefulSet with the same name", () => {
  it("are two pipes of their service", () => {
    const { pipes } = createCaches();
    const changes: string[] = [];
    pipes.onChange((change) => changes.push(change.type));
    pipes.of(deployment.kind).apply(deployment);
    pipes.of(statefulSet.kind).apply(statefulSet);
    expect(pipes.by(BY_SERVICE, "service")).toEqual([deployment, statefulSet]);
    expect([pipes.size, [...pipes.values()].length, changes]).toEqual([2, 2, ["added", "added"]]);
    expect(pipes.get(keyOfPipe(deployment))).toBe(deployment);
    expect(pipes.get(keyOfPipe(statefulSet))).toBe(statefulSet);
    pipes
      .of(deployment.kind)
      .remove({ ...deployment, metadata: { ...deployment.metadata, resourceVersion: "2" } });
    expect(pipes.by(BY_SERVICE, "service")).toEqual([statefulSet]);
    expect(pipes.get(keyOfPipe(deployment))).toBeUndefined();
  });

  it.each(["statefulset", "my-statefulset"])("are found by their keys in the namespace %s", (namespace) => {
    const { pipes } = createCaches();
    for (const pipe of [deployment, statefulSet]) {
      const moved = { ...pipe, metadata: { ...pipe.metadata, namespace } };
      pipes.of(moved.kind).apply(moved);
      expect(pipes.get(keyOfPipe(moved))).toBe(moved);
    }
  });

  it("keep versions that cannot be compared apart", () => {
    const { pipes } = createCaches();
    pipes
      .of(statefulSet.kind)
      .apply({ ...statefulSet, metadata: { ...statefulSet.metadata, resourceVersion: "900" } });
    pipes
      .of(deployment.kind)
      .observe({ ...deployment, metadata: { ...deployment.metadata, resourceVersion: "5" } });
    expect(pipes.size).toBe(2);
  });

  it("have pods of their own", () => {
    const { pods } = createCaches();
    const ofDeployment = podOf({ kind: "ReplicaSet", name: "a-5d8f" }, { "pod-template-hash": "5d8f" });
    const ofStatefulSet = podOf({ kind: "StatefulSet", name: "a" }, { "controller-revision-hash": "a-77" });
    pods.apply(ofDeployment);
    pods.apply(ofStatefulSet);
    expect(pods.by(BY_PIPE, keyOfPipe(deployment))).toEqual([ofDeployment]);
    expect(pods.by(BY_PIPE, keyOfPipe(statefulSet))).toEqual([ofStatefulSet]);
    expect(ofStatefulSet).toMatchObject({ pipeName: "statefulset/a", templateHash: "a-77", isReady: false });
  });
});
