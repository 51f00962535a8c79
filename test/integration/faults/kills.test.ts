import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { randomOf, seed } from "../../gen/random.ts";
import { World } from "../world.ts";
import { ControllerProcess, controllerKubeconfig } from "./controller-process.ts";
import { Invariants } from "./invariants.ts";

const KILLS = 20;
const pipes = ["pipe-a", "pipe-b", "pipe-c", "pipe-d", "pipe-e", "pipe-f"];

let world: World;
let invariants: Invariants;
beforeEach(async () => {
  world = await World.create();
  invariants = await Invariants.observe(world);
});
afterEach(async () => {
  await invariants.close();
  await world.end();
});

it(`a rescale is finished by the next, however often one is killed (seed ${seed})`, {
  timeout: 240_000,
}, async () => {
  const random = randomOf(seed);
  const kubeconfig = await controllerKubeconfig(world);
  // The lease is the same one's, so that the next need not wait for it to run out.
  const start = () => new ControllerProcess(world, kubeconfig, "the-same");
  invariants.accept(1);
  for (const name of pipes) await world.createPipe({ name, cores: 1 });
  let controller = start();
  await world.waitForCondition("Ready", "True");
  let cores = 1;
  for (let kills = 0; kills < KILLS; kills++) {
    if (kills % 2 === 0) {
      cores = (cores % 8) + 1;
      invariants.accept(cores);
      await world.askFor(cores);
    }
    await controller.says('"leading"');
    await delay(random() * 700);
    await controller.kill();
    controller = start();
  }
  await invariants.settled(cores, { quietMs: 3000 });
  await controller.kill();
  await invariants.end();
  expect(invariants.gaps).toEqual([]);
});
