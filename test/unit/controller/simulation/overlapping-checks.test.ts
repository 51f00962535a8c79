import { describe, expect, it } from "vitest";
import { actionOf } from "../../../../src/kube/call.ts";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { refusal } from "../../../support/simulation/cluster.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const ONE = "1000m/4Gi";
const TWO = "2000m/8Gi";

const bodyOf = ({ body }: KubeRequest) => JSON.stringify(body ?? {});
const isDryRun = ({ query }: KubeRequest) => query?.["dryRun"] !== undefined;
const asks = (request: KubeRequest, cores: number) => bodyOf(request).includes(`"cpu":"${1000 * cores}m"`);

describe("a size that supersedes another one during its slow dry run", () => {
  it("stops no pod before the result of its own dry run, which a quota refuses", async () => {
    const group = await PipeGroup.start({ pipes: 1, deployment: { strategy: "Recreate" } });
    const { simulation, cluster, workloads } = group;
    simulation.start("Rollout");
    await group.run(5 * SECOND);
    workloads.scheduler.limits.set({ quota: 4000 });
    cluster.latencyMs = (request) => {
      if (!isDryRun(request)) return 5;
      return asks(request, 2) ? 4 * SECOND : 10 * SECOND;
    };
    group.request(2);
    await group.run(SECOND);
    group.request(8);
    await group.run(MINUTE);
    expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "Refused" });
    expect(simulation.sizes("pipe-0")).toEqual([ONE]);
    expect(group.uids()).toEqual(group.before);
    expect(workloads.replaced).toEqual([]);
  });

  it("does not fail with the refusal of the earlier size", async () => {
    const group = await PipeGroup.start({ pipes: 3 });
    const { simulation, cluster } = group;
    simulation.start("Rollout");
    await group.run(5 * SECOND);
    cluster.latencyMs = (request) => (isDryRun(request) && asks(request, 8) ? 9 * SECOND : 5);
    cluster.fault = (request) =>
      actionOf(request).resource === "deployments" && asks(request, 8)
        ? refusal("8 cores are too many")
        : undefined;
    const messages = new Set<string>();
    // The first pipe is still rolling out when the dry runs of the earlier size end.
    group.workloads.kubelets.startMs = () => 20 * SECOND;
    group.request(8);
    await group.run(SECOND);
    group.request(2);
    for (let ms = 0; ms < MINUTE; ms += 100) {
      await group.run(100);
      if (simulation.status(1).desired?.summary.startsWith("2")) messages.add(group.messages());
    }
    expect([...messages].filter((each) => each.includes("too many"))).toEqual([]);
    await group.run(MINUTE);
    expect(simulation.sizes(...group.names)).toEqual([TWO, TWO, TWO]);
    group.expectSettled(2);
  });

  it("in place is not begun before the result of its own dry run", async () => {
    const group = await PipeGroup.start({ pipes: 1 });
    const { simulation, cluster } = group;
    cluster.latencyMs = (request) => {
      if (!isDryRun(request)) return 5;
      return asks(request, 2) ? 8 * SECOND : 20 * SECOND;
    };
    cluster.fault = (request) =>
      actionOf(request).resource === "deployments" && asks(request, 8)
        ? refusal("8 cores are too many")
        : undefined;
    group.request(2);
    await group.run(SECOND);
    group.request(8);
    await group.run(5 * MINUTE);
    expect(group.attemptsOf(/^pods\/resize/)).toBe(0);
    expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "Refused" });
  });

  it("stops no pod before its own search for room", async () => {
    const group = await PipeGroup.start({ pipes: 1, deployment: { strategy: "Recreate" }, nodeCores: 8 });
    const { simulation, cluster, workloads } = group;
    workloads.scheduler.place("other", "4");
    simulation.start("Rollout");
    await group.run(5 * SECOND);
    let lists = 0;
    cluster.latencyMs = (request) => {
      if (actionOf(request).resource !== "pods" || (request.method ?? "GET") !== "GET") return 5;
      lists += 1;
      return lists === 1 ? 8 * SECOND : 12 * SECOND;
    };
    group.request(2);
    await group.run(SECOND);
    group.request(6);
    await group.run(MINUTE);
    expect(lists).toBeGreaterThan(1);
    expect(cluster.restartJudge.violations).toEqual([]);
    expect(group.uids()).toEqual(group.before);
    expect(simulation.sizes("pipe-0")).toEqual([ONE]);
    expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "NoNodeHasRoom" });
  });
});

// Another writer changes the pipe between the search for room and the write, and again during the next search.
it.each([1, 2, 5])(
  "a search for room that fails %i times after a conflict of the write is made again",
  async (conflicts) => {
    const group = await PipeGroup.start({ pipes: 1, deployment: { strategy: "Recreate" }, nodeCores: 8 });
    const { simulation, cluster } = group;
    simulation.start("Rollout");
    await group.run(5 * SECOND);
    let left = 0;
    cluster.fault = (request) => {
      if (actionOf(request).resource !== "deployments" || request.method !== "PATCH") return undefined;
      if (!isDryRun(request) && left === 0) left = 1 + conflicts;
      else if (left <= 1) return undefined;
      else left -= 1;
      return { error: new KubeApiError("PATCH", 409, "{}") };
    };
    group.request(2);
    await group.run(5 * MINUTE);
    expect(left).toBe(1);
    group.expectSettled(2);
  },
);
