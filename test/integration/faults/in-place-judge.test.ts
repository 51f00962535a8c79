import { expect, it } from "vitest";
import { HistoryBuilder } from "./history-builder.ts";
import { labelsOf, NAMESPACE, SERVICE } from "./history-objects.ts";
import { judge } from "./judge.ts";

/** A service of two pipes with two pods each; every pod has one core. */
function service(): HistoryBuilder {
  const history = new HistoryBuilder().leader("controller-1").accept(1).requestSize(1);
  for (const pipe of ["pipe-a", "pipe-b"]) {
    history.pipe(pipe, 1).replicaSet(pipe, 1);
    for (const pod of ["x", "y"]) history.pod(`${pipe}-${pod}`, `${pipe}-1`, 1);
  }
  return history.report("True", 1).accept(4).requestSize(4);
}

function podsResized(history: HistoryBuilder, pipe: string, cores: number): HistoryBuilder {
  for (const pod of [`${pipe}-x`, `${pipe}-y`]) history.resize(pod, cores).resized(pod, cores);
  return history;
}

function committed(history: HistoryBuilder, pipe: string, cores: number): HistoryBuilder {
  return history.pause(pipe, cores).resizeReplicaSet(`${pipe}-1`, cores).resume(pipe).rolledOut(pipe);
}

function violationsOf({ entries }: HistoryBuilder): readonly string[] {
  return judge(entries, { services: new Map([[SERVICE, NAMESPACE]]), maxConcurrentRollouts: 50 }).violations;
}

it("accepts a correct resize in place of two pipes, one after the other", () => {
  const history = service();
  for (const pipe of ["pipe-a", "pipe-b"]) committed(podsResized(history, pipe, 4), pipe, 4);
  expect(violationsOf(history.report("True", 4))).toEqual([]);
});

it("recognizes each write of a resize in place", () => {
  const { entries } = committed(service().resize("pipe-a-x", 4).resized("pipe-a-x", 4), "pipe-a", 4);
  const scope = { services: new Map([[SERVICE, NAMESPACE]]), maxConcurrentRollouts: 50 };
  expect(judge(entries, scope).writes.slice(1)).toEqual([
    expect.stringContaining("Pod pipe-a-x"),
    expect.stringContaining("Deployment pipe-a"),
    expect.stringContaining("ReplicaSet pipe-a-1"),
    expect.stringContaining("Deployment pipe-a"),
  ]);
});

it("accepts that the old size of a pod is restored and a rollout follows", () => {
  const history = service().resize("pipe-a-x", 4).resize("pipe-a-x", 1).resized("pipe-a-x", 1);
  expect(violationsOf(history.applySize("pipe-a", 4).replicaSet("pipe-a", 4))).toEqual([]);
});

it("accepts a rollout after the commit if the old size of the ReplicaSet is restored first", () => {
  const history = committed(podsResized(service(), "pipe-a", 4), "pipe-a", 4);
  history.pod("pipe-a-z", "pipe-a-1", 1).resizeReplicaSet("pipe-a-1", 1).replicaSet("pipe-a", 4);
  expect(violationsOf(history)).toEqual([]);
});

it("accepts that a pod is replaced whose resize to an earlier request hangs, but not to the present one", () => {
  const replaced = (requested: number) => {
    const history = service().accept(4).requestSize(4).resize("pipe-a-x", 4).accept(requested);
    return violationsOf(history.requestSize(requested).resizeReplicaSet("pipe-a-1", 4)).filter((each) =>
      each.includes("neither its Deployment nor its pods"),
    );
  };
  expect(replaced(1)).toEqual([]);
  expect(replaced(4)).toHaveLength(1);
});

it("accepts a canary after a resize in place of another pipe to its size ended with a rollout to a third size", () => {
  const history = service().resize("pipe-a-x", 4).resized("pipe-a-x", 4);
  history.accept(2).requestSize(2).applySize("pipe-a", 2).rolledOut("pipe-a");
  expect(violationsOf(history.accept(4).requestSize(4).resize("pipe-b-x", 4))).toEqual([]);
});

