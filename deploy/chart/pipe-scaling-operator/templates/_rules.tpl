{{/*
What each account may do, rule by rule. A test takes each of them away in turn and sees something fail, so that
none is superfluous.
*/}}

{{/* In the namespace of records. RBAC cannot tell its own ConfigMaps from the others: api-policy.yaml does. */}}
{{- define "pipe-scaling.apiRecordRules" -}}
- apiGroups: [""]
  resources: [secrets]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch]
{{- end }}

{{/* Where pipes run. It makes no PipeScaling and deletes none: the controller makes one when there is a pipe. */}}
{{- define "pipe-scaling.apiPipeRules" -}}
- apiGroups: [pipes.clouddb.dev]
  resources: [pipescalings]
  verbs: [get, list, watch, patch]
{{- end }}

{{- define "pipe-scaling.controllerRecordRules" -}}
- apiGroups: [""]
  resources: [configmaps]
  verbs: [list, watch]
# RBAC cannot narrow what is made to a name.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [pipe-scaling-controller]
  verbs: [get, update]
{{- end }}

{{/* In the cluster: nodes are in no namespace. */}}
{{- define "pipe-scaling.controllerNodeRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [list]
{{- end }}

{{/* Where pipes run. What may be patched of a Deployment: controller-policy.yaml. */}}
{{- define "pipe-scaling.controllerPipeRules" -}}
- apiGroups: [apps]
  resources: [deployments]
  verbs: [list, watch, patch]
# Only those without a node are asked for: which of them no node will do for.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
# What else may act on a pipe's size, to name it.
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
