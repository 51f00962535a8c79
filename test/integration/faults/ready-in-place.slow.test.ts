import {
  RESIZE_AFTER_ANNOTATION,
  RESIZE_OUTCOME_ANNOTATION,
} from "@pipe-scaling/local-cluster/resize-stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe } from "vitest";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../../src/controller/names.ts";
import { collectionPath, objectPath, PODS } from "../../../src/kube/paths.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { TestEnvironment } from "../../support/test-environment.ts";
import { it } from "./fixtures.ts";

const IN_PLACE = { resizeStrategy: "InPlaceOrRollout" } as const;
const UNNOTICED = { [RESIZE_OUTCOME_ANNOTATION]: "NotObserved" };
const SLOWLY = { [RESIZE_AFTER_ANNOTATION]: "2s" };

function labelsOf({ serviceId }: TestEnvironment): Readonly<Record<string, string>> {
  return { [SERVICE_LABEL]: serviceId, [TYPE_LABEL]: DATABASE_TYPE };
}

/** Waits until the controller has given a pod this size, which its kubelet may not have applied. */
async function podIsGiven({ client, pipes }: TestEnvironment, cores: number): Promise<void> {
  const isGiven = async () => {
    const { items } = await client.json<{ readonly items: readonly Pod[] }>({
      path: collectionPath(PODS, pipes),
    });
    return items.some(({ spec }) => spec.containers[0]?.resources?.requests?.["cpu"] === `${cores}`);
  };
  await waitFor(isGiven, { what: `a pod to be given ${cores} cores`, intervalMs: 20 });
}

/** The nodes notice the resizes of all pods, as after a restart of their kubelets. */
async function notice({ client, pipes }: TestEnvironment): Promise<void> {
  const { items } = await client.json<{ readonly items: readonly Pod[] }>({
    path: collectionPath(PODS, pipes),
  });
  for (const { metadata } of items)
    await client.json({
      method: "PATCH",
      path: objectPath(PODS, pipes, metadata.name),
      patchType: "application/merge-patch+json",
      body: { metadata: { annotations: { [RESIZE_OUTCOME_ANNOTATION]: null } } },
    });
}

// The judge checks at every event that no status claims a size that a pod or a template does not have.
describe("Ready=True is never false, and all pods get the size of the template, when", () => {
  it("a running pipe is labelled, and its size is requested while its pods are resized to the default", async ({
    environment,
    invariants,
  }) => {
    invariants.accept(1);
    await environment.createPipe({ name: "first", cores: 1, podLabels: labelsOf(environment) });
    await environment.startController(IN_PLACE);
    await invariants.reached(1);
    await environment.createPipe({
      name: "pipe",
      cores: 2,
      replicas: 2,
      type: "other",
      podLabels: labelsOf(environment),
      podAnnotations: SLOWLY,
    });
    await waitFor(async () => (await environment.pipe("pipe")).status?.availableReplicas === 2, {
      what: "the pipe to run",
    });
    await environment.patchPipe("pipe", { metadata: { labels: labelsOf(environment) } });
    await podIsGiven(environment, 1);
    invariants.accept(2);
    await environment.requestSize(2);
    await invariants.settled(2);
    await invariants.end();
  });

  it.for([
    ["a slow resize", "InPlaceOrRollout", SLOWLY],
    ["a slow resize", "Rollout", SLOWLY],
    ["a resize that its node does not notice", "Rollout", UNNOTICED],
  ] as const)(
    "during %s, the first size is requested again with the strategy %s",
    async ([, strategy, podAnnotations], { environment, invariants, startPipes, requestSize }) => {
      const pipes = ["pipe-a", "pipe-b"].map((name) => ({ name, replicas: 2 }));
      const podLabels = labelsOf(environment);
      await startPipes(
        pipes.map((pipe) => ({ ...pipe, podLabels, podAnnotations })),
        IN_PLACE,
      );
      await requestSize(4);
      await podIsGiven(environment, 4);
      invariants.accept(1);
      await environment.patchScaling({ replicaCpuMillicores: 1000, replicaMemoryGb: 4, strategy });
      if (podAnnotations === UNNOTICED) {
        await environment.waitForCondition("Ready", "False");
        await notice(environment);
      }
      await invariants.settled(1);
      await invariants.end();
    },
  );
});
