import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { START_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DEPLOYMENTS } from "../../src/kube/paths.ts";
import { pipeDeployment } from "../support/fixtures/pipe.ts";
import { conditionOf, resourcesOf, TestEnvironment } from "../support/test-environment.ts";

let environment: TestEnvironment;
beforeEach(async () => {
  environment = await TestEnvironment.create();
});
afterEach(() => environment.end());

describe("a rescale in progress", () => {
  const names = ["pipe-a", "pipe-b", "pipe-c"];

  it("resizes the waiting pipes directly to the newest size", async () => {
    await environment.startController();
    for (const name of names)
      await environment.createPipe({ name, cores: 1, podAnnotations: { [START_AFTER_ANNOTATION]: "2s" } });
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(2);
    await environment.requestSize(8);
    await environment.waitForCondition("Ready", "True");
    const sets = JSON.parse(
      await kubectl(environment.cluster, ["get", "replicasets", "-n", environment.pipes, "-o", "json"]),
    );
    expect(await Promise.all(names.map(async (name) => resourcesOf(await environment.pipe(name))))).toEqual([
      "8 32Gi 32Gi",
      "8 32Gi 32Gi",
      "8 32Gi 32Gi",
    ]);
    // At most the canary had the previous size.
    expect(sets.items.length).toBeLessThanOrEqual(3 * 2 + 1);
  });
});

describe("a size that a pipe can run", () => {
  it("may need longer than the rollout timeout, but not longer than the deadline of the owner", async () => {
    await environment.startController({ rolloutTimeoutMs: 2000 });
    const podAnnotations = { [START_AFTER_ANNOTATION]: "6s" };
    await environment.createPipe({ name: "pipe-a", cores: 1, podAnnotations, progressDeadlineSeconds: 30 });
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(4);
    await environment.waitForCondition("Ready", "True");
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("4 16Gi 16Gi");
    const writes = environment.log.map(({ msg }) => msg);
    expect(writes.filter((msg) => msg === "resize" || msg === "roll-back")).toEqual(["resize"]);
  });

  it.each([
    ["limits equal to its requests", true],
    ["only limits", false],
  ])(
    "leaves a pipe with %s in the QoS class Guaranteed: its CPU limit follows the size",
    async (_, isRequested) => {
      await environment.startController();
      const amounts = { cpu: "1", memory: "4Gi" };
      // So slow that the status during the rescale is visible, also on a busy machine.
      const made = pipeDeployment({
        name: "pipe-a",
        namespace: environment.pipes,
        serviceId: environment.serviceId,
        podAnnotations: { [START_AFTER_ANNOTATION]: "4s" },
      });
      const [container] = made.spec.template.spec.containers;
      const resources = { limits: amounts, ...(isRequested ? { requests: amounts } : {}) };
      const containers = [{ ...container, resources }];
      const template = { ...made.spec.template, spec: { ...made.spec.template.spec, containers } };
      await environment.create(DEPLOYMENTS, environment.pipes, { ...made, spec: { ...made.spec, template } });
      await environment.waitForCondition("Ready", "True");
      // Absent requests equal the limits, so the pipe has a size, and its adoption adds no requests.
      const [adopted] = (await environment.pipe("pipe-a")).spec.template.spec.containers;
      expect(adopted?.resources).toEqual(resources);
      for (const cores of [4, 2]) {
        await environment.requestSize(cores);
        const rolling = await environment.waitForCondition("Ready", "False", "Progressing");
        expect(conditionOf(rolling, "Ready")?.message).toContain(
          "The CPU limit of pipe-a follows the size, so its container stays Guaranteed.",
        );
        await environment.waitForCondition("Ready", "True");
        const { spec } = await environment.pipe("pipe-a");
        expect(spec.template.spec.containers[0]?.resources?.limits).toEqual({
          cpu: `${cores}`,
          memory: `${cores * 4}Gi`,
        });
      }
    },
  );
});
