import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, expect, it } from "vitest";
import { API_VERSION, KIND, PIPE_SCALINGS } from "../../src/crd/names.ts";
import type { Condition } from "../../src/crd/pipe-scaling.ts";
import { objectPath } from "../../src/kube/paths.ts";
import { TestEnvironment } from "../support/test-environment.ts";
import { restrictController } from "./in-place-account.ts";

const AUDITED: Condition = {
  type: "Audited",
  status: "True",
  reason: "Audited",
  message: "An auditor saw it.",
  lastTransitionTime: "2026-01-01T00:00:00Z",
};

let environment: TestEnvironment;
beforeEach(async () => {
  environment = await TestEnvironment.create();
  await restrictController(environment);
});
afterEach(() => environment.end());

/** Waits until the status says that the pipes have the current size, and returns its conditions. */
function readyConditions(): Promise<readonly Condition[]> {
  const find = async () => {
    const { metadata, status } = await environment.scaling();
    const conditions = status?.conditions ?? [];
    const isReady = conditions.some(({ type, status: value }) => type === "Ready" && value === "True");
    return isReady && status?.observedGeneration === metadata.generation ? conditions : undefined;
  };
  return waitFor(find, { what: "the status to be Ready" });
}

it("the controller keeps a condition that another tool applies to a PipeScaling, with its admission policies", async () => {
  const { client, pipes, serviceId } = environment;
  await environment.createPipe({ name: "pipe", cores: 1 });
  await environment.startController();
  await readyConditions();
  await client.json({
    method: "PATCH",
    path: `${objectPath(PIPE_SCALINGS, pipes, serviceId)}/status`,
    query: { fieldManager: "auditor" },
    patchType: "application/apply-patch+yaml",
    body: {
      apiVersion: API_VERSION,
      kind: KIND,
      metadata: { name: serviceId },
      status: { conditions: [AUDITED] },
    },
  });
  await environment.requestSize(2);
  const conditions = await readyConditions();
  expect(conditions.map(({ type }) => type)).toEqual(["Ready", "Audited"]);
  expect(conditions).toContainEqual(AUDITED);
  expect(environment.errors).toEqual([]);
});