it("accepts a canary after a pod that has its size lost the label with which the controller watches pods", () => {
  const begun = (labels: Readonly<Record<string, string>>) => {
    const history = service().resize("pipe-a-x", 4).resized("pipe-a-x", 4).relabelPod("pipe-a-x", labels);
    return violationsOf(history.resize("pipe-b-x", 4));
  };
  expect(begun({})).toEqual([]);
  expect(begun(labelsOf(SERVICE))).toHaveLength(1);
});

it("accepts that all pipes are resized in place at once after one has proven the size", () => {
  const history = podsResized(service(), "pipe-a", 4);
  expect(violationsOf(history.resize("pipe-b-x", 4).resized("pipe-b-x", 4))).toEqual([]);
});

it("accepts a commit that is undone several times: the old template and the resumption in one write", () => {
  const history = podsResized(service(), "pipe-a", 4);
  for (let time = 0; time < 3; time += 1)
    history.pause("pipe-a", 4).undoCommit("pipe-a", 1).rolledOut("pipe-a");
  expect(violationsOf(committed(history, "pipe-a", 4))).toEqual([]);
});

it("accepts that a commit is undone after its Deployment moved to another service", () => {
  const history = podsResized(service(), "pipe-a", 4)
    .relabel("pipe-a", labelsOf("service-2"))
    .pause("pipe-a", 4);
  const faults = violationsOf(history.relabel("pipe-a", labelsOf(SERVICE)).undoCommit("pipe-a", 1));
  expect(faults).toEqual([expect.stringContaining("it is not a pipe of an observed service")]);
});

it("accepts that a commit is undone after its Deployment moved to another observed service", () => {
  const history = podsResized(service(), "pipe-a", 4).pause("pipe-a", 4);
  const moved = history.relabel("pipe-a", labelsOf("service-2")).after(31_000);
  const services = new Map([
    [SERVICE, NAMESPACE],
    ["service-2", NAMESPACE],
  ]);
  const { entries } = moved.undoCommit("pipe-a", 1);
  expect(judge(entries, { services, maxConcurrentRollouts: 50 }).violations).toEqual([]);
});

it("accepts that a commit is undone that seemed complete, because versions are missing", () => {
  const history = podsResized(service().rolledOut("pipe-a"), "pipe-a", 4);
  history.gap("Deployment", (unseen) => unseen.pause("pipe-a", 4));
  expect(violationsOf(history.undoCommit("pipe-a", 1))).toEqual([]);
});

it("accepts the rollout of an owner whose change is missing, after a commit", () => {
  const history = committed(podsResized(service(), "pipe-a", 4), "pipe-a", 4);
  history.gap("Deployment", (unseen) => unseen.overwriteSize("pipe-a", 2));
  expect(violationsOf(history.replicaSet("pipe-a", 2))).toEqual([]);
});

it("measures a pause whose begin is missing from its first version on, not from the pause before it", () => {
  const seen = committed(podsResized(service(), "pipe-a", 4), "pipe-a", 4).after(60_000);
  const history = podsResized(seen.accept(2).requestSize(2), "pipe-a", 2);
  history.gap("Deployment", (unseen) => unseen.pause("pipe-a", 2));
  history.rolledOut("pipe-a").resizeReplicaSet("pipe-a-1", 2).resume("pipe-a").rolledOut("pipe-a");
  expect(violationsOf(history)).toEqual([]);
});

