import { describe, expect, it } from "vitest";
import {
  beginCommit,
  type CommitFacts,
  continueCommit,
  type ReplicaSetView,
} from "../../../../src/controller/in-place/commit.ts";
import { resourcesFor } from "../../../../src/controller/observe/resources.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { amounts } from "../../../support/fixtures/pod.ts";

const ONE = sizeOfCores(1);
const FOUR = sizeOfCores(4);
const TARGET = resourcesFor(FOUR, false);

/** In use, with one core. */
function replicaSet(name: string, changes: Partial<ReplicaSetView> = {}): ReplicaSetView {
  return {
    metadata: { name, namespace: "pipes", uid: `uid-${name}`, resourceVersion: "1", generation: 1 },
    deploymentUid: "uid-a",
    createdAtS: 20,
    revision: 1,
    pods: 2,
    templateHash: "same",
    resources: new Map([["pipe", amounts(ONE)]]),
    ...changes,
  };
}

const withFour = { resources: new Map([["pipe", amounts(FOUR)]]) };

function facts(
  replicaSets: readonly ReplicaSetView[],
  changes: Partial<CommitFacts["template"]> = {},
): CommitFacts {
  const template = { templateHash: "same", resources: new Map([["pipe", amounts(ONE)]]), ...changes };
  return { container: "pipe", template, replicaSets };
}

describe("the first write of a commit", () => {
  it("pauses the Deployment if all pods are of one ReplicaSet that equals the template", () => {
    expect(beginCommit(facts([replicaSet("current")]), TARGET)).toEqual({ type: "pause" });
  });

  it.each<[string, CommitFacts]>([
    ["there is no ReplicaSet with pods", facts([replicaSet("current", { pods: 0 })])],
    ["two ReplicaSets have pods", facts([replicaSet("current"), replicaSet("old")])],
    ["the template is another one", facts([replicaSet("current")], { templateHash: "other" })],
    ["the template has another size", facts([replicaSet("current")], withFour)],
    [
      "another container has other resources",
      facts([
        replicaSet("current", {
          resources: new Map<string, object>([
            ["pipe", amounts(ONE)],
            ["other", {}],
          ]),
        }),
      ]),
    ],
  ])("waits if %s", (_, each) => {
    expect(beginCommit(each, TARGET)).toEqual({ type: "wait" });
  });

  it("deletes an older, empty ReplicaSet with the same template and the size first", () => {
    const older = replicaSet("older", { pods: 0, createdAtS: 10, ...withFour });
    expect(beginCommit(facts([replicaSet("current"), older]), TARGET)).toEqual({
      type: "delete-replica-set",
      replicaSet: older,
    });
  });

  it.each<[string, Partial<ReplicaSetView>]>([
    ["newer", { createdAtS: 21 }],
    ["of another template", { templateHash: "other" }],
    ["of another size", { resources: new Map([["pipe", amounts(sizeOfCores(2))]]) }],
  ])("keeps an empty ReplicaSet that is %s", (_, changes) => {
    const other = replicaSet("other", { pods: 0, createdAtS: 10, ...withFour, ...changes });
    expect(beginCommit(facts([replicaSet("current"), other]), TARGET)).toEqual({ type: "pause" });
  });
});

describe("the next write of a commit, when the paused template has the size", () => {
  const current = replicaSet("current");
  const paused = (replicaSets: readonly ReplicaSetView[], changes = {}) =>
    facts(replicaSets, { ...withFour, ...changes });

  it("gives the ReplicaSet the size of the template, whatever size is desired now", () => {
    expect(continueCommit(paused([current]), TARGET, false)).toEqual({
      type: "update-replica-set",
      replicaSet: current,
      resources: TARGET,
    });
  });

  it("waits for the Deployment controller when the ReplicaSet has the size, and resumes if it does not respond", () => {
    const updated = paused([replicaSet("current", withFour)]);
    expect(continueCommit(updated, TARGET, false)).toEqual({ type: "wait" });
    expect(continueCommit(updated, TARGET, true)).toEqual({ type: "resume" });
  });

  it("gives the template its old size again if the time is over, so that no pod is replaced", () => {
    expect(continueCommit(paused([current]), TARGET, true)).toEqual({
      type: "take-back",
      resources: current.resources,
    });
  });

  it.each<[string, CommitFacts, boolean]>([
    ["its owner scaled it to zero", paused([]), true],
    ["its owner removed the size from the template", paused([current]), false],
  ])("resumes if %s", (_, each, hasSize) => {
    expect(continueCommit(each, hasSize ? TARGET : undefined, false)).toEqual({ type: "resume" });
  });

  it.each<[string, CommitFacts, string]>([
    [
      "its owner changed the template",
      paused([current], { templateHash: "other" }),
      "its owner changed the pod template meanwhile",
    ],
    [
      "a second ReplicaSet has pods",
      paused([current, replicaSet("second")]),
      "its pods are of several ReplicaSets",
    ],
  ])("resumes, and a rollout brings the size, if %s", (_, each, message) => {
    for (const isOverdue of [false, true])
      expect(continueCommit(each, TARGET, isOverdue)).toEqual({
        type: "resume",
        fallback: { reason: "NotSettled", message },
      });
  });
});
