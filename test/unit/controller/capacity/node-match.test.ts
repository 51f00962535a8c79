import { describe, expect, it } from "vitest";
import { matchesNode } from "../../../../src/controller/capacity/node-match.ts";
import { toNodeView } from "../../../../src/controller/capacity/node-view.ts";
import type {
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PodSpec,
  Taint,
} from "../../../../src/kube/objects.ts";
import { aNode } from "../../../support/fixtures/node.ts";

const CONTAINERS: PodSpec = { containers: [{ name: "pipe" }] };

function isMatch(pod: Partial<PodSpec>, changes: Parameters<typeof aNode>[2] = {}): boolean {
  return matchesNode({ ...CONTAINERS, ...pod }, toNodeView(aNode("node-a", {}, changes)));
}

function requires(...nodeSelectorTerms: readonly NodeSelectorTerm[]): Partial<PodSpec> {
  return {
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  };
}

describe("a pod may run on a node", () => {
  const labels = { zone: "a", cores: "16", empty: "" };

  it.each<readonly [string, boolean, Partial<PodSpec>]>([
    ["if it asks for none", true, {}],
    ["of the name that it has", true, { nodeName: "node-a" }],
    ["and not of another name", false, { nodeName: "node-b" }],
    ["with all labels of its selector", true, { nodeSelector: { zone: "a", cores: "16" } }],
    ["and not with another value", false, { nodeSelector: { zone: "b" } }],
    ["and not without one of the labels", false, { nodeSelector: { zone: "a", disk: "ssd" } }],
    ["if its affinity is only preferred", true, { affinity: { nodeAffinity: {} } }],
    ["and not if its affinity has no term", false, requires()],
    ["and not by a term without requirements", false, requires({})],
    [
      "that meets one of several terms",
      true,
      requires(
        { matchExpressions: [{ key: "zone", operator: "In", values: ["b"] }] },
        { matchExpressions: [{ key: "zone", operator: "In", values: ["a"] }] },
      ),
    ],
    [
      "and not if it meets only one requirement of a term",
      false,
      requires({
        matchExpressions: [
          { key: "zone", operator: "Exists" },
          { key: "disk", operator: "Exists" },
        ],
      }),
    ],
    [
      "named by a field",
      true,
      requires({ matchFields: [{ key: "metadata.name", operator: "In", values: ["node-a"] }] }),
    ],
    [
      "and not if a field excludes its name",
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
  ])("%s: its affinity is %s %s %j", (expected, key, operator, values) => {
    const pod = requires({ matchExpressions: [{ key, operator, values }] });
    expect(isMatch(pod, { labels })).toBe(expected);
  });
});

describe("a taint of a node", () => {
  const dedicated: Taint = { key: "dedicated", value: "pipes", effect: "NoSchedule" };

  it.each<readonly [string, boolean, Taint, Partial<PodSpec>]>([
    ["keeps a pod away", false, dedicated, {}],
    ["that is a preference does not", true, { ...dedicated, effect: "PreferNoSchedule" }, {}],
    ["is tolerated by its value", true, dedicated, { tolerations: [{ key: "dedicated", value: "pipes" }] }],
    [
      "is not tolerated by another value",
      false,
      dedicated,
      { tolerations: [{ key: "dedicated", value: "web" }] },
    ],
    ["is tolerated by its key", true, dedicated, { tolerations: [{ key: "dedicated", operator: "Exists" }] }],
    [
      "is not tolerated by another key",
      false,
      dedicated,
      { tolerations: [{ key: "gpu", operator: "Exists" }] },
    ],
    [
      "is tolerated by a toleration of everything",
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
      "without a value is tolerated by an equal one",
      true,
      { key: "gpu", effect: "NoExecute" },
      { tolerations: [{ key: "gpu" }] },
    ],
    [
      "is tolerated by an operator that is not known",
      true,
      dedicated,
      { tolerations: [{ key: "dedicated", operator: "Gt", value: "1" }] },
    ],
    ["may be tolerated by a RuntimeClass", true, dedicated, { runtimeClassName: "gvisor" }],
    ["of NoSchedule does not matter to a pod with a node name", true, dedicated, { nodeName: "node-a" }],
    ["of NoExecute does", false, { ...dedicated, effect: "NoExecute" }, { nodeName: "node-a" }],
  ])("%s", (_, expected, taint, pod) => {
    expect(isMatch(pod, { taints: [taint] })).toBe(expected);
  });

  it("stands for a cordon, which a pod can tolerate", () => {
    const key = "node.kubernetes.io/unschedulable";
    expect(isMatch({}, { unschedulable: true })).toBe(false);
    expect(isMatch({ tolerations: [{ key, operator: "Exists" }] }, { unschedulable: true })).toBe(true);
  });
});
