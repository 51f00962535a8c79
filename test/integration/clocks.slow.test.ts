import { NEVER_READY_LABEL, START_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { expect, it, onTestFinished } from "vitest";
import { REVISION_ANNOTATION } from "../../src/controller/names.ts";
import { collectionPath, objectPath, PODS } from "../../src/kube/paths.ts";
import type { Pod } from "../../src/kube/pods.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { resourcesOf, TestEnvironment } from "../support/test-environment.ts";
import { Invariants } from "./faults/invariants.ts";

const FIVE_MINUTES_MS = 5 * 60_000;

it("with the clock 5 minutes behind, an earlier size whose pods crash now stops one Recreate pipe, which is rolled back", async () => {
  const environment = await TestEnvironment.create();
  onTestFinished(() => environment.end());
  const behind = { ...systemClock, now: () => Date.now() - FIVE_MINUTES_MS };
  const invariants = await Invariants.observe(environment);
  const names = ["pipe-a", "pipe-b", "pipe-c"];
  invariants.accept(1);
  const podAnnotations = { [START_AFTER_ANNOTATION]: "4s" };
  for (const name of names)
    await environment.createPipe({ name, cores: 1, strategy: "Recreate", podAnnotations });
  await environment.startController({ rolloutTimeoutMs: 20_000 }, { clock: behind });
  await environment.waitForCondition("Ready", "True");
  for (const cores of [4, 2]) {
    invariants.accept(cores);
    await environment.requestSize(cores);
    await invariants.settled(cores, { quietMs: 0 });
  }
  const revisions = await revisionsOf(environment, names);
  invariants.accept(4);
  await environment.requestSize(4);
  await crashPod(environment, "16Gi");
  const ended = await waitFor(
    async () => {
      const { metadata, status } = await environment.scaling();
      const ready = status?.conditions?.find(({ type }) => type === "Ready");
      if (ready?.observedGeneration !== metadata.generation) return undefined;
      return ready?.reason === "Progressing" ? undefined : ready;
    },
    { what: "the rescale to end" },
  );
  expect(ended).toMatchObject({ status: "False", reason: "RolloutTimeout" });
  const isBack = async () => {
    const pipes = await Promise.all(names.map((name) => environment.pipe(name)));
    return pipes.every((pipe) => resourcesOf(pipe) === "2 8Gi 8Gi" && pipe.status?.availableReplicas === 1);
  };
  await waitFor(isBack, { what: "all pipes to run two cores" });
  const restarted = (await revisionsOf(environment, names)).filter(
    (each, index) => each !== revisions[index],
  );
  expect(restarted).toHaveLength(1);
  // Throws if a status was Ready=True before every pipe ran the size.
  await invariants.end();
});

/** Lets the new pod with this much memory crash before it is ready. */
async function crashPod({ client, pipes }: TestEnvironment, memory: string): Promise<void> {
  const pod = await waitFor(
    async () => {
      const { items } = await client.json<{ readonly items: readonly Pod[] }>({
        path: collectionPath(PODS, pipes),
      });
      return items.find(({ spec }) => spec.containers[0]?.resources?.requests?.["memory"] === memory);
    },
    { what: "the new pod", intervalMs: 10 },
  );
  await client.json({
    method: "PATCH",
    path: objectPath(PODS, pipes, pod.metadata.name),
    patchType: "application/merge-patch+json",
    body: { metadata: { labels: { [NEVER_READY_LABEL]: "true" } } },
  });
}

function revisionsOf(environment: TestEnvironment, names: readonly string[]): Promise<unknown[]> {
  return Promise.all(
    names.map(async (name) => (await environment.pipe(name)).metadata.annotations?.[REVISION_ANNOTATION]),
  );
}
