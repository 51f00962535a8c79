/** As much of the add-on's definition as makes the API server know the kind. */
export const VERTICAL_CRD = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: {
    name: "verticalpodautoscalers.autoscaling.k8s.io",
    annotations: { "api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/63797" },
  },
  spec: {
    group: "autoscaling.k8s.io",
    scope: "Namespaced",
    names: { kind: "VerticalPodAutoscaler", plural: "verticalpodautoscalers" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        },
      },
    ],
  },
};
