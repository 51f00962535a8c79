import { describe, expect, it } from "vitest";
import { HistoryBuilder } from "./history-builder.ts";
import { labelsOf, NAMESPACE, SERVICE } from "./history-objects.ts";
import { judge } from "./judge.ts";

/** A service of two pipes with one core, the first of which stops its old pods first, and a request of four cores. */
function service(): HistoryBuilder {
  const history = new HistoryBuilder().leader("controller-1").accept(1).requestSize(1);
  for (const pipe of ["pipe-a", "pipe-b"])
    history.pipe(pipe, 1).replicaSet(pipe, 1).pod(`${pipe}-x`, `${pipe}-1`, 1);
  return history.stopOldPodsFirst("pipe-a").report("True", 1).accept(4).requestSize(4);
}

/** The status says that the API server has refused four cores. */
function refuse(history: HistoryBuilder, pipe: string): HistoryBuilder {
  const size = { replicaCpuMillicores: 4000, replicaMemoryGb: 16, summary: "" };
  const failure = { pipe, size, reason: "Refused", message: "exceeded quota", attempts: 1 } as const;
  return history.report("False", 4, { failures: [{ ...failure, at: "2026-01-01T00:00:00Z" }] });
}

/** The old pod has stopped, and the new one finds no room. */
function stopped(history: HistoryBuilder): HistoryBuilder {
  return history
    .applySize("pipe-a", 4)
    .replicaSet("pipe-a", 4)
    .endPod("pipe-a-x")
    .unschedulable("pipe-a-y", "pipe-a-4", 4);
}

function violationsOf({ entries }: HistoryBuilder): readonly string[] {
  return judge(entries, { services: new Map([[SERVICE, NAMESPACE]]), maxConcurrentRollouts: 50 }).violations;
}

const REFUSED = expect.stringMatching(
  /pipe-a .* stops its pods for 4 16Gi 16Gi, which the API server has refused/,
);
const NO_ROOM = expect.stringMatching(/pipe-a-y .* no node has room for 4 16Gi 16Gi/);

it.each([
  ["Recreate", { type: "Recreate" }],
  ["maxSurge 0", { type: "RollingUpdate", rollingUpdate: { maxSurge: 0 } }],
  ["maxSurge 0%", { type: "RollingUpdate", rollingUpdate: { maxSurge: "0%" } }],
])("reports a restart for a size that the API server has refused for the pipe, with %s", (_, strategy) => {
  const history = refuse(service().stopOldPodsFirst("pipe-a", strategy).limit(2), "pipe-a");
  expect(violationsOf(history.applySize("pipe-a", 4))).toEqual([REFUSED]);
});

it.each<[string, (history: HistoryBuilder) => HistoryBuilder]>([
  ["before the status shows the refusal", (history) => history.limit(2)],
  ["after the limit was lifted", (history) => refuse(history.limit(2), "pipe-a").limit(undefined)],
  ["after the refusal of another pipe", (history) => refuse(history.limit(2), "pipe-b")],
  ["after a refusal for another reason than the limit", (history) => refuse(history, "pipe-a").limit(2)],
])("accepts a restart %s", (_, happened) => {
  const history = happened(service()).applySize("pipe-a", 4);
  expect(violationsOf(history)).toEqual([]);
});

it("accepts a rollout to a refused size if new pods start first", () => {
  const history = refuse(service().limit(2), "pipe-b").applySize("pipe-b", 4);
  expect(violationsOf(history)).toEqual([]);
});

it("accepts a refused size in place, and a smaller one by a rollout", () => {
  const history = refuse(service().limit(2), "pipe-a")
    .resize("pipe-a-x", 4)
    .resize("pipe-a-x", 1)
    .resized("pipe-a-x", 1);
  history.accept(2).requestSize(2).applySize("pipe-a", 2);
  expect(violationsOf(history)).toEqual([]);
});

it("reports a restart for a size that no node has room for", () => {
  expect(violationsOf(stopped(service()))).toEqual([NO_ROOM]);
});

it("accepts that another pod takes the room, but not long before", () => {
  expect(violationsOf(stopped(service().schedule("pipe-b-x")))).toEqual([]);
  expect(violationsOf(stopped(service().schedule("pipe-b-x").after(120_000)))).toEqual([NO_ROOM]);
});

