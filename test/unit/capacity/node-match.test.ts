import { describe, expect, it } from "vitest";
import { matchesNode } from "../../../src/capacity/node-match.ts";
import { toNodeView } from "../../../src/capacity/node-view.ts";
import type { Taint } from "../../../src/kube/objects.ts";
import type { NodeSelectorRequirement, NodeSelectorTerm, PodSpec } from "../../../src/kube/pods.ts";
import { aNode } from "../../support/fixtures/node.ts";

const CONTAINERS: PodSpec = { containers: [{ name: "pipe" }] };

function isMatch(pod: Partial<PodSpec>, changes: Parameters<typeof aNode>[2] = {}): boolean {
  return matchesNode({ ...CONTAINERS, ...pod }, toNodeView(aNode("node-a", {}, changes)));
}

function requires(...nodeSelectorTerms: readonly NodeSelectorTerm[]): Partial<PodSpec> {
  return {
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  };
}

describe("a pod", () => {
  const labels = { zone: "a", cores: "16", empty: "" };

  it.each<readonly [string, boolean, Partial<PodSpec>]>([
    ["may run on any node by default", true, {}],
    ["may run on the node with its node name", true, { nodeName: "node-a" }],
    ["may not run on a node that differs from its node name", false, { nodeName: "node-b" }],
    [
      "may run on a node that has all labels of its node selector",
      true,
      { nodeSelector: { zone: "a", cores: "16" } },
    ],
    ["may not run on a node with a different value of a label", false, { nodeSelector: { zone: "b" } }],
    [
      "may not run on a node that lacks one of the labels",
      false,
      { nodeSelector: { zone: "a", disk: "ssd" } },
    ],
    ["may run on any node if its affinity is only a preference", true, { affinity: { nodeAffinity: {} } }],
    ["may not run on any node if its affinity has no terms", false, requires()],
    ["may not run on any node if its only term has no requirements", false, requires({})],
    [
      "may run on a node that matches one of several terms",
      true,
      requires(
        { matchExpressions: [{ key: "zone", operator: "In", values: ["b"] }] },
        { matchExpressions: [{ key: "zone", operator: "In", values: ["a"] }] },
      ),
    ],
    [
      "may not run on a node that matches only one requirement of a term",
      false,
      requires({
        matchExpressions: [
          { key: "zone", operator: "Exists" },
          { key: "disk", operator: "Exists" },
        ],
      }),
    ],
    [
      "may run on a node that a field requirement includes",
      true,
      requires({ matchFields: [{ key: "metadata.name", operator: "In", values: ["node-a"] }] }),
    ],
    [
      "may not run on a node that a field requirement excludes",
      false,
      requires({ matchFields: [{ key: "metadata.name", operator: "NotIn", values: ["node-a"] }] }),
    ],
  ])("%s", (_, expected, pod) => {
    expect(isMatch(pod, { labels })).toBe(expected);
  });

  it.each<readonly [boolean, string, NodeSelectorRequirement["operator"], readonly string[]]>([
    [true, "zone", "In", ["b", "a"]],
    [false, "zone", "In", ["b"]],
    [false, "disk", "In", [""]],
    [true, "empty", "In", [""]],
    [false, "zone", "NotIn", ["a"]],
    [true, "zone", "NotIn", ["b"]],
    [true, "disk", "NotIn", ["ssd"]],
    [true, "zone", "Exists", []],
    [false, "disk", "Exists", []],
    [true, "disk", "DoesNotExist", []],
    [false, "zone", "DoesNotExist", []],
    [true, "cores", "Gt", ["15"]],
    [false, "cores", "Gt", ["16"]],
    [true, "cores", "Lt", ["17"]],
    [false, "cores", "Lt", ["16"]],
    [false, "disk", "Lt", ["1"]],
    [false, "zone", "Gt", ["1"]],
  ])("may run on the node: %s, with the affinity %s %s %j", (expected, key, operator, values) => {
    const pod = requires({ matchExpressions: [{ key, operator, values }] });
    expect(isMatch(pod, { labels })).toBe(expected);
  });
});

describe("a taint of a node", () => {
  const dedicated: Taint = { key: "dedicated", value: "pipes", effect: "NoSchedule" };

  it.each<readonly [string, boolean, Taint, Partial<PodSpec>]>([
    ["keeps a pod away", false, dedicated, {}],
    [
      "does not keep a pod away if it is only a preference",
      true,
      { ...dedicated, effect: "PreferNoSchedule" },
      {},
    ],
    [
      "is tolerated by a toleration with its key and value",
      true,
      dedicated,
      { tolerations: [{ key: "dedicated", value: "pipes" }] },
    ],
    [
      "is not tolerated by a toleration with another value",
      false,
      dedicated,
      { tolerations: [{ key: "dedicated", value: "web" }] },
    ],
    [
      "is tolerated by a toleration with its key",
      true,
      dedicated,
      { tolerations: [{ key: "dedicated", operator: "Exists" }] },
    ],
    [
      "is not tolerated by a toleration with another key",
      false,
      dedicated,
      { tolerations: [{ key: "gpu", operator: "Exists" }] },
    ],
    [
      "is tolerated by a toleration of all taints",
      true,
      dedicated,
      { tolerations: [{ operator: "Exists" }] },
    ],
    [
      "is not tolerated by a toleration of another effect",
      false,
      dedicated,
      { tolerations: [{ key: "dedicated", operator: "Exists", effect: "NoExecute" }] },
    ],
    [
      "without a value is tolerated by a toleration without a value",
      true,
      { key: "gpu", effect: "NoExecute" },
      { tolerations: [{ key: "gpu" }] },
    ],
    [
      "is tolerated by a toleration with an unknown operator",
      true,
      dedicated,
      { tolerations: [{ key: "dedicated", operator: "Gt", value: "1" }] },
    ],
    [
      "does not keep away a pod with a RuntimeClass, because the RuntimeClass may tolerate it",
      true,
      dedicated,
      { runtimeClassName: "gvisor" },
    ],
    [
      "with the effect NoSchedule does not keep away a pod with a node name",
      true,
      dedicated,
      { nodeName: "node-a" },
    ],
    [
      "with the effect NoExecute keeps away a pod with a node name",
      false,
      { ...dedicated, effect: "NoExecute" },
      { nodeName: "node-a" },
    ],
  ])("%s", (_, expected, taint, pod) => {
    expect(isMatch(pod, { taints: [taint] })).toBe(expected);
  });

  it("represents a cordoned node, which a pod can tolerate", () => {
    const key = "node.kubernetes.io/unschedulable";
    expect(isMatch({}, { unschedulable: true })).toBe(false);
    expect(isMatch({ tolerations: [{ key, operator: "Exists" }] }, { unschedulable: true })).toBe(true);
  });
});
