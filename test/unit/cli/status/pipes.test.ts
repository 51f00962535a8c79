import { expect, test } from "vitest";
import { viewOf } from "../../../../src/cli/status/scaling-view.ts";
import { pipeRows } from "../../../../src/cli/status/status.ts";
import { aScaling } from "../../../support/fixtures/snapshot.ts";

test("the wide status has a row for each pipe with its state, how it was resized, and why it was not resized in place", () => {
  const scaling = aScaling(4, {
    status: {
      observedGeneration: 1,
      pipes: {
        total: 4,
        updated: 2,
        summary: "2/4",
        inPlace: 1,
        pending: [
          { name: "d", state: "Waiting", message: "waiting for c to prove the size" },
          { name: "e", state: "Waiting", reason: "Deferred", message: "no room now" },
        ],
        resizedBy: { a: "InPlace", b: "Rollout" },
        fallbacks: [{ pipe: "b", reason: "Deferred", message: "no room" }],
      },
    },
  });
  const service = { id: "service", name: "orders", organizationId: "o", namespace: "pipes" };
  const status = { service, organization: undefined, scaling, view: viewOf("orders", scaling) };
  expect(pipeRows(status)).toEqual([
    { pipe: "d", state: "Waiting", message: "waiting for c to prove the size" },
    { pipe: "e", state: "Waiting", reason: "Deferred", message: "no room now" },
    { pipe: "a", state: "Done", resized: "in place" },
    { pipe: "b", state: "Done", resized: "by a rollout", reason: "Deferred", message: "no room" },
  ]);
});
