import { expect, it } from "vitest";
import { HistoryBuilder } from "./history-builder.ts";
import { labelsOf, NAMESPACE, SERVICE } from "./history-objects.ts";
import { judge } from "./judge.ts";

const pipes = ["pipe-a", "pipe-b", "pipe-c", "pipe-d", "pipe-e"] as const;

/** A leader, and a service of five pipes with one core each. */
function service(): HistoryBuilder {
  const history = new HistoryBuilder().leader("controller-1").accept(1).requestSize(1);
  for (const name of pipes) history.pipe(name, 1);
  return history.report("True", 1);
}

function scope(maxConcurrentRollouts = 50) {
  return { services: new Map([[SERVICE, NAMESPACE]]), maxConcurrentRollouts };
}

function violationsOf({ entries }: HistoryBuilder, maxConcurrentRollouts?: number): readonly string[] {
  return judge(entries, scope(maxConcurrentRollouts)).violations;
}

/** Rescales the canary first, and then the other pipes, three at a time. */
function rescaled(history: HistoryBuilder, cores: number): HistoryBuilder {
  history
    .accept(cores)
    .requestSize(cores)
    .applySize("pipe-a", cores)
    .replicaSet("pipe-a", cores)
    .report("False", cores);
  history
    .rolledOut("pipe-a")
    .applySize("pipe-b", cores)
    .applySize("pipe-c", cores)
    .applySize("pipe-d", cores);
  history.rolledOut("pipe-b").applySize("pipe-e", cores);
  return history.rolledOut("pipe-c").rolledOut("pipe-d").rolledOut("pipe-e").report("True", cores);
}

it("accepts a correct rescale and the rescale back", () => {
  expect(violationsOf(rescaled(rescaled(service(), 4), 1))).toEqual([]);
});

it("orders events by version, not by arrival", () => {
  const { entries } = rescaled(service(), 4);
  expect(judge(entries.toReversed(), scope())).toEqual(judge(entries, scope()));
});

it("recognizes every write of the controller", () => {
  const { entries } = service()
    .accept(4)
    .requestSize(4)
    .applySize("pipe-a", 4)
    .rolledOut("pipe-a")
    .report("False", 4);
  expect(judge(entries, scope()).writes).toEqual([
    expect.stringContaining("PipeScaling service-1"),
    expect.stringContaining("Deployment pipe-a"),
    expect.stringContaining("PipeScaling service-1"),
  ]);
});

it("does not count a pipe as a second canary whose owner resumes it after the controller applied the size", () => {
  const history = service().pauseByAnotherWriter("pipe-a").accept(4).requestSize(4);
  history.applySize("pipe-a", 4, { paused: true }).resumeByAnotherWriter("pipe-a");
  expect(violationsOf(history.applySize("pipe-b", 4))).toEqual([]);
});

it("attributes an emptied status to another writer", () => {
  expect(violationsOf(service().leader("").emptyStatus())).toEqual([]);
});

it("attributes a size that was requested twice to the earlier request if only that one explains the write", () => {
  const history = service()
    .accept(2)
    .accept(4)
    .accept(2)
    .requestSize(4)
    .applySize("pipe-a", 2)
    .applySize("pipe-a", 4);
  expect(violationsOf(history)).toEqual([]);
});

it("accepts one rollback of a pipe that does not come up to the size that it ran before", () => {
  const history = service().accept(4).requestSize(4).applySize("pipe-a", 4).applySize("pipe-a", 1);
  expect(violationsOf(history)).toEqual([]);
});

it("does not mistake a writer that restores an older Deployment for the controller", () => {
  const history = rescaled(rescaled(service(), 2), 4).restoreOlder("pipe-a", 2);
  expect(violationsOf(history)).toEqual([]);
});

it("accepts a deleted PipeScaling that is re-created with the size of all pipes, or as suspended", () => {
  const histories = [
    rescaled(service(), 4).requestSize(8).deleteScaling().create(4),
    service().accept(4).requestSize(4).applySize("pipe-a", 4).deleteScaling().create(4, true),
    // No pipe has been resized yet: this is a new installation.
    service().deleteScaling().create(undefined),
  ];
  for (const history of histories) expect(violationsOf(history)).toEqual([]);
});

it("accepts that the size of a re-created PipeScaling replaces a newer one", () => {
  const history = rescaled(rescaled(service(), 2), 4);
  for (const name of pipes) history.overwriteSize(name, 2);
  history.deleteScaling().create(2).overwriteSize("pipe-a", 8).applySize("pipe-a", 2);
  expect(violationsOf(history)).toEqual([]);
});

