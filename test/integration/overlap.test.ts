import { afterEach, beforeEach, expect, it } from "vitest";
import { waitFor } from "../cluster/wait.ts";
import { Invariants } from "./faults/invariants.ts";
import { World } from "./world.ts";

let owner: World;
let other: World;
let invariants: Invariants;
beforeEach(async () => {
  [owner, other] = await Promise.all([World.create(), World.create()]);
  invariants = await Invariants.observe(owner);
});
afterEach(async () => {
  await invariants.close();
  await Promise.all([owner.end(), other.end()]);
});

it("two controllers with a namespace in common: the one that does not know the service speaks once, and yields", async () => {
  invariants.accept(1);
  await owner.startController();
  await owner.createPipe({ name: "pipe-a", cores: 1 });
  await owner.waitForCondition("Ready", "True");
  await other.startController({ pipeNamespaces: [other.pipes, owner.pipes] });
  await waitFor(() => other.errors.some(({ msg }) => String(msg).startsWith("another controller reports")), {
    what: "a word on the other controller",
  });
  await invariants.settled(1, { quietMs: 1000 });
  await invariants.end();
  expect(other.errors).toHaveLength(1);
  expect(other.errors[0]).toMatchObject({ namespace: owner.pipes, name: owner.serviceId });
});
