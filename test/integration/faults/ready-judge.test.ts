import { expect, it } from "vitest";
import { HistoryBuilder } from "./history-builder.ts";
import { labelsOf, NAMESPACE, SERVICE } from "./history-objects.ts";
import { judge } from "./judge.ts";

/** A service of two pipes with two pods of one core each, for a minute. */
function service(): HistoryBuilder {
  const history = new HistoryBuilder().leader("controller-1").accept(1).requestSize(1);
  for (const pipe of ["pipe-a", "pipe-b"]) {
    history.pipe(pipe, 1).replicaSet(pipe, 1);
    for (const pod of ["x", "y"]) history.pod(`${pipe}-${pod}`, `${pipe}-1`, 1);
  }
  return history.report("True", 1).after(60_000);
}

/** A resize in place whose pods have the size, while the templates have the old one. */
function ahead(history: HistoryBuilder): HistoryBuilder {
  history.accept(4).requestSize(4).report("False", 4);
  return history.resize("pipe-a-x", 4).resized("pipe-a-x", 4).after(60_000);
}

function violationsOf({ entries }: HistoryBuilder): readonly string[] {
  return judge(entries, { services: new Map([[SERVICE, NAMESPACE]]), maxConcurrentRollouts: 50 }).violations;
}

it.each<[string, (history: HistoryBuilder) => HistoryBuilder]>([
  [
    "a resize in place that is reported when the last template has followed",
    (history) => {
      history.accept(4).requestSize(4);
      for (const pipe of ["pipe-a", "pipe-b"]) {
        for (const pod of [`${pipe}-x`, `${pipe}-y`]) history.resize(pod, 4).resized(pod, 4);
        history.pause(pipe, 4).resizeReplicaSet(`${pipe}-1`, 4).resume(pipe).rolledOut(pipe);
      }
      return history.after(60_000).report("True", 4);
    },
  ],
  [
    "a status about an older generation, which says nothing about the requested size",
    (history) => history.accept(4).requestSize(4).resize("pipe-a-x", 4).after(60_000).resized("pipe-a-x", 4),
  ],
  [
    "a suspended service, whose status is unknown",
    (history) => ahead(history).requestSize(1).report("Unknown", 1).after(60_000).leader("controller-1"),
  ],
  [
    "a pod of another size that ends",
    (history) => ahead(history).endPod("pipe-a-x").requestSize(1).after(60_000).report("True", 1),
  ],
  [
    "a pod of a Deployment that does not belong to the service any more",
    (history) => ahead(history).relabel("pipe-a", {}).requestSize(1).after(60_000).report("True", 1),
  ],
  [
    "a template that another writer changes, if the status follows in time",
    (history) => history.overwriteSize("pipe-a", 3).after(9000).report("False", 1).after(60_000),
  ],
  [
    "a pod that another writer resizes, if the status follows in time",
    (history) =>
      history.resizeByAnotherWriter("pipe-a-x", 3).resized("pipe-a-x", 3).after(9000).report("False", 1),
  ],
  [
    "a repair in place of a pod that another writer resized, which takes a moment",
    (history) =>
      history
        .resizeByAnotherWriter("pipe-a-x", 3)
        .resized("pipe-a-x", 3)
        .after(1000)
        .resize("pipe-a-x", 1)
        .after(1000)
        .resized("pipe-a-x", 1)
        .after(60_000)
        .leader("controller-1"),
  ],
  [
    "a status that was in flight when another writer changed a template",
    (history) => history.report("False", 1).overwriteSize("pipe-a", 3).after(5000).report("True", 1),
  ],
  [
    "a resize for the former service that was in flight when its pipe moved here, if the status follows in time",
    (history) =>
      history
        .relabel("pipe-a", labelsOf("service-2"))
        .after(60_000)
        .relabel("pipe-a", labelsOf(SERVICE))
        .after(100)
        .resize("pipe-a-x", 3)
        .report("False", 1)
        .resized("pipe-a-x", 3)
        .after(60_000),
  ],
  [
    "a time that was observed incompletely",
    (history) =>
      ahead(history).gap("Pod", (unseen) =>
        unseen.requestSize(1).report("True", 1).resize("pipe-a-x", 1).resized("pipe-a-x", 1),
      ),
  ],
])("accepts Ready=True with %s", (_what, happened) => {
  const faults = violationsOf(happened(service())).filter((each) => each.includes("Ready=True at"));
  expect(faults.filter((each) => !each.includes("not every pipe ran it"))).toEqual([]);
});