it("accepts that a rollout begins while commits of more pipes than its limit end", () => {
  const history = service();
  const others = ["pipe-a", "pipe-b", "pipe-c", "pipe-d"];
  for (const name of ["pipe-c", "pipe-d"]) {
    history.pipe(name, 1).replicaSet(name, 1);
    for (const pod of ["x", "y"]) history.pod(`${name}-${pod}`, `${name}-1`, 1);
  }
  history.pipe("pipe-e", 1);
  for (const name of others) podsResized(history, name, 4);
  for (const name of others) history.pause(name, 4).resizeReplicaSet(`${name}-1`, 4).resume(name);
  expect(violationsOf(history.applySize("pipe-e", 4))).toEqual([]);
});

it("accepts that two pipes go on at once with a size that a pod of each has kept from an earlier request", () => {
  const history = podsResized(service(), "pipe-a", 4).resize("pipe-b-x", 4).resized("pipe-b-x", 4);
  history.accept(2).requestSize(2).resize("pipe-a-y", 2).resized("pipe-a-y", 2);
  history.accept(4).requestSize(4).resize("pipe-a-y", 4).resize("pipe-b-y", 4);
  expect(violationsOf(history)).toEqual([]);
});

it("accepts that all pipes return at once from a requested size in which the service runs out of memory", () => {
  const returning = (history: HistoryBuilder) => history.resize("pipe-a-x", 4).resize("pipe-b-x", 4);
  const faultsOf = (history: HistoryBuilder) =>
    violationsOf(returning(history)).filter((each) => each.includes("no pipe has proven"));
  expect(faultsOf(service().requestSize(1))).toEqual([]);
  expect(faultsOf(service().requestSize(1).requestSize(4))).toHaveLength(1);
  const tierDefault = { replicaCpuMillicores: undefined, replicaMemoryGb: undefined };
  expect(faultsOf(service().accept(4).accept(1).requestSize(1, tierDefault))).toEqual([]);
  expect(faultsOf(service().accept(1).accept(4).requestSize(4, tierDefault))).toHaveLength(1);
});

it("accepts that a service returns to a size of another writer only if it runs out of memory", () => {
  const lastState = { terminated: { reason: "OOMKilled" } };
  const returned = (isOutOfMemory: boolean) => {
    const history = service().overwriteSize("pipe-a", 3).applySize("pipe-a", 4);
    const containerStatuses = [{ name: "pipe", restartCount: 2, ...(isOutOfMemory ? { lastState } : {}) }];
    history.pod("pipe-a-z", "pipe-a-1", 4, { containerStatuses });
    return violationsOf(history.resize("pipe-a-z", 3)).filter((each) => each.includes("neither requested"));
  };
  expect(returned(true)).toEqual([]);
  expect(returned(false)).toHaveLength(1);
});

it("accepts that a pipe returns to the earlier size of another pipe only if that one runs out of memory", () => {
  const lastState = { terminated: { reason: "OOMKilled" } };
  const returned = (isOutOfMemory: boolean) => {
    const history = service().accept(4).requestSize(4).applySize("pipe-a", 4).rolledOut("pipe-a");
    const containerStatuses = [{ name: "pipe", restartCount: 2, ...(isOutOfMemory ? { lastState } : {}) }];
    history.pod("pipe-a-z", "pipe-a-1", 4, { containerStatuses });
    history.accept(2).requestSize(2).applySize("pipe-b", 2);
    return violationsOf(history.applySize("pipe-b", 4)).filter((each) => each.includes("older request"));
  };
  expect(returned(true)).toEqual([]);
  expect(returned(false)).toHaveLength(1);
});

it("accepts the write of a commit that was in flight when another writer ended the commit", () => {
  const written = (lateMs: number) =>
    violationsOf(
      service().pause("pipe-a", 4).restoreOlder("pipe-a", 1).after(lateMs).resizeReplicaSet("pipe-a-1", 4),
    ).filter((each) => each.includes("neither its Deployment nor its pods"));
  expect(written(100)).toEqual([]);
  expect(written(3000)).toHaveLength(1);
});

