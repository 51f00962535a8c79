import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, expect, it } from "vitest";
import { collectionPath, EVENTS } from "../../src/kube/paths.ts";
import { TestEnvironment } from "../support/test-environment.ts";
import { Invariants } from "./faults/invariants.ts";

let owner: TestEnvironment;
let other: TestEnvironment;
let invariants: Invariants;
beforeEach(async () => {
  [owner, other] = await Promise.all([TestEnvironment.create(), TestEnvironment.create()]);
  invariants = await Invariants.observe(owner);
});
afterEach(async () => {
  await invariants.close();
  await Promise.all([owner.end(), other.end()]);
});

it("a controller reports a service of its namespace that another controller manages once, in its log and in an Event", async () => {
  invariants.accept(1);
  await owner.startController();
  await owner.createPipe({ name: "pipe-a", cores: 1 });
  await owner.waitForCondition("Ready", "True");
  await other.startController({ pipeNamespaces: [other.pipes, owner.pipes] });
  const notices = () =>
    other.log.filter(({ msg }) => String(msg).startsWith("the PipeScaling is left alone"));
  await waitFor(() => notices().length > 0, { what: "a notice of the other controller" });
  await invariants.settled(1, { quietMs: 1000 });
  await invariants.end();
  expect(notices()).toMatchObject([
    { namespace: owner.pipes, name: owner.serviceId, reason: "UnknownService" },
  ]);
  expect(other.errors).toEqual([]);
  const reported = async () => {
    const { items } = await owner.client.json<{ readonly items: readonly { readonly reason?: string }[] }>({
      path: collectionPath(EVENTS, owner.pipes),
      query: { fieldSelector: `regarding.name=${owner.serviceId}` },
    });
    const own = items.filter(({ reason }) => reason === "UnknownService");
    return own.length > 0 && own;
  };
  expect(await waitFor(reported, { what: "the Event" })).toHaveLength(1);
});
