/** Parts of the Stage objects of kwok. Their expressions are jq. */

export type Expression = { key: string; operator: string; values?: string[] };

export const label = (name: string) => `.metadata.labels["${name}"]`;
export const annotation = (name: string) => `.metadata.annotations["${name}"]`;
export const condition = (type: string) => `.status.conditions.[] | select( .type == "${type}" ) | .status`;
export const isIn = (key: string, ...values: string[]): Expression => ({ key, operator: "In", values });
export const isNotIn = (key: string, ...values: string[]): Expression => ({ key, operator: "NotIn", values });
export const exists = (key: string): Expression => ({ key, operator: "Exists" });
export const doesNotExist = (key: string): Expression => ({ key, operator: "DoesNotExist" });

export function stage(name: string, kind: string, when: Expression[], spec: Record<string, unknown>) {
  return {
    apiVersion: "kwok.x-k8s.io/v1alpha1",
    kind: "Stage",
    metadata: { name },
    spec: { resourceRef: { apiGroup: "v1", kind }, selector: { matchExpressions: when }, ...spec },
  };
}
