import { expect, test } from "vitest";
import { viewOf } from "../../../../src/cli/status/scaling-view.ts";
import { pipeRows } from "../../../../src/cli/status/status.ts";
import { MAX_PENDING, type PipeScalingStatus } from "../../../../src/crd/pipe-scaling.ts";
import { aScaling } from "../../../support/fixtures/snapshot.ts";

type Pipes = NonNullable<PipeScalingStatus["pipes"]>;

/** The rows for a status of the current spec, which has the generation 1. */
function rowsOf(pipes: Partial<Pipes>, observedGeneration = 1) {
  const total = { total: 40, updated: 2, summary: "2/40" };
  const scaling = aScaling(4, { status: { observedGeneration, pipes: { ...total, ...pipes } } });
  const nowMs = 0;
  const service = { id: "service", name: "orders", organizationId: "o", namespace: "pipes" };
  return pipeRows({
    service,
    organization: undefined,
    scaling,
    view: viewOf("orders", scaling, nowMs),
    nowMs,
  });
}

test("the wide status has a row for each pipe with its state, how it was resized, and why it was not resized in place", () => {
  const rows = rowsOf({
    inPlace: 1,
    pending: [
      { name: "d", state: "Waiting", message: "waiting for c to prove the size" },
      { name: "e", state: "Waiting", reason: "Deferred", message: "no room now" },
    ],
    resizedBy: { a: "InPlace", b: "Rollout" },
    fallbacks: [{ pipe: "b", reason: "Deferred", message: "no room" }],
  });
  expect(rows).toEqual([
    { pipe: "d", state: "Waiting", message: "waiting for c to prove the size" },
    { pipe: "e", state: "Waiting", reason: "Deferred", message: "no room now" },
    { pipe: "a", state: "Done", resized: "in place" },
    { pipe: "b", state: "Done", resized: "by a rollout", reason: "Deferred", message: "no room" },
  ]);
});

test("the wide status has no state for a pipe that a full list of pending pipes may omit", () => {
  const pending = Array.from({ length: MAX_PENDING }, (_, at) => ({
    name: `pending-${at}`,
    state: "Rolling" as const,
  }));
  const because = { reason: "Deferred", message: "no room" };
  const pipes: Partial<Pipes> = {
    resizedBy: { a: "Rollout" },
    fallbacks: [
      { pipe: "a", ...because },
      { pipe: "b", ...because },
    ],
  };
  const done = { pipe: "a", state: "Done", resized: "by a rollout", ...because };
  expect(rowsOf({ ...pipes, pending }).slice(MAX_PENDING)).toEqual([done, { pipe: "b", ...because }]);
  expect(rowsOf({ ...pipes, pending: pending.slice(1) }).slice(MAX_PENDING - 1)).toEqual([
    done,
    { pipe: "b", state: "Done", ...because },
  ]);
});

test("the wide status has no rows while no controller has observed the newest size", () => {
  expect(rowsOf({ resizedBy: { a: "InPlace" } }, 1)).toHaveLength(1);
  expect(rowsOf({ resizedBy: { a: "InPlace" } }, 0)).toEqual([]);
});
