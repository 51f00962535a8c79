import { describe, expect, it } from "vitest";
import { TYPE_LABEL } from "../../../../src/controller/names.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { HeldPipe } from "../../../support/simulation/held-steps.ts";
import { expectTruth } from "../../../support/simulation/truth.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** The pods run with two cores, and the template with one. */
async function startResized(): Promise<HeldPipe> {
  const pipe = await HeldPipe.start();
  // The controller records that the pipe has its size.
  await pipe.request(1, MINUTE);
  pipe.failAlwaysAt("pause", { error: new KubeApiError("PATCH", 500, "{}") });
  await pipe.request(2, 10 * SECOND);
  expect(pipe.podSizes()).toEqual(["2000m/8Gi", "2000m/8Gi"]);
  return pipe;
}

/** Somebody removes the label by which the controller sees a pod. */
function hide({ workloads: { pods, scheduler } }: HeldPipe, name = ""): void {
  const pod = pods.get(name);
  const { [TYPE_LABEL]: _, ...labels } = pod?.metadata.labels ?? {};
  if (pod) scheduler.put({ ...pod, metadata: { ...pod.metadata, labels } }, { manager: "user" });
}

describe("the first size is reported only once every pod has it, if meanwhile", () => {
  it("a pod lost its label", async () => {
    const pipe = await startResized();
    hide(pipe, pipe.podNames()[1]);
    await pipe.request(1, 10 * MINUTE);
    expectTruth(pipe, 1);
  });

  it("a pod was evicted, and another one lost its label", async () => {
    const pipe = await startResized();
    const [first = "", second] = pipe.podNames();
    pipe.workloads.evictPod(first);
    await pipe.run(10 * SECOND);
    hide(pipe, second);
    await pipe.request(1, 10 * MINUTE);
    expectTruth(pipe, 1);
  });

  it("its owner paused the Deployment and removed the label from its template", async () => {
    const pipe = await startResized();
    pipe.change({ paused: true, template: { metadata: { labels: { [TYPE_LABEL]: null } } } });
    await pipe.request(1, 10 * MINUTE);
    expect(pipe.cluster.readyJudge.violations).toEqual([]);
    expect(pipe.simulation.status(1).pipes?.pending).toMatchObject([{ state: "Paused" }]);
    pipe.change({ paused: null });
    await pipe.run(10 * MINUTE);
    expectTruth(pipe, 1);
  });

  it("its owner scaled the Deployment to zero while the controller manager is away", async () => {
    const pipe = await startResized();
    pipe.workloads.killControllerManager();
    pipe.change({ replicas: 0 });
    await pipe.request(1, MINUTE);
    expect(pipe.cluster.readyJudge.violations).toEqual([]);
    pipe.workloads.startControllerManager();
    await pipe.run(MINUTE);
    expect(pipe.pods()).toEqual([]);
    expectTruth(pipe, 1);
  });
});
