import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../../../src/kube/errors.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";

const SECOND = 1000;
const HOUR = 3600 * SECOND;

const isWrite = ({ path, method = "GET" }: KubeRequest) => method !== "GET" && path.includes("/deployments/");

type Fails = (group: PipeGroup) => void;
/** Each write takes longer than a reconciliation waits for it. */
const FAILURES: readonly [string, "Rollout" | "InPlace", Fails][] = [
  [
    "the webhook of a rollout",
    "Rollout",
    ({ cluster }) => cluster.webhooks.down("deployments", HOUR, { isSilent: true }),
  ],
  [
    "the webhook of the dry run",
    "InPlace",
    ({ cluster }) => cluster.webhooks.down("deployments", HOUR, { isSilent: true }),
  ],
  [
    "the API server",
    "Rollout",
    ({ cluster }) => {
      cluster.latencyMs = (request) => (isWrite(request) ? 35 * SECOND : 5);
      cluster.fault = (request) =>
        isWrite(request) ? { error: new KubeUnreachableError("no response") } : undefined;
    },
  ],
];

describe("a write that does not get a response again and again", () => {
  it.each(FAILURES)(
    "of %s: one Event, at most 20 writes of the status, and it always has the failure",
    async (_, strategy, fails) => {
      const group = await PipeGroup.start({ pipes: 1 });
      const { simulation, cluster } = group;
      simulation.start(strategy);
      await group.run(5 * SECOND);
      fails(group);
      simulation.events.length = 0;
      const sinceMs = cluster.clock.monotonic();
      group.request(4);
      await group.run(2 * 35 * SECOND);
      let silentS = 0;
      for (let ms = 2 * 35 * SECOND; ms < HOUR - SECOND; ms += SECOND) {
        await group.run(SECOND);
        if (simulation.status(1).failures === undefined) silentS += 1;
      }
      expect({
        events: simulation.events.filter(({ reason }) => reason === "WriteFailed").length,
        isBounded: group.attemptsOf(/^pipescalings\/status/, { sinceMs }) <= 20,
        silentS,
      }).toEqual({ events: 1, isBounded: true, silentS: 0 });
    },
  );

  it("to list the nodes: one Event, and at most 20 writes of the status", async () => {
    const group = await PipeGroup.start({ pipes: 1, deployment: { strategy: "Recreate" } });
    const { simulation, cluster } = group;
    simulation.start("Rollout");
    await group.run(5 * SECOND);
    const isNodes = ({ path }: KubeRequest) => path.endsWith("/nodes");
    cluster.latencyMs = (request) => (isNodes(request) ? 8 * SECOND : 5);
    cluster.fault = (request) =>
      isNodes(request) ? { error: new KubeApiError("GET", 500, "{}") } : undefined;
    simulation.events.length = 0;
    const sinceMs = cluster.clock.monotonic();
    group.request(4);
    await group.run(HOUR - SECOND);
    expect(simulation.events.map(({ reason }) => reason)).toEqual(["WriteFailed"]);
    expect(group.attemptsOf(/^pipescalings\/status/, { sinceMs })).toBeLessThanOrEqual(20);
  });
});
