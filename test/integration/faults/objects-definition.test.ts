import { afterAll, beforeAll, expect, it } from "vitest";
import { PIPE_SCALINGS } from "../../../src/crd/names.ts";
import { collectionPath } from "../../../src/kube/paths.ts";
import { type Cluster, startCluster } from "../../cluster/cluster.ts";
import { kubectl } from "../../cluster/kubectl.ts";
import { silentProgress } from "../../cluster/progress.ts";
import { waitFor } from "../../cluster/wait.ts";
import { World } from "../world.ts";
import { Invariants } from "./invariants.ts";

const DEFINITION = "crds/pipes.clouddb.dev_pipescalings.yaml";

let cluster: Cluster;
let world: World;
let invariants: Invariants;
beforeAll(async () => {
  cluster = await startCluster({ progress: silentProgress });
  world = await World.create("basic", cluster);
  invariants = await Invariants.observe(world);
});
afterAll(async () => {
  await world?.end();
  await invariants?.close();
  await cluster?.stop();
});

it("the definition deleted, all PipeScalings with it, and put back: no pipe is resized, and they come back", async () => {
  const names = ["pipe-a", "pipe-b", "pipe-c"];
  invariants.accept(1);
  await world.startController();
  for (const name of names) await world.createPipe({ name, cores: 1 });
  await world.waitForCondition("Ready", "True");
  invariants.accept(4);
  await world.askFor(4);
  await invariants.settled(4, { quietMs: 500 });
  const generations = () =>
    Promise.all(names.map(async (name) => (await world.pipe(name)).metadata.generation));
  const before = await generations();
  const { metadata } = await world.scaling();

  await kubectl(cluster, ["delete", "-f", DEFINITION]);
  const path = collectionPath(PIPE_SCALINGS, world.pipes);
  await waitFor(
    () =>
      world.client.json({ path }).then(
        () => false,
        () => true,
      ),
    {
      what: "the kind to be served no longer",
    },
  );
  // News of the service: there is nothing by which to size it.
  await world.createPipe({ name: "pipe-new", cores: 2 });
  await waitFor(async () => (await world.pipe("pipe-new")).status?.availableReplicas === 1, {
    what: "the new pipe to run",
  });
  expect(await generations()).toEqual(before);
  expect((await world.pipe("pipe-new")).metadata.generation).toBe(1);

  await kubectl(cluster, ["apply", "-f", DEFINITION]);
  const again = await waitFor(() => world.scaling(), {
    what: "the PipeScaling to be back",
    timeoutMs: 30_000,
  });
  expect(again.metadata.uid).not.toBe(metadata.uid);
  expect(again.spec).toEqual({ replicaCpuMillicores: 4000, replicaMemoryGb: 16 });
  await invariants.settled(4, { quietMs: 1000 });
  expect(await generations()).toEqual(before);
  expect(world.errors).toEqual([]);
  await invariants.end();
});
