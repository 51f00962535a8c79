import { expect } from "vitest";
import { it } from "./fixtures.ts";

it("the controller writes nothing once every pipe has its size", async ({
  environment,
  invariants,
  startPipes,
  requestSize,
}) => {
  const names = ["pipe-a", "pipe-b", "pipe-c", "pipe-d", "pipe-e"];
  await environment.createPipe({ name: "other", cores: 3, type: "object-storage" });
  await startPipes(names.map((name) => ({ name, replicas: 2 })));
  await requestSize(4);
  // A simulated day without a write is in test/unit/controller/simulation/histories.test.ts.
  await invariants.settled(4, { quietMs: 10_000 });
  await invariants.end();
  expect(invariants.gaps).toEqual([]);
});
