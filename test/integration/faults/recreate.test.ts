import { afterEach, beforeEach, it } from "vitest";
import { START_AFTER_ANNOTATION, STOP_AFTER_ANNOTATION } from "../../cluster/stages.ts";
import { World } from "../world.ts";
import { Invariants } from "./invariants.ts";

let world: World;
let invariants: Invariants;
beforeEach(async () => {
  world = await World.create();
  invariants = await Invariants.observe(world);
});
afterEach(async () => {
  await world.end();
  await invariants.close();
});

/** Back at an earlier size it has a ReplicaSet already, and what the Deployment said of that one's rollout. */
it("a pipe that stops before it starts is ready only when its new pod is, each time", async () => {
  await world.startController();
  invariants.accept(1);
  const podAnnotations = { [START_AFTER_ANNOTATION]: "800ms", [STOP_AFTER_ANNOTATION]: "300ms" };
  for (const name of ["pipe-a", "pipe-b"])
    await world.createPipe({ name, cores: 1, strategy: "Recreate", podAnnotations });
  await invariants.settled(1, { quietMs: 0 });
  for (const cores of [4, 1, 4, 2, 1]) {
    invariants.accept(cores);
    await world.askFor(cores);
    await invariants.settled(cores, { quietMs: 0 });
  }
  await invariants.end();
});