it.each<[string, (history: HistoryBuilder) => HistoryBuilder, RegExp]>([
  [
    "a pod still has the size of an earlier request when the size of the template is requested again",
    (history) => ahead(history).requestSize(1).report("True", 1),
    /^pipe-a-x .* it has 4 16Gi 16Gi .* Ready=True at 1 4Gi 4Gi \(since the controller's write/,
  ],
  [
    "the controller resizes a pod before it changes the status",
    (history) => history.accept(4).resize("pipe-a-x", 4),
    /^pipe-a-x .* it has 4 16Gi 16Gi, and runs with 1 4Gi 4Gi .* Ready=True at 1/,
  ],
  [
    "the kubelet has not finished the resize of a pod",
    (history) => ahead(history).requestSize(1).resize("pipe-a-x", 1).report("True", 1),
    /^pipe-a-x .* it has 1 4Gi 4Gi, and runs with 4 16Gi 16Gi/,
  ],
  [
    "the controller applies a template before it changes the status",
    (history) => history.accept(4).applySize("pipe-a", 4),
    /^pipe-a .* it has 4 16Gi 16Gi at version \d+, but service-1 is Ready=True at 1 4Gi 4Gi/,
  ],
  [
    "a template does not follow its pods, and the status does not follow the template",
    (history) => history.overwriteSize("pipe-a", 3).after(11_000).leader("controller-1"),
    /^pipe-a .* it has 3 12Gi 12Gi .* \(for 11000 ms\)/,
  ],
  [
    "another writer resized a pod, and the status never follows",
    (history) =>
      history
        .resizeByAnotherWriter("pipe-a-x", 3)
        .resized("pipe-a-x", 3)
        .after(11_000)
        .leader("controller-1"),
    /^pipe-a-x .* it has 3 12Gi 12Gi .* \(for 11000 ms\)/,
  ],
  [
    "a Deployment whose pods have another size than its template joins the service",
    (history) =>
      ahead(history.relabel("pipe-a", labelsOf("service-2")))
        .requestSize(1)
        .report("True", 1)
        .relabel("pipe-a", labelsOf(SERVICE))
        .after(11_000)
        .leader("controller-1"),
    /^pipe-a-x .* it has 4 16Gi 16Gi .* \(for 11000 ms\)/,
  ],
  [
    "the controller resizes a pod long after its pipe moved here",
    (history) =>
      history
        .relabel("pipe-a", labelsOf("service-2"))
        .relabel("pipe-a", labelsOf(SERVICE))
        .after(3000)
        .resize("pipe-a-x", 3),
    /^pipe-a-x .* it has 3 12Gi 12Gi.* \(since the controller's write/,
  ],
  [
    "a new pod has the size of an older template, and the status never follows",
    (history) => history.pod("pipe-a-z", "pipe-a-1", 3).after(11_000).leader("controller-1"),
    /^pipe-a-z .* it has 3 12Gi 12Gi .* \(for 11000 ms\)/,
  ],
  [
    "a status is written that ignores what another writer did long before",
    (history) =>
      history
        .resizeByAnotherWriter("pipe-a-x", 3)
        .resized("pipe-a-x", 3)
        .report("False", 1)
        .after(5000)
        .report("True", 1),
    /^pipe-a-x .* \(written at version \d+, 5000 ms later\)/,
  ],
  [
    "the desired size in the status is another one than that of all pods and templates",
    (history) => history.report("False", 1).report("True", 2),
    /^pipe-a .* Ready=True at 2 8Gi 8Gi \(written at/,
  ],
])("reports Ready=True if %s", (_what, happened, violation) => {
  const faults = violationsOf(happened(service()));
  expect(faults).toContainEqual(expect.stringMatching(violation));
});

it("reports an object once until it has the size again", () => {
  const history = ahead(service()).requestSize(1).report("True", 1).report("True", 1).leader("controller-2");
  history.resize("pipe-a-x", 1).resized("pipe-a-x", 1).resize("pipe-a-x", 4);
  const faults = violationsOf(history).filter((each) => each.startsWith("pipe-a-x"));
  expect(faults.filter((each) => each.includes("Ready=True"))).toHaveLength(2);
});
