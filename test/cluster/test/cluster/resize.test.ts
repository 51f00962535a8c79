import { beforeAll, describe, expect, test } from "vitest";
import type { Cluster } from "../../cluster.ts";
import { apply, kubectl } from "../../kubectl.ts";
import {
  RESIZE_AFTER_ANNOTATION,
  RESIZE_OUTCOME_ANNOTATION,
  RESIZE_OUTCOMES,
  type ResizeOutcome,
} from "../../resize-stages.ts";
import { NEVER_READY_LABEL } from "../../stages.ts";
import { sharedCluster } from "../../vitest.ts";
import { ResizablePod } from "../support/resizable-pod.ts";

const NAMESPACE = "resize-test";
const SMALL = { cpu: "1", memory: "1Gi" };
const LARGE = { cpu: "2", memory: "3Gi" };

let cluster: Cluster;

beforeAll(async () => {
  cluster = await sharedCluster();
  await apply(cluster, [{ apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } }]);
});

const create = (name: string, annotations: Record<string, string> = {}) =>
  ResizablePod.create(cluster, NAMESPACE, name, SMALL, annotations);

const answering = (outcome: ResizeOutcome) => ({ [RESIZE_OUTCOME_ANNOTATION]: outcome });

describe("a resize of a pod", () => {
  test("completes in the same container", async () => {
    const pod = await create("done");
    const before = await pod.view();
    expect(before).toMatchObject({ isObserved: true, restartCount: 0, allocated: SMALL, actual: SMALL });
    expect(before.containerID).toMatch(/^kwok:\/\/[0-9a-f]{64}$/);
    await pod.resize(LARGE);
    const { containerID, restartCount } = await pod.waitForSize(LARGE);
    expect({ containerID, restartCount }).toEqual({ containerID: before.containerID, restartCount: 0 });
  });

  test("is in progress, with the new size allocated, for the time in an annotation", async () => {
    const pod = await create("slow", { [RESIZE_AFTER_ANNOTATION]: "1h" });
    await pod.resize(LARGE);
    expect(await pod.waitForState("InProgress")).toMatchObject({ allocated: LARGE, actual: SMALL });
    await pod.annotate(`${RESIZE_AFTER_ANNOTATION}-`);
    await pod.waitForSize(LARGE);
  });

  test.each(["Deferred", "Infeasible"] as const)("is %s until the annotation is removed", async (outcome) => {
    const pod = await create(outcome.toLowerCase(), answering(outcome));
    await pod.resize(LARGE);
    expect(await pod.waitForState(outcome)).toMatchObject({
      requested: LARGE,
      allocated: SMALL,
      actual: SMALL,
    });
    await pod.annotate(`${RESIZE_OUTCOME_ANNOTATION}-`);
    await pod.waitForSize(LARGE);
  });

  test("ends with Error until the annotation is removed", async () => {
    const pod = await create("error", answering("Error"));
    await pod.resize(LARGE);
    expect(await pod.waitForState("Error")).toMatchObject({ allocated: LARGE, actual: SMALL });
    await pod.annotate(`${RESIZE_OUTCOME_ANNOTATION}-`);
    await pod.waitForSize(LARGE);
  });

  test("is not observed until the annotation is removed", async () => {
    const pod = await create("unseen", answering("NotObserved"));
    await pod.resize(LARGE);
    // Another pod is resized meanwhile.
    const other = await create("seen");
    await other.resize(LARGE);
    await other.waitForSize(LARGE);
    expect(await pod.view()).toMatchObject({
      isObserved: false,
      resize: "none",
      allocated: SMALL,
      actual: SMALL,
    });
    await pod.annotate(`${RESIZE_OUTCOME_ANNOTATION}-`);
    await pod.waitForSize(LARGE);
  });

  test("gets each outcome that the annotation changes to", async () => {
    const pod = await create("fickle", answering("Deferred"));
    await pod.resize(LARGE);
    await pod.waitForState("Deferred");
    for (const outcome of ["Infeasible", "Error", "Deferred"] as const) {
      await pod.annotate(`${RESIZE_OUTCOME_ANNOTATION}=${outcome}`);
      await pod.waitForState(outcome);
    }
  });

  test.each(RESIZE_OUTCOMES.filter((outcome) => outcome !== "NotObserved"))(
    "back to the current size ends %s",
    async (outcome) => {
      const pod = await create(`back-${outcome.toLowerCase()}`, answering(outcome));
      await pod.resize(LARGE);
      await pod.waitForState(outcome);
      await pod.resize(SMALL);
      await pod.waitForSize(SMALL);
    },
  );

  test("waits while the container crashes, and completes when it runs again", async () => {
    const pod = await create("crashing");
    const before = await pod.view();
    const label = (change: string) => kubectl(cluster, ["-n", NAMESPACE, "label", "pod", "crashing", change]);
    await label(`${NEVER_READY_LABEL}=true`);
    await pod.waitForNotReady();
    await pod.resize(LARGE);
    await label(`${NEVER_READY_LABEL}-`);
    const { containerID, restartCount } = await pod.waitForSize(LARGE);
    expect(restartCount).toBe(3);
    expect(containerID).not.toBe(before.containerID);
  });
});
