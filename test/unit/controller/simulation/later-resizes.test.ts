import { describe, expect, it } from "vitest";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { HeldPipe } from "../../../support/simulation/held-steps.ts";
import { expectSamePods } from "../../../support/simulation/truth.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const SMALL = { requests: { cpu: "1", memory: "4Gi" }, limits: { memory: "4Gi" } };

describe.each([
  ["the same leader", () => undefined],
  ["the next leader", ({ simulation }: HeldPipe) => simulation.start()],
])("a pod that another tool resizes hours after its pipe was resized in place", (leader, act) => {
  it(`is resized again, and no pod is replaced: ${leader}`, async () => {
    const pipe = await HeldPipe.start();
    const { workloads } = pipe;
    await pipe.request(2);
    await pipe.run(3 * HOUR);
    act(pipe);
    await pipe.run(MINUTE);
    workloads.resizePod(pipe.podNames()[1] ?? "", SMALL, { manager: "right-sizer" });
    await pipe.run(5 * MINUTE);
    pipe.expectSettled(2);
    expectSamePods(pipe);
  });

  it(`is resized again, and no pod is replaced because of an earlier crash: ${leader}`, async () => {
    const pipe = await HeldPipe.start();
    const { workloads } = pipe;
    await pipe.request(2);
    const [first = "", second = ""] = pipe.podNames();
    workloads.crash(first, SECOND);
    await pipe.run(3 * HOUR);
    act(pipe);
    await pipe.run(MINUTE);
    workloads.resizePod(second, SMALL, { manager: "right-sizer" });
    await pipe.run(5 * MINUTE);
    pipe.expectSettled(2);
    expect(pipe.uids()).toEqual(pipe.before);
  });
});

describe("a pipe that was never resized, whose owner sets other resources and a broken image before the template follows", () => {
  it("gets a rollout, which is rolled back to the size that the pipe had when it was adopted, and reported", async () => {
    const pipe = await HeldPipe.start();
    const { workloads, simulation } = pipe;
    pipe.failAlwaysAt("pause", { error: new KubeApiError("PATCH", 500, "{}") });
    await pipe.request(2, 10 * SECOND);
    workloads.kubelets.startMs = ({ spec }) => (JSON.stringify(spec).includes("broken") ? undefined : 500);
    const resources = { requests: { cpu: "1500m", memory: "5Gi" }, limits: { memory: "7Gi" } };
    pipe.change({ template: { spec: { containers: [{ name: "pipe", image: "broken", resources }] } } });
    pipe.heal();
    await pipe.run(20 * MINUTE);
    expect(pipe.templateSize()).toBe("1000m/4Gi");
    expect(simulation.status(1).failures).toMatchObject([{ pipe: "pipe", reason: "RolloutTimeout" }]);
    pipe.setImage("registry.example/pipe:2");
    simulation.askToRetry(1);
    await pipe.run(5 * MINUTE);
    pipe.expectSettled(2);
  });
});
