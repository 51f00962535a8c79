import { describe, expect, it } from "vitest";
import type { ResizeStrategy } from "../../../../src/domain/resize-strategy.ts";
import type { PipeOptions } from "../../../support/fixtures/pipe.ts";
import { HeldPipe } from "../../../support/simulation/held-steps.ts";
import { deployResizable, workloadsOf } from "../../../support/simulation/in-place-scenario.ts";
import { idOf } from "../../../support/simulation/inputs.ts";
import { Simulation } from "../../../support/simulation/simulation.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;

interface Sizing {
  readonly strategy: ResizeStrategy;
  readonly cores: number;
}

/** A pipe that has its size for a while, and whose new pods take three seconds to start. */
async function startPipe({ strategy, cores }: Sizing, options: Partial<PipeOptions>): Promise<HeldPipe> {
  const simulation = new Simulation({ isInPlace: true });
  simulation.addService(1);
  deployResizable(simulation, "pipe", 1, options.replicas ?? 1, options);
  simulation.start(strategy);
  const pipe = HeldPipe.of(simulation, "pipe");
  await pipe.run(5 * SECOND);
  await pipe.request(cores, 5 * MINUTE);
  workloadsOf(simulation).kubelets.startMs = () => 3 * SECOND;
  simulation.events.length = 0;
  return pipe;
}

describe.each<[string, Sizing]>([
  ["was adopted", { strategy: "InPlaceOrRollout", cores: 1 }],
  ["was resized in place", { strategy: "InPlaceOrRollout", cores: 4 }],
  ["was resized by a rollout", { strategy: "Rollout", cores: 4 }],
])("a pipe that %s", (_, sizing) => {
  const evictions: readonly [string, (pipe: HeldPipe, name: string) => void][] = [
    ["evicted by the kubelet", ({ workloads }, name) => workloads.evictPod(name)],
    ["evicted with its grace period", ({ workloads }, name) => workloads.deletePod(name, 2 * SECOND)],
    ["deleted by force", ({ workloads }, name) => workloads.deletePod(name, 0)],
    ["replaced for a new image", ({ simulation }) => simulation.setImage("pipe", "example.com/pipe:2")],
  ];
  it.each(
    evictions.flatMap(([how, evict]) => [
      { how, evict, options: { replicas: 8 } },
      { how, evict, options: { strategy: "Recreate" as const } },
      { how, evict, options: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } },
      { how, evict, options: {} },
    ]),
  )("stays Ready, without an Event, when a pod is $how ($options)", async ({ evict, options }) => {
    const pipe = await startPipe(sizing, options);
    const { simulation, cluster } = pipe;
    const version = () => cluster.scalings.get(idOf(1))?.metadata.resourceVersion;
    const before = version();
    const [uid] = pipe.uids();
    evict(pipe, pipe.podNames()[0] ?? "");
    await pipe.run(MINUTE);
    expect(pipe.uids()).not.toContain(uid);
    expect(version()).toBe(before);
    expect(simulation.condition(1)).toMatchObject({ type: "Ready", status: "True" });
    expect(simulation.events).toEqual([]);
  });
});
