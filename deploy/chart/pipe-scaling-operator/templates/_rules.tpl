{{/*
RBAC rules of the two service accounts. A test removes each rule in turn and expects a failure, so none is superfluous.
*/}}

{{/* For the namespace of records. RBAC cannot restrict the API to its own ConfigMaps; api-policy.yaml does. */}}
{{- define "pipe-scaling.apiRecordRules" -}}
- apiGroups: [""]
  resources: [secrets]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch]
{{- end }}

{{/* For namespaces of pipes. The API does not create or delete PipeScalings; the controller creates them. */}}
{{- define "pipe-scaling.apiPipeRules" -}}
- apiGroups: [pipes.clouddb.dev]
  resources: [pipescalings]
  verbs: [get, list, watch, patch]
{{- end }}

{{- define "pipe-scaling.controllerRecordRules" -}}
- apiGroups: [""]
  resources: [configmaps]
  verbs: [list, watch]
# RBAC cannot restrict create to a name.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [pipe-scaling-controller]
  verbs: [get, update]
{{- end }}

{{/* For the cluster, because nodes are not namespaced. */}}
{{- define "pipe-scaling.controllerNodeRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [list]
{{- end }}

{{/*
For namespaces of pipes. controller-policy.yaml and statefulset-policies.yaml restrict which fields of a Deployment and of
a StatefulSet may be patched.
*/}}
{{- define "pipe-scaling.controllerPipeRules" -}}
- apiGroups: [apps]
  resources: [deployments]
  verbs: [list, watch, patch]
# The pods with the label of pipes show whether they have the size, and whether they start.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
{{- if .Values.rbac.inPlaceResize }}
# Resizes in place: the running pods, and then the ReplicaSet, so that the Deployment keeps them. The ReplicaSets of a
# Deployment are listed when its template is about to follow. in-place-policies.yaml restricts both to the sizes of pipes.
- apiGroups: [""]
  resources: [pods/resize]
  verbs: [patch]
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [list, patch, delete]
{{- end }}
{{- if .Values.rbac.statefulSets }}
# A StatefulSet does not replace a pod that never becomes ready, so a rollback deletes it. statefulset-policies.yaml
# restricts which pods may be deleted.
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [list, watch, patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [delete]
{{- if .Values.rbac.inPlaceResize }}
# Resizes in place: the label of a pod with the revision of its StatefulSet.
- apiGroups: [""]
  resources: [pods]
  verbs: [patch]
{{- end }}
{{- end }}
# Autoscalers that may conflict with the size of a pipe; the status names them.
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [list, watch]
- apiGroups: [autoscaling.k8s.io]
  resources: [verticalpodautoscalers]
  verbs: [list, watch]
- apiGroups: [pipes.clouddb.dev]
  resources: [pipescalings]
  verbs: [get, list, watch, create]
- apiGroups: [pipes.clouddb.dev]
  resources: [pipescalings/status]
  verbs: [patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}