it("does not count the delay of a watch as a pause", () => {
  const history = podsResized(service(), "pipe-a", 4).pause("pipe-a", 4);
  const { length } = history.entries;
  const { entries } = history.resizeReplicaSet("pipe-a-1", 4).resume("pipe-a").rolledOut("pipe-a");
  const late = entries.map((entry, index) =>
    index === length && entry.type === "seen" ? { ...entry, atMs: entry.atMs + 60_000 } : entry,
  );
  const scope = { services: new Map([[SERVICE, NAMESPACE]]), maxConcurrentRollouts: 50 };
  expect(judge(late, scope).violations).toEqual([]);
});

it("accepts a rollback to a size that a pod was ready with, although its rollout was superseded before it completed", () => {
  const superseded = (history: HistoryBuilder) =>
    history.accept(4).requestSize(4).applySize("pipe-a", 4).applySize("pipe-a", 2);
  const begun = () => service().accept(2).requestSize(2).applySize("pipe-a", 2).replicaSet("pipe-a", 2);
  expect(violationsOf(superseded(begun().pod("pipe-a-y", "pipe-a-2", 2)))).toEqual([]);
  const other = [expect.stringContaining("not the one allowed rollback")];
  expect(violationsOf(superseded(begun()))).toEqual(other);
  expect(violationsOf(superseded(begun().pod("pipe-a-y", "pipe-a-2", 2, { conditions: [] })))).toEqual(other);
});

it("accepts that a commit is finished after the owner removed the labels of the Deployment", () => {
  const history = podsResized(service(), "pipe-a", 4).pause("pipe-a", 4).relabel("pipe-a", {});
  expect(violationsOf(history.resizeReplicaSet("pipe-a-1", 4).resume("pipe-a"))).toEqual([]);
});

it("accepts a resize of a pod that was in flight when the owner moved its pipe", () => {
  const history = service().relabel("pipe-a", labelsOf("service-2")).after(100).resize("pipe-a-x", 4);
  expect(violationsOf(history)).toEqual([]);
});

it("accepts the resumption of a Deployment without managed fields", () => {
  const history = podsResized(service(), "pipe-a", 4).pause("pipe-a", 4).forgetManagers("pipe-a");
  expect(violationsOf(history.resume("pipe-a"))).toEqual([]);
});

it("accepts a ReplicaSet with the size that another writer set in the paused Deployment", () => {
  const history = podsResized(service(), "pipe-a", 4).pause("pipe-a", 4).resizeReplicaSet("pipe-a-1", 4);
  expect(violationsOf(history.replacePaused("pipe-a", 1).resizeReplicaSet("pipe-a-1", 1))).toEqual([]);
});

it("accepts a ReplicaSet with the size that another writer set in the paused Deployment without managed fields", () => {
  const history = podsResized(service(), "pipe-a", 4).pause("pipe-a", 4).resizeReplicaSet("pipe-a-1", 4);
  history.replacePaused("pipe-a", 1).forgetManagers("pipe-a");
  expect(violationsOf(history.resizeReplicaSet("pipe-a-1", 1))).toEqual([]);
});

it("accepts a new ReplicaSet after another writer changed the Deployment", () => {
  const paused = podsResized(service(), "pipe-a", 4).pause("pipe-a", 4);
  expect(violationsOf(paused.overwriteSize("pipe-a", 3).replicaSet("pipe-a", 3))).toEqual([]);
});

