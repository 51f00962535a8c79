import { afterEach, beforeEach, expect, it } from "vitest";
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

it("writes nothing for a minute once every pipe has its size", { timeout: 240_000 }, async () => {
  await world.startController();
  invariants.accept(1);
  for (const name of ["pipe-a", "pipe-b", "pipe-c", "pipe-d", "pipe-e"])
    await world.createPipe({ name, cores: 1, replicas: 2 });
  await world.createPipe({ name: "other", cores: 3, type: "object-storage" });
  await world.waitForCondition("Ready", "True");
  invariants.accept(4);
  await world.askFor(4);
  await invariants.settled(4, { quietMs: 60_000 });
  await invariants.end();
  expect(invariants.gaps).toEqual([]);
});
