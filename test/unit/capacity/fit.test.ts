import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { lackOfCapacity } from "../../../src/capacity/fit.ts";
import { toNodeView } from "../../../src/capacity/node-view.ts";
import type { PodSpec } from "../../../src/kube/pods.ts";
import { aNode } from "../../support/fixtures/node.ts";

function pod(cpu: string, memory: string, changes: Partial<PodSpec> = {}): PodSpec {
  return { containers: [{ name: "pipe", resources: { requests: { cpu, memory } } }], ...changes };
}

function node(cpu: string, memory: string, changes: Parameters<typeof aNode>[2] = {}) {
  return toNodeView(aNode("node", { cpu, memory }, changes));
}

describe("the lack of capacity for a pod", () => {
  it.each([
    ["a node has exactly the requested size", "4", "16Gi", "4000m", "16384Mi"],
    ["a node is larger than the requested size", "4", "16Gi", "8", "32Gi"],
  ])("is not reported if %s", (_, cpu, memory, nodeCpu, nodeMemory) => {
    expect(lackOfCapacity(pod(cpu, memory), [node("1", "1Gi"), node(nodeCpu, nodeMemory)])).toBeUndefined();
  });

  it("is reported with the node with the most CPU if one node has the CPU and another one has the memory", () => {
    const nodes = [node("4", "64Gi"), node("16", "15Gi"), node("16", "8Gi")];
    expect(lackOfCapacity(pod("8", "32Gi"), nodes)).toBe(
      `its pod would request 8 cpu / 32 Gi, and the largest of the 3 nodes that it may run on has 16 cpu / 15 Gi allocatable: request a smaller size, or add a larger node`,
    );
  });

  it("is reported if the only node that the pod may run on is too small, even if another node is large enough", () => {
    const large = node("64", "256Gi", { taints: [{ key: "dedicated", effect: "NoSchedule" }] });
    expect(lackOfCapacity(pod("8", "32Gi"), [node("4", "16Gi"), large])).toContain(
      "the one node that it may run on has 4 cpu / 16 Gi allocatable",
    );
  });

  it("is reported if the pod may not run on any node", () => {
    const nodes = [node("64", "256Gi"), node("64", "256Gi")];
    expect(lackOfCapacity(pod("8", "32Gi", { nodeSelector: { disk: "ssd" } }), nodes)).toBe(
      `its pod would request 8 cpu / 32 Gi, and it may run on none of the 2 nodes of the cluster (node selector, node affinity, taints): add a node for it, or change these rules`,
    );
  });

  it("is reported with different amounts for the request and the node, even if the difference is tiny", () => {
    expect(lackOfCapacity(pod("8", "32Gi"), [node("7999999u", "34359738367")])).toContain(
      "request 8 cpu / 32 Gi, and the one node that it may run on has 7.999 cpu / 31.99 Gi",
    );
    expect(lackOfCapacity(pod("8000001u", "32769Mi"), [node("8", "32Gi")])).toContain(
      "request 8.001 cpu / 32.01 Gi, and the one node that it may run on has 8 cpu / 32 Gi",
    );
  });

  it("is reported if and only if every node lacks CPU or memory", () => {
    const amounts = fc.record({
      cpu: fc.integer({ min: 0, max: 5 }),
      memory: fc.integer({ min: 0, max: 5 }),
    });
    fc.assert(
      fc.property(amounts, fc.array(amounts, { maxLength: 5 }), (request, nodes) => {
        const views = nodes.map(({ cpu, memory }) => node(`${cpu}`, `${memory}Gi`));
        const isLacking = nodes.every(({ cpu, memory }) => cpu < request.cpu || memory < request.memory);
        const found = lackOfCapacity(pod(`${request.cpu}`, `${request.memory}Gi`), views);
        expect(found !== undefined).toBe(isLacking);
      }),
    );
  });
});