it.each<[string, (history: HistoryBuilder) => HistoryBuilder, RegExp]>([
  [
    "a container restarts after its pod was resized",
    (history) => history.resize("pipe-a-x", 4).resized("pipe-a-x", 4, 1),
    /^pipe-a-x .* a container restarted after the controller resized the pod in place/,
  ],
  [
    "a Deployment stays paused after the controller paused it",
    (history) => podsResized(history, "pipe-a", 4).pause("pipe-a", 4).after(60_000).resume("pipe-a"),
    /^pipe-a .* the controller left it paused for 60000 ms/,
  ],
  [
    "a Deployment is still paused at the end",
    (history) => podsResized(history, "pipe-a", 4).pause("pipe-a", 4).after(60_000).report("False", 4),
    /^pipe-a .* the controller left it paused for 60000 ms/,
  ],
  [
    "a Deployment is paused without a new size",
    (history) => history.applySize("pipe-a", 4).pause("pipe-a", 4).resume("pipe-a"),
    /^pipe-a .* the controller paused it without a new size/,
  ],
  [
    "a seventh Deployment is paused at once",
    (history) => {
      podsResized(history, "pipe-a", 4);
      for (const name of ["c", "d", "e", "f", "g", "h", "i"])
        history.pipe(`pipe-${name}`, 1).pause(`pipe-${name}`, 4);
      return history;
    },
    /^pipe-i .* the controller has paused 7 Deployments at once/,
  ],
  [
    "a commit is undone after the ReplicaSet has the size",
    (history) =>
      podsResized(history, "pipe-a", 4)
        .pause("pipe-a", 4)
        .resizeReplicaSet("pipe-a-1", 4)
        .rolledOut("pipe-a")
        .undoCommit("pipe-a", 1),
    /^pipe-a .* replaced 4 16Gi 16Gi by the older request 1 4Gi 4Gi/,
  ],
  [
    "the ReplicaSet of a Deployment that is no pipe gets a size without a commit",
    (history) => podsResized(history, "pipe-a", 4).relabel("pipe-a", {}).resizeReplicaSet("pipe-a-1", 4),
    /^pipe-a-1 .* it does not belong to a pipe/,
  ],
  [
    "a pause of another writer is removed",
    (history) => history.pauseByAnotherWriter("pipe-a").resume("pipe-a"),
    /^pipe-a .* the controller resumed it, although another writer had paused it/,
  ],
  [
    "pods are replaced after a resize in place",
    (history) => committed(podsResized(history, "pipe-a", 4), "pipe-a", 4).replicaSet("pipe-a", 4),
    /^pipe-a-4 .* it got the pods of pipe-a, which was resized in place without a restart/,
  ],
  [
    "an older ReplicaSet takes over the pods after a resize in place",
    (history) => {
      history.replicaSet("pipe-a", 4, 0);
      return committed(podsResized(history, "pipe-a", 4), "pipe-a", 4).replicaSet("pipe-a", 4);
    },
    /^pipe-a-4 .* it got the pods of pipe-a/,
  ],
  [
    "a rollout replaces pods that were resized in place, and the status reports no reason",
    (history) => podsResized(history, "pipe-a", 4).applySize("pipe-a", 4).replicaSet("pipe-a", 4),
    /^pipe-a .* its pods have 4 16Gi 16Gi in place, and are replaced without a reason in the status/,
  ],
  [
    "a label of a pod is changed together with its size",
    (history) => history.resize("pipe-a-x", 4, { labels: { stolen: "true" } }),
    /^pipe-a-x .* the controller changed more of it than the size/,
  ],
  [
    "the replicas of a ReplicaSet are changed together with its size",
    (history) =>
      podsResized(history, "pipe-a", 4).pause("pipe-a", 4).resizeReplicaSet("pipe-a-1", 4, { replicas: 3 }),
    /^pipe-a-1 .* the controller changed more of it than the size/,
  ],
  [
    "a ReplicaSet gets a size that its Deployment does not have",
    (history) => history.resizeReplicaSet("pipe-a-1", 4),
    /^pipe-a-1 .* the controller applied 4 16Gi 16Gi, which neither its Deployment nor its pods had/,
  ],
  [
    "a ReplicaSet with pods is deleted",
    (history) => history.deleteReplicaSet("pipe-a-1"),
    /^pipe-a-1 .* it was deleted although it has pods/,
  ],
  [
    "a pod gets a size that was never requested",
    (history) => history.resize("pipe-a-x", 8),
    /^pipe-a-x .* the controller applied 8 32Gi 32Gi, which is neither requested nor its old size/,
  ],
  [
    "a second pod is resized before the first one has proven the size",
    (history) => history.resize("pipe-a-x", 4).resize("pipe-a-y", 4),
    /^pipe-a-y .* no pod of pipe-a has proven 4 16Gi 16Gi yet/,
  ],
  [
    "eleven pods of a pipe are resized at once after one has proven the size",
    (history) => {
      history.resize("pipe-a-x", 4).resized("pipe-a-x", 4);
      for (let pod = 1; pod <= 11; pod += 1)
        history.pod(`pipe-a-${pod}`, "pipe-a-1", 1).resize(`pipe-a-${pod}`, 4);
      return history;
    },
    /^pipe-a-11 .* more than 10 pods of pipe-a are resized at once/,
  ],
  [
    "a second pipe is resized before the canary has proven the size",
    (history) => history.resize("pipe-a-x", 4).resize("pipe-b-x", 4),
    /^pipe-b .* no pipe has proven 4 16Gi 16Gi yet, but pipe-a, pipe-b roll it out at once/,
  ],
  [
    "another canary begins after the PipeScaling was deleted during the resize in place of the first one",
    (history) =>
      history
        .resize("pipe-a-x", 4)
        .resized("pipe-a-x", 4)
        .deleteScaling()
        .create(4, true)
        .requestSize(4)
        .resize("pipe-b-x", 4),
    /^pipe-b .* no pipe has proven 4 16Gi 16Gi yet/,
  ],
  [
    "a pod is resized after its owner has removed the labels of its pipe",
    (history) => history.relabel("pipe-a", {}).after(5000).resize("pipe-a-x", 4),
    /^pipe-a-x .* it does not belong to a pipe/,
  ],
  [
    "a pod is resized repeatedly for one request",
    (history) => {
      for (let write = 0; write < 21; write += 1) history.resize("pipe-a-x", write % 2 === 0 ? 4 : 1);
      return history;
    },
    /^pipe-a-x .* resized it more than 20 times for one request/,
  ],
  [
    "a pod is resized while there is no leader",
    (history) => history.leader("").resize("pipe-a-x", 4),
    /^pipe-a-x .* while there was no leader/,
  ],
])("reports that %s", (_what, happened, violation) => {
  expect(violationsOf(happened(service()))).toEqual([expect.stringMatching(violation)]);
});

