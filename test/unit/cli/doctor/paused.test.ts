import { describe, expect, it } from "vitest";
import { checkPaused } from "../../../../src/cli/doctor/paused.ts";
import { LAST_ROLLOUT_ANNOTATION } from "../../../../src/controller/names.ts";
import { formatLastRollout } from "../../../../src/controller/observe/last-rollout.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../../src/crd/names.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { pipeDeployment } from "../../../support/fixtures/pipe.ts";
import { managedBy } from "../../../support/fixtures/resized-deployment.ts";
import { aRollout } from "../../../support/fixtures/snapshot.ts";
import { aHeldStatefulSet, aStatefulSet, withAnnotation } from "../../../support/fixtures/stateful-set.ts";
import { clusterWith } from "./fake-reads.ts";

const MINUTE_MS = 60_000;
const NONE = "ok: The controller has left no Deployment or StatefulSet paused.";
const LEFT =
  "error: A controller paused the Deployment pipes/a 5 min ago and did not resume it, so no change of its pod template is rolled out.";

const PARTITION = { "f:spec": { "f:updateStrategy": { "f:rollingUpdate": { "f:partition": {} } } } };
const OWNERS = [{ manager: "helm", operation: "Update", fieldsV1: PARTITION }];

interface Options {
  readonly minutesAgo?: number;
  readonly paused?: boolean;
  readonly pausedBy?: readonly string[];
  readonly metadata?: object;
}

/** The result of the check if a second read, after the list of all namespaces, returns the second object. */
async function check(plural: string, first: object, second = first) {
  return checkPaused(
    clusterWith({
      [`/apis/apps/v1/${plural}`]: { metadata: {}, items: [first] },
      [`/apis/apps/v1/namespaces/pipes/${plural}`]: { metadata: {}, items: [second] },
    }),
  );
}

/** A Deployment without the labels of a pipe. */
function deploymentOf(options: Options) {
  const { minutesAgo = 5, paused = true, pausedBy = [CONTROLLER_FIELD_MANAGER], metadata = {} } = options;
  const pipe = pipeDeployment({ name: "a", namespace: "pipes", serviceId: "service", cores: 1 });
  const time = new Date(Date.now() - minutesAgo * MINUTE_MS).toISOString();
  const managedFields = pausedBy.map((manager) => ({
    manager,
    operation: "Update",
    apiVersion: "apps/v1",
    fieldsType: "FieldsV1",
    time,
    fieldsV1: { "f:spec": { "f:paused": {} } },
  }));
  return {
    ...pipe,
    metadata: { ...pipe.metadata, labels: {}, uid: "u", managedFields, ...metadata },
    spec: { ...pipe.spec, paused },
  };
}

async function results(options: Options = {}) {
  return check("deployments", deploymentOf(options));
}

async function resultsFor(statefulSet: object) {
  return check("statefulsets", statefulSet);
}

async function texts(options: Options = {}) {
  return (await results(options)).map(({ severity, message }) => `${severity}: ${message}`);
}

describe("the check for paused workloads of doctor", () => {
  it("reports one that the controller left paused, with the command that resumes it", async () => {
    expect(await texts()).toEqual([LEFT]);
    expect((await results())[0]?.remedy).toBe(
      "Resume it, which may replace its pods: kubectl rollout resume deployment a --namespace pipes",
    );
  });

  it.each<[string, Options]>([
    ["is not paused", { paused: false }],
    ["the controller paused less than a minute ago", { minutesAgo: 0.9 }],
    ["its owner paused", { pausedBy: ["kubectl-rollout"] }],
    ["its owner paused, too", { pausedBy: [CONTROLLER_FIELD_MANAGER, "kubectl-rollout"] }],
    ["is paused without a record of who paused it", { pausedBy: [] }],
    ["is being deleted", { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }],
  ])("does not report one that %s", async (_, options) => {
    expect(await texts(options)).toEqual([NONE]);
  });

  it.each<[string, Options]>([
    ["was resumed", { paused: false }],
    ["was paused for another commit", { minutesAgo: 0.2 }],
    ["is being deleted", { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }],
  ])("does not report one that %s since the lists were read", async (_, later) => {
    const results = await check("deployments", deploymentOf({}), deploymentOf(later));
    expect(results.map(({ severity, message }) => `${severity}: ${message}`)).toEqual([NONE]);
  });

  it("does not report one that was deleted since the lists were read", async () => {
    const cluster = clusterWith({
      "/apis/apps/v1/deployments": { metadata: {}, items: [deploymentOf({})] },
    });
    expect(await checkPaused(cluster)).toMatchObject([{ severity: "ok" }]);
  });

  it("reports one without field managers whose annotation says that the controller paused it", async () => {
    const annotationOf = (isCommitting: boolean, uid: string) => {
      const rollout = {
        size: sizeOfCores(1),
        isRollback: false,
        startedAtMs: Date.now() - 5 * MINUTE_MS,
        isCommitting,
        cameUp: false,
        attempts: 1,
        serviceId: "service",
        scalingUid: "s",
        scalingGeneration: 1,
        generation: 2,
        revision: 1,
        progressedAtS: 0,
        replicas: 1,
      };
      return { annotations: { [LAST_ROLLOUT_ANNOTATION]: formatLastRollout(rollout, uid) } };
    };
    expect(await texts({ pausedBy: [], metadata: annotationOf(true, "u") })).toEqual([LEFT]);
    expect(await texts({ pausedBy: [], metadata: annotationOf(false, "u") })).toEqual([NONE]);
    expect(await texts({ pausedBy: [], metadata: annotationOf(true, "of another") })).toEqual([NONE]);
  });
});

describe("the check for held StatefulSets of doctor", () => {
  it("reports one that the controller left held, with the command that restores the partition of its owner", async () => {
    const held = aHeldStatefulSet({ metadata: { labels: {} } }, 2);
    const [result, ...others] = await resultsFor(held);
    expect(others).toEqual([]);
    expect(result).toMatchObject({
      severity: "error",
      message: expect.stringMatching(
        /^A controller began to hold the pods of the StatefulSet pipes\/a .* ago and did not release them/,
      ),
      remedy:
        'Release them, which may replace its pods: kubectl patch statefulset a --namespace pipes --type merge --patch \'{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}}\'',
    });
  });

  it.each([
    ["is not held", aStatefulSet()],
    [
      "has a partition of its owner that is as large",
      aHeldStatefulSet({ metadata: { managedFields: OWNERS } }),
    ],
    [
      "has a partition of its owner that needs no hold, and whose commit has not ended",
      withAnnotation(
        aHeldStatefulSet({
          metadata: { managedFields: [...OWNERS, ...managedBy(CONTROLLER_FIELD_MANAGER)] },
        }),
        aRollout(sizeOfCores(4), { isCommitting: true, isUnheld: true }),
      ),
    ],
    ["is being deleted", aHeldStatefulSet({ metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } })],
  ])("does not report one that %s", async (_, statefulSet) => {
    const results = await resultsFor(statefulSet);
    expect(results.map(({ severity, message }) => `${severity}: ${message}`)).toEqual([NONE]);
  });
});
