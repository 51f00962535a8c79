import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { expect } from "vitest";
import { RETRY_ANNOTATION } from "../../../src/controller/names.ts";
import { PIPE_SCALINGS } from "../../../src/crd/names.ts";
import { collectionPath } from "../../../src/kube/paths.ts";
import { it as base } from "./fixtures.ts";

const CRD = "crds/pipes.clouddb.dev_pipescalings.yaml";

/** A cluster of its own, because the test deletes the CRD. */
const it = base.override("clusterOptions", { scope: "file" }, {});

it("a CRD that is deleted and created again resizes no pipe, and the PipeScaling comes back, suspended because a new pipe has another size", async ({
  cluster,
  environment,
  invariants,
  startPipes,
  requestSize,
}) => {
  const path = collectionPath(PIPE_SCALINGS, environment.pipes);
  const names = ["pipe-a", "pipe-b", "pipe-c"];
  await startPipes(names.map((name) => ({ name })));
  await requestSize(4);
  await invariants.settled(4, { quietMs: 500 });
  const generations = () =>
    Promise.all(names.map(async (name) => (await environment.pipe(name)).metadata.generation));
  const before = await generations();
  const hasWatchFailed = () =>
    environment.log.some((line) => line["level"] === "warn" && JSON.stringify(line).includes(path));
  const { metadata } = await environment.scaling();

  await kubectl(cluster, ["delete", "-f", CRD]);
  await waitFor(
    () =>
      environment.client.json({ path }).then(
        () => false,
        () => true,
      ),
    {
      what: "the kind to be removed",
    },
  );
  // This reconciles the service, which has no PipeScaling now.
  await environment.createPipe({ name: "pipe-new", cores: 2 });
  await waitFor(async () => (await environment.pipe("pipe-new")).status?.availableReplicas === 1, {
    what: "the new pipe to run",
  });
  // The owner could create and change a PipeScaling before the watch works again.
  await waitFor(hasWatchFailed, { what: "the watch of the PipeScalings to fail" });
  expect(await generations()).toEqual(before);
  expect((await environment.pipe("pipe-new")).metadata.generation).toBe(1);

  await kubectl(cluster, ["apply", "-f", CRD]);
  const again = await waitFor(() => environment.scaling(), {
    what: "the PipeScaling to exist again",
    timeoutMs: 90_000,
  });
  expect(again.metadata.uid).not.toBe(metadata.uid);
  expect(again.spec).toEqual({ replicaCpuMillicores: 4000, replicaMemoryGb: 16, suspend: true });
  await environment.waitForCondition("Ready", "Unknown", "Suspended");
  expect(await generations()).toEqual(before);
  expect((await environment.pipe("pipe-new")).metadata.generation).toBe(1);

  // The new pipe would have to restart, so it waits for a request.
  await environment.patchScaling({ suspend: false }, { [RETRY_ANNOTATION]: new Date().toISOString() });
  await invariants.settled(4, { quietMs: 1000 });
  expect(await generations()).toEqual(before);
  expect(environment.errors).toEqual([]);
  await invariants.end();
});