/** One pipe of the service has the strategy for longer than a write is in flight. */
function inPlaceOnly(): HistoryBuilder {
  return service().requestSize(4, { strategy: "InPlace" }).after(3000);
}

it("accepts a resize in place and an undone commit with the strategy InPlace", () => {
  const history = podsResized(inPlaceOnly(), "pipe-a", 4).pause("pipe-a", 4).undoCommit("pipe-a", 1);
  expect(violationsOf(committed(history.rolledOut("pipe-a"), "pipe-a", 4))).toEqual([]);
});

it("detects a rollout with the strategy InPlace", () => {
  expect(violationsOf(inPlaceOnly().applySize("pipe-a", 4))).toEqual([
    expect.stringContaining("the controller started a rollout with the strategy InPlace"),
  ]);
});

it("accepts a rollout that was in flight when the strategy became InPlace", () => {
  const history = service().requestSize(4, { strategy: "InPlace" }).after(500);
  expect(violationsOf(history.applySize("pipe-a", 4))).toEqual([]);
});

it("detects that a ReplicaSet gets another size with the strategy InPlace, which replaces its pods", () => {
  const history = committed(podsResized(inPlaceOnly(), "pipe-a", 4), "pipe-a", 4);
  expect(violationsOf(history.pod("pipe-a-z", "pipe-a-1", 1).resizeReplicaSet("pipe-a-1", 1))).toEqual([
    expect.stringContaining("the controller replaced its pods with the strategy InPlace"),
  ]);
});
