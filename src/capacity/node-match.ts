import type { Taint } from "../kube/objects.ts";
import type { NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Toleration } from "../kube/pods.ts";
import type { NodeView } from "./node-view.ts";

/** Returns true if the name, labels and taints of the node allow the pod. The size of the pod is not considered. */
export function matchesNode(spec: PodSpec, node: NodeView): boolean {
  const { nodeName, nodeSelector = {}, affinity } = spec;
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return (
    (nodeName === undefined || nodeName === node.name) &&
    Object.entries(nodeSelector).every(([key, value]) => node.labels[key] === value) &&
    (terms === undefined || terms.some((term) => matchesTerm(term, node))) &&
    node.taints.every((taint) => isBorne(taint, spec))
  );
}

/** A term without requirements matches no node. */
function matchesTerm({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, node: NodeView): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false;
  return (
    matchExpressions.every((each) => meets(each, node.labels[each.key])) &&
    // Kubernetes supports only the field metadata.name here.
    matchFields.every((each) => meets(each, node.name))
  );
}

function meets({ operator, values = [] }: NodeSelectorRequirement, value: string | undefined): boolean {
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
      return value !== undefined && Number(value) > Number(values[0]);
    case "Lt":
      return value !== undefined && Number(value) < Number(values[0]);
  }
}

/**
 * A pod with a node name bypasses the scheduler, so only NoExecute taints apply. A RuntimeClass can add tolerations
 * when the pod is created. They are not in the template, so a pod with a RuntimeClass is assumed to tolerate any taint.
 */
function isBorne(taint: Taint, { nodeName, runtimeClassName, tolerations = [] }: PodSpec): boolean {
  const isHard = taint.effect === "NoExecute" || (taint.effect === "NoSchedule" && nodeName === undefined);
  if (!isHard || runtimeClassName !== undefined) return true;
  return tolerations.some((toleration) => tolerates(toleration, taint));
}

/** An unknown operator counts as a match, so that an inconclusive check does not block a rollout. */
function tolerates(
  { key = "", operator = "Equal", value = "", effect = "" }: Toleration,
  taint: Taint,
): boolean {
  return (
    (effect === "" || effect === taint.effect) &&
    (key === "" || key === taint.key) &&
    (operator !== "Equal" || value === (taint.value ?? ""))
  );
}
