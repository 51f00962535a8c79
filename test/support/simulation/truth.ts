import { expect } from "vitest";
import { formatSize, sizeOfCores } from "../../../src/domain/size.ts";
import type { HeldPipe } from "./held-steps.ts";

/** Expects that pods and template have the size, that the status says so, and that no judge reported anything. */
export function expectTruth(pipe: HeldPipe, cores: number, service = 1): void {
  const { simulation, deployment, isPaused } = pipe;
  const size = formatSize(sizeOfCores(cores));
  const ready = simulation.status(service).conditions?.find(({ type }) => type === "Ready");
  const sizes = [...pipe.wantedSizes(), ...pipe.podSizes()];
  expect({
    violations: simulation.cluster.violations,
    otherPods: sizes.filter((each) => each !== size),
    template: simulation.sizes(deployment.metadata.name),
    isPaused,
    ready: ready?.status,
  }).toEqual({
    violations: [],
    otherPods: [],
    template: [size],
    isPaused: false,
    ready: "True",
  });
}

/** Expects the original pods and ReplicaSet, and that no container restarted. */
export function expectSamePods(pipe: HeldPipe): void {
  const restarts = pipe.pods().map(({ status }) => status?.containerStatuses?.[0]?.restartCount);
  expect({ uids: pipe.uids(), restarts }).toEqual({ uids: pipe.before, restarts: [0, 0] });
  expect(pipe.replicaSets()).toHaveLength(1);
}
