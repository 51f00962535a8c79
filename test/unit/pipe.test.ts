import { describe, expect, it } from "vitest";
import {
  ATTEMPT_ANNOTATION,
  COMPLETED_SIZE_ANNOTATION,
  GIVEN_SIZE_ANNOTATION,
} from "../../src/controller/names.ts";
import { toDeploymentView } from "../../src/controller/observe/deployment-view.ts";
import { formatLastRollout } from "../../src/controller/observe/last-rollout.ts";
import { formatAllotment } from "../../src/controller/observe/resources.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import type { Deployment } from "../../src/kube/objects.ts";
import { pipeDeployment } from "../gen/pipe.ts";
import { anAttempt, NOW_MS } from "../gen/snapshot.ts";

/** One replica of the newest template, given its size just now. */
function deployment(status: Deployment["status"]): Deployment {
  const attempt = formatLastRollout(anAttempt(sizeOfCores(4), { startedAtMs: NOW_MS }));
  const made = pipeDeployment({
    name: "a",
    namespace: "pipes",
    serviceId: "service",
    cores: 4,
    annotations: { [ATTEMPT_ANNOTATION]: attempt },
  });
  return {
    ...made,
    metadata: { ...made.metadata, uid: "uid", resourceVersion: "1", generation: 7 },
    status: { observedGeneration: 7, replicas: 1, updatedReplicas: 1, ...status },
  };
}

function announcedAt(ms: number) {
  const lastUpdateTime = new Date(ms).toISOString();
  return {
    conditions: [{ type: "Progressing", status: "True", reason: "NewReplicaSetAvailable", lastUpdateTime }],
  };
}

describe("what a pipe was given and has completed", () => {
  const pipe = (annotations: Readonly<Record<string, string>>) => {
    const made = deployment({});
    return toDeploymentView({ ...made, metadata: { ...made.metadata, annotations } });
  };

  it.each([
    ["a size", sizeOfCores(4)],
    ["what its owner had chosen", { requests: { cpu: "500m", memory: null }, limits: { memory: "1Gi" } }],
  ])("is read back: %s", (_, allotment) => {
    const text = formatAllotment(allotment);
    expect(pipe({ [GIVEN_SIZE_ANNOTATION]: text, [COMPLETED_SIZE_ANNOTATION]: text })).toMatchObject({
      given: allotment,
      completed: allotment,
    });
  });

  it.each(["", "4000m", "{}", '{"requests":{}}', "null"])(
    "is none where somebody has damaged it: %j",
    (text) => {
      expect(pipe({ [GIVEN_SIZE_ANNOTATION]: text }).given).toBeUndefined();
    },
  );
});

describe("a pipe's rollout is complete", () => {
  it.each([
    ["when all replicas are available", { availableReplicas: 1 }, true],
    ["when it was announced, whatever becomes of the pods", announcedAt(NOW_MS + 5000), true],
    ["not by what was announced of the rollout before", announcedAt(NOW_MS - 5000), false],
    [
      "not before its status is of the newest template",
      { availableReplicas: 1, observedGeneration: 6 },
      false,
    ],
    ["not while a pod of another template is there", { availableReplicas: 2, replicas: 2 }, false],
  ])("%s", (_, status, isComplete) => {
    expect(toDeploymentView(deployment(status)).rollout.isComplete).toBe(isComplete);
  });

  it.each([
    ["there is one", { replicas: 1 }, false],
    ["one is ending", { replicas: 0, terminatingReplicas: 1 }, false],
    ["the status is old", { replicas: 0, observedGeneration: 6 }, false],
    ["there is none", { replicas: 0 }, true],
  ])("and it is without pods only when none is there: %s", (_, status, isWithoutPods) => {
    expect(toDeploymentView(deployment(status)).rollout.isWithoutPods).toBe(isWithoutPods);
  });
});
