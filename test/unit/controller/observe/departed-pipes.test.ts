import { describe, expect, it } from "vitest";
import { createCaches } from "../../../../src/controller/observe/caches.ts";
import { DepartedPipes } from "../../../../src/controller/observe/deleted-objects.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import { HOLD } from "../../../../src/controller/observe/workloads/stateful-set.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { managedBy } from "../../../support/fixtures/resized-deployment.ts";
import { aPipe, aRollout } from "../../../support/fixtures/snapshot.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";

const KEPT = aStatefulPipe({
  options: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: HOLD } } },
  metadata: { managedFields: managedBy("owner") },
});
const ON_DELETE = aStatefulPipe({ options: { updateStrategy: { type: "OnDelete" } } });

function setup() {
  const { pipes } = createCaches();
  const departed = new DepartedPipes(pipes);
  const at = (resourceVersion: string, changes: Partial<PipeView> = {}) => {
    const pipe = aPipe("a", { isPaused: true, isPausedForCommit: true, pausedForCommitAtMs: 0, ...changes });
    return { ...pipe, metadata: { ...pipe.metadata, resourceVersion } };
  };
  const leave = (changes: Partial<PipeView> = {}) => {
    const store = pipes.of(changes.kind ?? "Deployment");
    store.apply(at("1", changes));
    store.remove(at("2", changes));
  };
  return { pipes, departed, at, leave };
}

describe("a Deployment that leaves the cache", () => {
  it("is remembered for its service while the controller has paused it", () => {
    const { departed, leave } = setup();
    leave();
    expect(departed.of("service")).toMatchObject([{ metadata: { name: "a" } }]);
    expect(departed.of("other")).toEqual([]);
  });

  it.each<[string, Partial<PipeView>]>([
    ["it is not paused", { isPaused: false, isPausedForCommit: false }],
    ["its owner paused it", { isPausedForCommit: false }],
    ["it is being deleted", { isBeingDeleted: true }],
    ["its strategy is OnDelete, so nothing is held", { inTurn: ON_DELETE.inTurn }],
    ["the partition of its owner keeps all pods, so nothing is held", { inTurn: KEPT.inTurn }],
  ])("is not remembered if %s", (_, changes) => {
    const { departed, leave } = setup();
    leave(changes);
    expect(departed.all()).toEqual([]);
  });

  it("is remembered for its service after a read that shows no label of a service any more", () => {
    const { departed, at, leave } = setup();
    leave();
    departed.observe(at("3", { serviceId: "" }));
    expect(departed.of("service")).toMatchObject([{ metadata: { resourceVersion: "3" } }]);
  });

  it("is forgotten when a read shows that it is resumed or gone", () => {
    const { departed, at, leave } = setup();
    leave();
    departed.observe(at("3", { isPaused: false, isPausedForCommit: false }));
    expect(departed.all()).toEqual([]);
    leave();
    departed.forget("uid-a");
    expect(departed.all()).toEqual([]);
  });

  it("is forgotten when its labels come back, because the cache has it", () => {
    const { pipes, departed, at, leave } = setup();
    leave();
    pipes.of("Deployment").apply(at("3"));
    expect(departed.all()).toEqual([]);
  });

  it("is remembered for the service in its annotation if nothing else shows one", () => {
    const { departed, at } = setup();
    const lastRollout = aRollout(sizeOfCores(1), { serviceId: "earlier" });
    departed.observe(at("3", { serviceId: "", lastRollout }));
    expect(departed.of("earlier")).toHaveLength(1);
  });

  it("is remembered although the watch delivers earlier versions after a response", () => {
    const { pipes, departed, at } = setup();
    departed.observe(at("5", { serviceId: "" }));
    pipes.of("Deployment").apply(at("3", { isPaused: false, isPausedForCommit: false }));
    pipes.of("Deployment").remove(at("4"));
    expect(departed.all()).toMatchObject([{ isPaused: true, metadata: { resourceVersion: "5" } }]);
  });

  it("is remembered if the response to the pause comes only then", () => {
    const { departed, at } = setup();
    departed.observe(at("3"));
    expect(departed.of("service")).toHaveLength(1);
  });
});

it("a Deployment in the cache has not departed, whatever a response says", () => {
  const { pipes, departed, at } = setup();
  pipes.of("Deployment").apply(at("3"));
  departed.observe(at("4"));
  expect(departed.all()).toEqual([]);
});