it("accepts an unschedulable pod of a rollout by the owner, or of one without a stop", () => {
  const byOwner = service().overwriteSize("pipe-a", 4).stopOldPodsFirst("pipe-a").replicaSet("pipe-a", 4);
  expect(violationsOf(byOwner.unschedulable("pipe-a-y", "pipe-a-4", 4))).toEqual([]);
  const first = service()
    .applySize("pipe-b", 4)
    .replicaSet("pipe-b", 4)
    .unschedulable("pipe-b-y", "pipe-b-4", 4);
  expect(violationsOf(first)).toEqual([]);
});

it("reports a smaller size of an adopted pipe without a request, in its template and in its pod", () => {
  const history = new HistoryBuilder()
    .leader("controller-1")
    .accept(1)
    .pipe("pipe-a", 4)
    .replicaSet("pipe-a", 4);
  history.pod("pipe-a-x", "pipe-a-4", 4).create(1).resize("pipe-a-x", 1).resized("pipe-a-x", 1);
  const found = violationsOf(history.applySize("pipe-a", 1));
  expect(found.filter((each) => each.includes("without a request"))).toEqual([
    expect.stringMatching(/^pipe-a-x .* applied 1 4Gi 4Gi instead of 4 16Gi 16Gi/),
    expect.stringMatching(/^pipe-a .* applied 1 4Gi 4Gi instead of 4 16Gi 16Gi/),
  ]);
});

it("reports a size before the service has a PipeScaling", () => {
  const history = new HistoryBuilder()
    .leader("controller-1")
    .accept(2)
    .pipe("pipe-a", 1)
    .applySize("pipe-a", 2);
  expect(violationsOf(history)).toEqual([expect.stringContaining("without a request")]);
});

it.each<[string, (history: HistoryBuilder) => HistoryBuilder]>([
  ["a person requests it", (history) => history.pipe("pipe-a", 4).create(4).requestSize(1)],
  [
    "its owner changed its size before",
    (history) => history.pipe("pipe-a", 1).create(1).overwriteSize("pipe-a", 4),
  ],
  ["it joined a service with a size", (history) => history.pipe("other", 1).create(1).pipe("pipe-a", 4)],
  [
    "it was a pipe of another service before",
    (history) => history.pipe("pipe-a", 4, labelsOf("other")).relabel("pipe-a", labelsOf(SERVICE)).create(1),
  ],
  [
    "it was a pipe of another service a moment before, and without labels meanwhile",
    (history) =>
      history
        .pipe("pipe-a", 4, labelsOf("other"))
        .relabel("pipe-a", {})
        .relabel("pipe-a", labelsOf(SERVICE))
        .create(1),
  ],
])("accepts a smaller size of a pipe if %s", (_, happened) => {
  const history = happened(new HistoryBuilder().leader("controller-1").accept(1));
  const found = violationsOf(history.applySize("pipe-a", 1));
  expect(found.filter((each) => each.includes("without a request"))).toEqual([]);
});

it("reports a smaller size of a pipe that belonged to another service long before", () => {
  const history = new HistoryBuilder().leader("controller-1").accept(1).pipe("pipe-a", 4, labelsOf("other"));
  history.relabel("pipe-a", {}).after(10_000).relabel("pipe-a", labelsOf(SERVICE)).create(1);
  expect(violationsOf(history.applySize("pipe-a", 1))).toContainEqual(
    expect.stringContaining("without a request"),
  );
});

describe("an adopted pipe", () => {
  const larger = () => new HistoryBuilder().leader("controller-1").accept(2).pipe("pipe-a", 4).create(4);
  const smaller = () =>
    new HistoryBuilder().leader("controller-1").accept(4).pipe("pipe-a", 1).pipe("pipe-b", 4).create(4);
  const unrequested = (history: HistoryBuilder) =>
    violationsOf(history).filter((each) => each.includes("without a request"));

  it("may not get a smaller size after its service was suspended, which requests none", () => {
    expect(unrequested(larger().suspend().pause("pipe-a", 1))).toHaveLength(1);
    expect(unrequested(larger().suspend().accept(1).requestSize(1).pause("pipe-a", 1))).toEqual([]);
  });

  it.each<[string, () => HistoryBuilder, number]>([
    ["that is larger may get the maximum of the tier", larger, 2],
    ["that is smaller than another one may get the size of that one", smaller, 4],
  ])("%s in place, and not by a rollout", (_, adopted, cores) => {
    expect(unrequested(adopted().pause("pipe-a", cores))).toEqual([]);
    expect(unrequested(adopted().applySize("pipe-a", cores))).toHaveLength(1);
  });
});
