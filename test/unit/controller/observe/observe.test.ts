import { expect, it } from "vitest";
import { createCaches } from "../../../../src/controller/observe/caches.ts";
import { observe } from "../../../../src/controller/observe/observe.ts";
import { toPodView } from "../../../../src/controller/observe/pod-view.ts";
import { NO_WRITES } from "../../../../src/controller/observe/write-record.ts";
import { TIMEOUTS } from "../../../../src/controller/timeouts.ts";
import { ORGANIZATION_LABEL } from "../../../../src/records/labels.ts";
import { parseService, serviceConfigMapName } from "../../../../src/records/service.ts";
import { aPipe, NOW_MS, POLICY } from "../../../support/fixtures/snapshot.ts";

const SERVICE = "6f1c2a54-9d0b-4c53-8a42-0f8f6b1d2c11";

it.each([
  [undefined, 1],
  ["pods is forbidden", 0],
])("pods in the cache do not count while the controller may not watch them (%s)", (podsProblem, expected) => {
  const caches = createCaches();
  const name = serviceConfigMapName(SERVICE);
  const record = parseService(
    name,
    { [ORGANIZATION_LABEL]: SERVICE },
    { name: "orders", namespace: "pipes" },
  );
  const metadata = { name, namespace: "records", uid: "uid", resourceVersion: "1", generation: 1 };
  caches.services.apply({ metadata, record });
  caches.pipes.of("Deployment").apply(aPipe("a", { serviceId: SERVICE }));
  const ownerReferences = [{ kind: "ReplicaSet", name: "a-hash", uid: "uid-set" }];
  const labels = { "pod-template-hash": "hash" };
  const ofPod = { name: "a-1", namespace: "pipes", uid: "uid-a-1", resourceVersion: "1", labels };
  caches.pods.apply(toPodView({ metadata: { ...ofPod, ownerReferences }, spec: { containers: [] } }));
  const sources = {
    caches,
    writes: NO_WRITES,
    deletedScalings: { recreation: () => ({ atMs: 0, isSeen: false }) },
    departed: { of: () => [] },
    endedPods: { last: () => undefined },
    podsProblem: () => podsProblem,
    statefulSetsProblem: () => undefined,
    leadingSinceMs: 0,
  };
  const scope = { namespace: "records", tiers: new Map(), policy: POLICY, timeouts: TIMEOUTS };
  const snapshot = observe(sources, scope, SERVICE, NOW_MS);
  expect([...snapshot.pods].map(([pipe, pods]) => [pipe, pods.length])).toEqual([["a", expected]]);
});