it.each<[string, (history: HistoryBuilder) => HistoryBuilder, RegExp]>([
  [
    "a pipe returns to the size of an older request",
    (history) => rescaled(history, 4).report("False", 4).applySize("pipe-b", 1),
    /^pipe-b at version \d+: the controller replaced 4 16Gi 16Gi by the older request 1 4Gi 4Gi/,
  ],
  [
    "a pipe that has run a size is rolled back",
    (history) =>
      history.accept(4).requestSize(4).applySize("pipe-a", 4).rolledOut("pipe-a").applySize("pipe-a", 1),
    /^pipe-a .* by the older request/,
  ],
  [
    "a pipe is rolled back to a size that it never ran",
    (history) => history.accept(2).accept(4).requestSize(4).applySize("pipe-a", 4).applySize("pipe-a", 2),
    /^pipe-a .* is not the one allowed rollback to 1 4Gi 4Gi/,
  ],
  [
    "a pipe is rolled back twice",
    (history) =>
      history
        .accept(4)
        .requestSize(4)
        .applySize("pipe-a", 4)
        .applySize("pipe-a", 1)
        .overwriteSize("pipe-a", 4)
        .applySize("pipe-a", 1),
    /^pipe-a .* by the older request/,
  ],
  [
    "a pipe gets a size that was never requested",
    (history) => history.report("False", 1).applySize("pipe-a", 8),
    /^pipe-a .* the controller applied 8 32Gi 32Gi, which was never requested/,
  ],
  [
    "a ReplicaSet is created for a size that was never requested",
    (history) => history.replicaSet("pipe-a", 8),
    /^pipe-a-8 .* a ReplicaSet of pipe-a was created with 8 32Gi 32Gi/,
  ],
  [
    "a second pipe is resized before the canary has proven the size",
    (history) => history.accept(4).requestSize(4).applySize("pipe-a", 4).applySize("pipe-b", 4),
    /^pipe-b .* no pipe has proven 4 16Gi 16Gi yet, but pipe-a, pipe-b roll it out at once/,
  ],
  [
    "a fourth pipe of five is resized at the same time",
    (history) =>
      history
        .accept(4)
        .requestSize(4)
        .applySize("pipe-a", 4)
        .rolledOut("pipe-a")
        .applySize("pipe-b", 4)
        .applySize("pipe-c", 4)
        .applySize("pipe-d", 4)
        .applySize("pipe-e", 4),
    /^pipe-e .* 4 pipes roll out at once \(pipe-b, pipe-c, pipe-d, pipe-e\), more than 3/,
  ],
  [
    "a fourth pipe of five is resized while another one is being rolled back",
    (history) =>
      history
        .accept(4)
        .requestSize(4)
        .applySize("pipe-a", 4)
        .rolledOut("pipe-a")
        .applySize("pipe-b", 4)
        .applySize("pipe-b", 1)
        .applySize("pipe-c", 4)
        .applySize("pipe-d", 4)
        .applySize("pipe-e", 4),
    /^pipe-e .* 4 pipes roll out at once \(pipe-b, pipe-c, pipe-d, pipe-e\), more than 3/,
  ],
  [
    "a pipe is resized while old pods of another pipe are still terminating",
    (history) =>
      history
        .accept(4)
        .requestSize(4)
        .applySize("pipe-a", 4)
        .rolledOut("pipe-a")
        .applySize("pipe-b", 4)
        .applySize("pipe-c", 4)
        .applySize("pipe-d", 4)
        .rolledOut("pipe-b", 1)
        .applySize("pipe-e", 4),
    /^pipe-e .* 4 pipes roll out at once/,
  ],
  [
    "a PipeScaling is re-created with a size that no pipe has yet",
    (history) => history.accept(4).requestSize(4).deleteScaling().create(4),
    /^service-1 .* created it with 4 16Gi 16Gi, which resizes pipe-a with 1 4Gi 4Gi/,
  ],
  [
    "a PipeScaling is re-created with a size that resizes pipes",
    (history) =>
      history.accept(4).requestSize(4).applySize("pipe-a", 4).requestSize(1).deleteScaling().create(4),
    /^service-1 .* created it with 4 16Gi 16Gi, which resizes pipe-b with 1 4Gi 4Gi/,
  ],
  [
    "a PipeScaling is re-created with the tier's default size although a pipe was resized",
    (history) => history.accept(4).requestSize(4).applySize("pipe-a", 4).deleteScaling().create(undefined),
    /^service-1 .* created it with the tier's default size, which resizes pipe-a with 4 16Gi 16Gi/,
  ],
  [
    "a suspended PipeScaling is re-created as not suspended",
    (history) => history.deleteScaling().create(1, true).deleteScaling().accept(4).create(4),
    /^service-1 .* which resizes/,
  ],
  [
    "a pipe is written too often for one request",
    (history) => {
      history.accept(4).requestSize(4);
      for (let write = 0; write < 21; write += 1) history.applySize("pipe-a", 4);
      return history;
    },
    /^pipe-a .* wrote it more than 20 times for one request/,
  ],
  [
    "Ready=True is reported before the last pipe runs the size",
    (history) =>
      history.accept(4).requestSize(4).applySize("pipe-a", 4).rolledOut("pipe-a").report("True", 4),
    /^service-1 .* not every pipe ran it/,
  ],
  [
    "Ready=True is reported while a pipe is rolling out",
    (history) =>
      rescaled(history, 4)
        .accept(2)
        .requestSize(2)
        .accept(4)
        .requestSize(4)
        .applySize("pipe-a", 2)
        .applySize("pipe-a", 4)
        .report("False", 4)
        .report("True", 4),
    /^service-1 .* not every pipe ran it/,
  ],
  [
    "Ready=True is about an older generation",
    (history) => history.requestSize(1).report("True", 1, { observedGeneration: 1 }),
    /^service-1 .* Ready=True is about generation 1 or 1 of 2/,
  ],
  [
    "Ready=True is about a different size than the one in the spec",
    (history) => history.requestSize(2).report("True", 1),
    /^service-1 .* not the size in its spec/,
  ],
  [
    "a status is both Reconciling and Stalled",
    (history) =>
      history.report("False", 1, {
        conditions: ["Reconciling", "Stalled"].map((type) => ({
          type,
          status: "True",
          reason: "",
          message: "",
          lastTransitionTime: "",
        })),
      }),
    /^service-1 .* both Reconciling and Stalled/,
  ],
  [
    "the controller takes ownership of another field",
    (history) => history.own("pipe-a", { "f:spec": { "f:replicas": {} } }),
    /^pipe-a .* the controller became the owner of spec.replicas/,
  ],
  [
    "a write removes a field and leaves it without a manager",
    (history) => history.accept(4).requestSize(4).applySize("pipe-a", 4, { replicas: 2 }),
    /^pipe-a .* changed more of it than the size/,
  ],
  [
    "a pipe of another type is resized",
    (history) =>
      history.accept(4).pipe("other", 1, labelsOf(SERVICE, "object-storage")).applySize("other", 4),
    /^other .* is not a pipe/,
  ],
  [
    "a pipe of another service is resized",
    (history) => history.accept(4).pipe("foreign", 1, labelsOf("service-2")).applySize("foreign", 4),
    /^foreign .* is not a pipe/,
  ],
  [
    "a pipe gets a size after its owner has removed its labels",
    (history) => history.accept(4).requestSize(4).relabel("pipe-a", {}).applySize("pipe-a", 4),
    /^pipe-a .* is not a pipe/,
  ],
  [
    "a pipe is resized while there is no leader",
    (history) => history.leader("").accept(4).requestSize(4).applySize("pipe-a", 4),
    /^pipe-a .* while there was no leader/,
  ],
  [
    "a status is written while there is no leader",
    (history) => history.leader("").report("False", 1),
    /^service-1 .* while there was no leader/,
  ],
])("reports that %s", (_what, happened, violation) => {
  expect(violationsOf(happened(service()))).toEqual([expect.stringMatching(violation)]);
});

