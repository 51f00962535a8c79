import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, expect, it } from "vitest";
import { REVISION_HASH_LABEL } from "../../src/controller/names.ts";
import { resourcesFor } from "../../src/controller/observe/resources.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import { PODS } from "../../src/kube/paths.ts";
import { isReady, StatefulPipes } from "./stateful-pipes.ts";
import { annotationOf, hold, partition, release } from "./stateful-writes.ts";

/*
 * The writes that resize a StatefulSet in place, with the token of the controller, as it may make them. They show that the
 * policies allow what the controller needs, and that Kubernetes holds the pods as expected.
 */

interface StatefulSet extends KubeObject {
  readonly spec: object;
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly currentRevision?: string;
    readonly updateRevision?: string;
  };
}

let pipes: StatefulPipes;
beforeAll(async () => {
  pipes = await StatefulPipes.start(await sharedCluster());
});
afterAll(() => pipes?.end());

/** Waits until the controller manager has observed the spec, and the status satisfies a condition. */
function observed(
  name: string,
  what: string,
  isExpected: (status: NonNullable<StatefulSet["status"]>) => boolean,
): Promise<StatefulSet> {
  const read = async () => {
    const object = await pipes.admin.json<StatefulSet>({ path: pipes.path(name) });
    const { metadata, status } = object;
    return status?.observedGeneration === metadata.generation && status && isExpected(status)
      ? object
      : undefined;
  };
  return waitFor(read, { what });
}

async function store(path: string, body: object): Promise<void> {
  await pipes.controller.json(pipes.request(path, body));
}

const SIZE = { spec: { containers: [{ name: "pipe", resources: resourcesFor(sizeOfCores(2), false) }] } };

it.each([
  ["without a partition", 0],
  ["with a partition of its owner", 1],
])("a StatefulSet %s gets another size and its pods stay, also while it is scaled up", async (_, owners) => {
  const name = `commit-${owners}`;
  await pipes.create(name, {
    replicas: 2,
    spec: { updateStrategy: { rollingUpdate: { partition: owners } } },
  });
  const pods = [`${name}-0`, `${name}-1`];
  const uidsOf = async (names: readonly string[]) =>
    Promise.all(names.map(async (each) => (await pipes.pod(each, isReady)).metadata.uid));
  const uids = await uidsOf(pods);
  const before = await observed(name, "the first revision", ({ updatedReplicas }) => updatedReplicas === 2);
  const uid = before.metadata.uid;

  const resize = (pod: string) => store(`${pipes.path(pod, PODS)}/resize`, SIZE);
  for (const pod of pods) await resize(pod);
  await pipes.write(name, { ...annotationOf(uid), ...hold(2, owners) });
  const { status } = await observed(
    name,
    "the new revision",
    ({ updateRevision }) => updateRevision !== before.status?.updateRevision,
  );

  // The new pod gets the old revision.
  await pipes.own(name, { spec: { replicas: 3 } });
  pods.push(`${name}-2`);
  uids.push(...(await uidsOf([`${name}-2`])));
  await resize(`${name}-2`);

  for (const pod of pods) {
    const labels = { [REVISION_HASH_LABEL]: status?.updateRevision };
    await store(pipes.path(pod, PODS), { metadata: { labels } });
  }
  await observed(name, "all pods to count as updated", ({ updatedReplicas }) => updatedReplicas === 3);
  await pipes.write(name, release(owners));
  const isComplete = ({ replicas, currentRevision, updateRevision }: NonNullable<StatefulSet["status"]>) =>
    replicas === 3 &&
    updateRevision === status?.updateRevision &&
    (owners > 0 || currentRevision === updateRevision);
  const after = await observed(name, "the end of the commit", isComplete);
  expect(after.spec).toMatchObject(partition(owners));
  expect(await uidsOf(pods)).toEqual(uids);
});
