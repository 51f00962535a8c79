import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  CONTAINER_ANNOTATION,
  DATABASE_TYPE,
  LAST_ROLLOUT_ANNOTATION,
  SERVICE_LABEL,
  TYPE_LABEL,
} from "../../src/controller/names.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../src/crd/names.ts";
import { objectPath, PODS } from "../../src/kube/paths.ts";
import { Rights } from "../chart/rights.ts";
import type { PipeOptions } from "../support/fixtures/pipe.ts";
import { resourcesOf, TestEnvironment } from "../support/test-environment.ts";
import { createPipe, fallbackMessage, replicaSetsOf, runningPods } from "./in-place.ts";
import { restrictController } from "./in-place-account.ts";
import { podsOf, podUids } from "./pods.ts";

const CONTAINERS = ["pipe", "helper"];

describe("with the strategy InPlaceOrRollout, the controller", () => {
  let environment: TestEnvironment;
  let rights: Rights;
  beforeEach(async () => {
    environment = await TestEnvironment.create();
    await restrictController(environment);
    rights = await Rights.of("controller", environment);
  });
  afterEach(async () => {
    await environment.end();
    await rights.close();
  });

  /** Resizes a pod as the controller does. */
  async function resize(pod: string): Promise<void> {
    const resources = { requests: { cpu: "4", memory: "16Gi" }, limits: { memory: "16Gi" } };
    await environment.client.json({
      method: "PATCH",
      path: `${objectPath(PODS, environment.pipes, pod)}/resize`,
      patchType: "application/strategic-merge-patch+json",
      body: { spec: { containers: [{ name: "pipe", resources }] } },
    });
  }

  it("ignores pods that a kubelet evicted, and resizes the others without a restart", async () => {
    await environment.startController({ resizeStrategy: "InPlaceOrRollout" });
    await createPipe(environment, { name: "pipe-a", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await runningPods(environment, 1);
    const [evicted] = await podsOf(environment);
    if (!evicted) throw new Error("the pipe has no pod");
    await environment.client.json({
      method: "PATCH",
      path: `${objectPath(PODS, environment.pipes, evicted.metadata.name)}/status`,
      patchType: "application/merge-patch+json",
      body: { status: { phase: "Failed", reason: "Evicted", containerStatuses: null } },
    });
    const started = async () =>
      (await podsOf(environment)).find(
        ({ status }) => status?.phase === "Running" && status.containerStatuses?.[0]?.resources,
      );
    const before = await waitFor(started, { what: "another pod to run" });

    await environment.requestSize(4);
    await environment.waitForCondition("Ready", "True");
    const { status } = await environment.scaling();
    expect(status?.pipes).toMatchObject({ resizedBy: { "pipe-a": "InPlace" } });
    const active = (await podsOf(environment)).filter(({ status }) => status?.phase !== "Failed");
    expect(active.map(({ metadata }) => metadata.uid)).toEqual([before.metadata.uid]);
    expect(await replicaSetsOf(environment)).toHaveLength(1);
  });

  it.each([
    ["the service is active", {}, {}],
    [
      "the service is suspended and a webhook removed the annotation",
      { suspend: true },
      { [LAST_ROLLOUT_ANNOTATION]: null },
    ],
  ])("finishes a commit of its predecessor without a restart if %s", async (_, spec, annotations) => {
    const end = await environment.startController({ resizeStrategy: "InPlaceOrRollout" });
    await createPipe(environment, { name: "pipe-a", cores: 1, replicas: 2 });
    await environment.waitForCondition("Ready", "True");
    await runningPods(environment, 2);
    const before = await podUids(environment);
    await end();
    for (const { metadata } of await podsOf(environment)) await resize(metadata.name);
    const resources = { requests: { cpu: "4", memory: "16Gi" }, limits: { memory: "16Gi" } };
    await environment.patchPipe(
      "pipe-a",
      {
        metadata: { annotations },
        spec: { paused: true, template: { spec: { containers: [{ name: "pipe", resources }] } } },
      },
      CONTROLLER_FIELD_MANAGER,
    );
    await environment.requestSize(4);
    await environment.patchScaling(spec);
    await environment.startController({ resizeStrategy: "InPlaceOrRollout" });
    await waitFor(
      async () => {
        const { spec: desired, status } = await environment.pipe("pipe-a");
        return desired.paused === undefined && status?.updatedReplicas === 2;
      },
      { what: "the end of the commit" },
    );
    expect(await podUids(environment)).toEqual(before);
    expect(await replicaSetsOf(environment)).toHaveLength(1);
  });

  it("resumes a Deployment that it paused, although the service is suspended", async () => {
    await environment.startController({ resizeStrategy: "InPlaceOrRollout" });
    await createPipe(environment, { name: "pipe-a", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await environment.patchScaling({ suspend: true });
    await environment.waitForCondition("Ready", "Unknown");
    await environment.patchPipe("pipe-a", { spec: { paused: true } }, CONTROLLER_FIELD_MANAGER);
    await waitFor(async () => (await environment.pipe("pipe-a")).spec.paused === undefined, {
      what: "the Deployment to be resumed",
    });
  });

  const LABELS = [SERVICE_LABEL, TYPE_LABEL];

  it.each<[string, Partial<PipeOptions>, string]>([
    ["has no labels", { podLabels: {} }, `does not have the label ${SERVICE_LABEL}=`],
    [
      "has the labels of another type",
      { podLabels: Object.fromEntries(LABELS.map((label) => [label, "files"])) },
      `${TYPE_LABEL}=${DATABASE_TYPE}`,
    ],
    [
      "has several containers and no annotation",
      { containers: ["pipe", "helper"], annotations: { [CONTAINER_ANNOTATION]: "pipe" } },
      `does not have the annotation ${CONTAINER_ANNOTATION}=pipe`,
    ],
    [
      "has an annotation that names another container",
      {
        containers: ["pipe", "helper"],
        annotations: { [CONTAINER_ANNOTATION]: "pipe" },
        podAnnotations: { [CONTAINER_ANNOTATION]: "helper" },
      },
      `does not have the annotation ${CONTAINER_ANNOTATION}=pipe`,
    ],
  ])("replaces the pods of a pipe whose pod template %s", async (_, options, message) => {
    await environment.startController({ resizeStrategy: "InPlaceOrRollout" });
    await createPipe(environment, { name: "pipe-a", cores: 1, ...options });
    await environment.waitForCondition("Ready", "True");
    await runningPods(environment, 1);
    const [before] = await podsOf(environment);
    await environment.requestSize(2);
    expect(await fallbackMessage(environment)).toContain(message);
    await environment.waitForCondition("Ready", "True");
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("2 8Gi 8Gi");
    expect((await podsOf(environment)).map(({ metadata }) => metadata.uid)).not.toContain(
      before?.metadata.uid,
    );
  });

  /** A pipe with two containers, whose annotations name one of them. @returns the UIDs of its pods */
  async function startAnnotated(cores: number): Promise<readonly unknown[]> {
    await environment.startController({ resizeStrategy: "InPlaceOrRollout" });
    const annotations = { [CONTAINER_ANNOTATION]: "pipe" };
    const pipe = { name: "pipe-a", cores, containers: CONTAINERS, annotations, podAnnotations: annotations };
    await createPipe(environment, pipe);
    await environment.waitForCondition("Ready", "True");
    await runningPods(environment, 1);
    return await podUids(environment);
  }

  it("resizes the container that the annotations of the Deployment and its pod template name", async () => {
    const before = await startAnnotated(1);
    await environment.requestSize(2);
    await environment.waitForCondition("Ready", "True");
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("2 8Gi 8Gi");
    expect(await podUids(environment)).toEqual(before);
  });

  it("resizes a pipe whose owner wrote amounts in another notation, which replaces no pod", async () => {
    const before = await startAnnotated(2);
    const memory = `${8 * 2 ** 30}`;
    const inBytes = CONTAINERS.map((name) => ({
      name,
      resources: { requests: { memory }, limits: { memory } },
    }));
    await environment.patchPipe(
      "pipe-a",
      { spec: { template: { spec: { containers: inBytes } } } },
      "kubectl",
    );
    await environment.requestSize(4);
    await environment.waitForCondition("Ready", "True");
    const pipe = await environment.pipe("pipe-a");
    expect(resourcesOf(pipe)).toBe("4 16Gi 16Gi");
    expect(pipe.spec.template.spec.containers[1]?.resources?.limits).toEqual({ memory });
    expect(await podUids(environment)).toEqual(before);
    expect(await replicaSetsOf(environment)).toHaveLength(1);
  });

  it("deletes an empty ReplicaSet that would replace the current one", async () => {
    const end = await environment.startController({ resizeStrategy: "Rollout" });
    await createPipe(environment, { name: "pipe-a", cores: 2 });
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(1);
    await environment.waitForCondition("Ready", "True");
    await end();
    await runningPods(environment, 1);
    const before = await podUids(environment);
    const empty = (await replicaSetsOf(environment)).find(({ spec }) => spec.replicas === 0);
    expect(empty).toBeDefined();
    await environment.startController({ resizeStrategy: "InPlaceOrRollout" });
    await environment.requestSize(2);
    await environment.waitForCondition("Ready", "True");
    expect(await podUids(environment)).toEqual(before);
    expect((await replicaSetsOf(environment)).map(({ metadata }) => metadata.uid)).not.toContain(
      empty?.metadata.uid,
    );
  });

  it.each([
    "list apps/replicasets",
    "patch pods/resize",
    "patch apps/replicasets",
    "delete apps/replicasets",
  ])("replaces the pods within seconds without permission to %s", async (right) => {
    const end = await environment.startController({ resizeStrategy: "Rollout" });
    await createPipe(environment, { name: "pipe-a", cores: 2 });
    await environment.waitForCondition("Ready", "True");
    // The ReplicaSet of the first size is empty, and would replace the current one.
    await environment.requestSize(1);
    await environment.waitForCondition("Ready", "True");
    await end();
    await runningPods(environment, 1);
    const [before] = await podsOf(environment);
    await environment.startController({ resizeStrategy: "InPlaceOrRollout" });
    await rights.without(right, async (refusal) => {
      const startedAt = performance.now();
      await environment.requestSize(2);
      expect(await fallbackMessage(environment)).toContain(refusal);
      expect(performance.now() - startedAt).toBeLessThan(30_000);
      await environment.waitForCondition("Ready", "True");
    });
    const pipe = await environment.pipe("pipe-a");
    expect(resourcesOf(pipe)).toBe("2 8Gi 8Gi");
    expect(pipe.spec.paused).toBeUndefined();
    if (before) expect(await podUids(environment)).not.toContain(before.metadata.uid);
  });
});