it("reports too many concurrent rollouts across all services", () => {
  const history = service().accept(4).requestSize(4).applySize("pipe-a", 4).rolledOut("pipe-a");
  history.applySize("pipe-b", 4).applySize("pipe-c", 4);
  expect(violationsOf(history, 1)).toEqual([
    expect.stringContaining("2 pipes of all services roll out at once"),
  ]);
});

it("does not evaluate a period that it observed incompletely", () => {
  const history = service().accept(4).requestSize(4).applySize("pipe-a", 4);
  history.gap("Deployment", (unseen) =>
    unseen.applySize("pipe-b", 4).report("True", 4).replicaSet("pipe-a", 8),
  );
  expect(violationsOf(history)).toEqual([]);
});

it("accepts a rollback of a rollout that began unobserved and only seemed to complete", () => {
  const history = rescaled(service(), 2).accept(4).requestSize(4).report("False", 4);
  history.gap("Deployment", (unseen) => unseen.applySize("pipe-a", 4));
  expect(violationsOf(history.applySize("pipe-a", 2))).toEqual([]);
});

it("accepts a rollback to the size before a pipe had no replicas, if its pods cannot be created at the new one", () => {
  const history = rescaled(service(), 2).scale("pipe-a", 0).accept(4).requestSize(4);
  history.applySize("pipe-a", 4, { replicas: 0 }).scale("pipe-a", 0).scale("pipe-a", 1);
  expect(violationsOf(history.applySize("pipe-a", 2))).toEqual([]);
});

it("reports a rollback of a pipe that ran the size before it was scaled to zero", () => {
  const history = rescaled(rescaled(service(), 2), 4).scale("pipe-a", 0).scale("pipe-a", 1);
  const [violation] = violationsOf(history.applySize("pipe-a", 2));
  expect(violation).toMatch(/is not the one allowed rollback to 4 16Gi 16Gi/);
});

it("attributes the fields of another writer and the resulting ReplicaSet to that writer", () => {
  expect(violationsOf(service().overwriteSize("pipe-a", 3).replicaSet("pipe-a", 3))).toEqual([]);
});
