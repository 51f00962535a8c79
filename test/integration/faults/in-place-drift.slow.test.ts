import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { expect } from "vitest";
import { DATABASE_TYPE, RETRY_ANNOTATION, SERVICE_LABEL, TYPE_LABEL } from "../../../src/controller/names.ts";
import { objectPath, PODS } from "../../../src/kube/paths.ts";
import { conditionOf, type TestEnvironment } from "../../support/test-environment.ts";
import { podsOf } from "../pods.ts";
import { it } from "./fixtures.ts";

const SMALL = { requests: { cpu: "1", memory: "4Gi" }, limits: { memory: "4Gi" } };
const LARGE = { requests: { cpu: "8", memory: "32Gi" }, limits: { memory: "32Gi" } };
const FOUR = { requests: { cpu: "4", memory: "16Gi" }, limits: { memory: "16Gi" } };

/** Another tool resizes a pod. */
async function resize(
  { client, pipes }: TestEnvironment,
  pod: string,
  resources: object,
  fieldManager: string,
): Promise<void> {
  await client.json({
    method: "PATCH",
    path: `${objectPath(PODS, pipes, pod)}/resize`,
    query: { fieldManager },
    patchType: "application/strategic-merge-patch+json",
    body: { spec: { containers: [{ name: "pipe", resources }] } },
  });
}

async function cpuOf(environment: TestEnvironment, pod: string): Promise<string | undefined> {
  const found = (await podsOf(environment)).find(({ metadata }) => metadata.name === pod);
  return found?.spec.containers[0]?.resources?.requests?.["cpu"];
}

function podLabelsOf({ serviceId }: TestEnvironment) {
  return { [SERVICE_LABEL]: serviceId, [TYPE_LABEL]: DATABASE_TYPE };
}

it("a pod that a right-sizer resizes again and again is repaired in place a few times, then named, and never replaced", async ({
  environment,
  invariants,
  startPipes,
  requestSize,
}) => {
  await startPipes(
    [{ name: "pipe", podLabels: podLabelsOf(environment) }],
    { resizeStrategy: "InPlaceOrRollout" },
    { timeouts: { fieldConflictMs: [0, 500, 1000] } },
  );
  await requestSize(4);
  await invariants.reached(4);
  const [before] = await podsOf(environment);
  if (!before) throw new Error("the pipe has no pod");
  const { name, uid } = before.metadata;
  const isGivenUp = async () => {
    if ((await cpuOf(environment, name)) === "4") await resize(environment, name, SMALL, "right-sizer");
    const scaling = await environment.scaling();
    const stalled = conditionOf(scaling, "Stalled");
    return stalled?.reason === "FieldConflict" ? scaling : undefined;
  };
  const conflict = await waitFor(isGivenUp, { what: "the controller to give up" });
  expect(conditionOf(conflict, "Ready")).toMatchObject({ status: "False", reason: "FieldConflict" });
  expect(conditionOf(conflict, "Ready")?.message).toContain(
    `another writer, "right-sizer", has resized the pod ${name}`,
  );
  expect(conflict.status?.failures).toMatchObject([{ pipe: "pipe", reason: "FieldConflict" }]);
  expect(conflict.status?.failures?.[0]).not.toHaveProperty("nextRetryAt");
  // A write that conflicts with one of the kubelet counts too.
  expect(environment.log.filter(({ msg }) => msg === "resize-pod").length).toBeLessThanOrEqual(4);
  await environment.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
  await invariants.settled(4, { quietMs: 0 });
  expect((await podsOf(environment)).map(({ metadata }) => metadata.uid)).toEqual([uid]);
  await invariants.end();
});

it("a boost that the settings name is waited for until it returns the pod to its size", async ({
  environment,
  invariants,
  startPipes,
  requestSize,
}) => {
  await startPipes([{ name: "pipe", podLabels: podLabelsOf(environment) }], {
    ...{ resizeStrategy: "InPlaceOrRollout", toleratedResizers: ["startup-boost"] },
  });
  await requestSize(4);
  await invariants.reached(4);
  const [{ metadata: { name = "", uid = "" } = {} } = {}] = await podsOf(environment);
  await resize(environment, name, LARGE, "startup-boost");
  const waiting = await environment.waitForCondition("Ready", "False", "Progressing");
  expect(conditionOf(waiting, "Ready")?.message).toContain(`pipe waits for "startup-boost"`);
  expect(await cpuOf(environment, name)).toBe("8");
  await resize(environment, name, FOUR, "startup-boost");
  await invariants.settled(4, { quietMs: 0 });
  expect((await podsOf(environment)).map(({ metadata }) => metadata.uid)).toEqual([uid]);
  expect(environment.log.filter(({ msg }) => msg === "resize-pod")).toHaveLength(1);
  await invariants.end();
});
