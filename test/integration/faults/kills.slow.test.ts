import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import { ControllerProcess, controllerKubeconfig } from "./controller-process.ts";
import { it } from "./fixtures.ts";
import { randomOf, seed } from "./random-numbers.ts";

const KILLS = 20;
const pipes = ["pipe-a", "pipe-b", "pipe-c", "pipe-d", "pipe-e", "pipe-f"];

it(`rescales complete although the controller is killed ${KILLS} times (seed ${seed})`, {
  timeout: 240_000,
}, async ({ environment, invariants, requestSize }) => {
  const random = randomOf(seed);
  const kubeconfig = await controllerKubeconfig(environment);
  // With the same identity, the next process takes over the Lease without waiting until it expires.
  const start = () => new ControllerProcess(environment, kubeconfig, "the-same");
  invariants.accept(1);
  for (const name of pipes) await environment.createPipe({ name, cores: 1 });
  let controller = start();
  await environment.waitForCondition("Ready", "True");
  let cores = 1;
  for (let kills = 0; kills < KILLS; kills++) {
    if (kills % 2 === 0) {
      cores = (cores % 8) + 1;
      await requestSize(cores);
    }
    await controller.waitForLog('"leading"');
    await delay(random() * 700);
    await controller.kill();
    controller = start();
  }
  await invariants.settled(cores, { quietMs: 3000 });
  await controller.kill();
  await invariants.end();
  expect(invariants.gaps).toEqual([]);
});
