import { describe, expect, it } from "vitest";
import { beginInPlace } from "../../../../src/controller/apply/begin-in-place.ts";
import { WriteHistory } from "../../../../src/controller/apply/write-history.ts";
import { InPlaceResizes } from "../../../../src/controller/in-place/resizes.ts";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../../../src/controller/names.ts";
import { createCaches } from "../../../../src/controller/observe/caches.ts";
import { toDeploymentView } from "../../../../src/controller/observe/deployment-view.ts";
import { TIMEOUTS } from "../../../../src/controller/timeouts.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import type { Deployment } from "../../../../src/kube/objects.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { pipeDeployment } from "../../../support/fixtures/pipe.ts";
import { aRollout } from "../../../support/fixtures/snapshot.ts";

function deployment(): Deployment {
  const podLabels = { [SERVICE_LABEL]: "service", [TYPE_LABEL]: DATABASE_TYPE };
  const made = pipeDeployment({ name: "a", namespace: "pipes", serviceId: "service", cores: 1, podLabels });
  return { ...made, metadata: { ...made.metadata, uid: "uid", resourceVersion: "1", generation: 1 } };
}

/** @param turns number of resizes that may begin now */
function setup(turns: number) {
  const caches = createCaches();
  const clock = new FakeClock();
  const writes = new WriteHistory(caches.pipes);
  const dryRun = Promise.withResolvers<never>();
  const json = <T>(request: { readonly method?: string }): Promise<T> =>
    request.method === "PATCH"
      ? dryRun.promise
      : Promise.resolve(JSON.parse(JSON.stringify({ items: [deployment()] })));
  const client = { json, stream: () => Promise.reject(new Error("no watch is expected")) };
  const state = { turns };
  const resizes = new InPlaceResizes({
    ...{ client, clock, timeouts: TIMEOUTS, pipes: caches.pipes, enqueue: () => undefined },
    ...{ onProblem: () => undefined, onPod: () => undefined, onDeferred: () => undefined },
    ...{ onEnd: () => undefined, onFallback: () => undefined },
    takeTurn: () => {
      if (state.turns === 0) return false;
      state.turns -= 1;
      return true;
    },
    giveBackTurn: () => {
      state.turns += 1;
    },
  });
  const pipe = toDeploymentView(deployment());
  caches.pipes.apply(pipe);
  const rollout = aRollout(sizeOfCores(4));
  const begun = beginInPlace(
    { client, resizes, writes, clock },
    { type: "begin-in-place", pipe, container: "pipe", size: rollout.size, rollout },
  );
  return { caches, pipe, writes, resizes, dryRun, state, begun };
}

const error = (code: number) => new KubeApiError("PATCH", code, "{}");

describe("a resize in place that begins", () => {
  it("counts as active during its checks", async () => {
    const { resizes, dryRun, begun } = setup(1);
    expect(resizes.active).toBe(1);
    dryRun.reject(error(500));
    await begun;
    expect(resizes.active).toBe(0);
  });

  it.each([
    ["fails", 500],
    ["conflicts", 409],
    ["is refused", 422],
  ])("returns its turn if the dry run %s", async (_what, code) => {
    const { dryRun, state, begun } = setup(1);
    expect(state.turns).toBe(0);
    dryRun.reject(error(code));
    await begun.catch(() => undefined);
    expect(state.turns).toBe(1);
  });

  it("returns no turn that it did not take", async () => {
    const { dryRun, state, begun } = setup(0);
    dryRun.reject(error(422));
    await begun;
    expect(state.turns).toBe(0);
  });

  it("leaves nothing behind if the Deployment is deleted during the dry run", async () => {
    const { caches, pipe, writes, resizes, dryRun, state, begun } = setup(1);
    caches.pipes.remove({ ...pipe, metadata: { ...pipe.metadata, resourceVersion: "2" } });
    expect([resizes.active, state.turns]).toEqual([0, 1]);
    dryRun.reject(error(500));
    await begun;
    expect(writes.records.size).toBe(0);
    expect(resizes.views([pipe]).size).toBe(0);
  });
});
