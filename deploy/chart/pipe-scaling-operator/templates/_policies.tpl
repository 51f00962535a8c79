{{/*
Fragments of CEL for the admission policies. Objects are compared key by key, so keys that later versions of
Kubernetes add are covered too. dyn() makes the CEL type checker accept objects as maps.
*/}}

{{/* True for requests of the controller. */}}
{{- define "pipe-scaling.isController" -}}
request.userInfo.username == 'system:serviceaccount:{{ .Release.Namespace }}:{{ include "pipe-scaling.controllerName" . }}'
{{- end }}

{{/* True if the old object has the labels of a database pipe of a service. */}}
{{- define "pipe-scaling.isPipe" -}}
'pipes.clouddb.dev/service' in oldObject.metadata.?labels.orValue({}) &&
oldObject.metadata.?labels['pipes.clouddb.dev/type'] == optional.of('database')
{{- end }}

{{/* True if a part of the object has not changed. Takes a list: its path, and a CEL list of keys that may change. */}}
{{- define "pipe-scaling.unchanged" -}}
{{- $path := index . 0 }}
{{- $except := index . 1 -}}
dyn(object.{{ $path }}).all(key,
  key in {{ $except }} ||
  dyn(oldObject.{{ $path }})[?key] == optional.of(dyn(object.{{ $path }})[key])) &&
dyn(oldObject.{{ $path }}).all(key, key in {{ $except }} || key in dyn(object.{{ $path }}))
{{- end }}

{{/*
Variables for the validations of containers. Takes a list: the path of the pod spec, and the path of the metadata with
the annotation.
*/}}
{{- define "pipe-scaling.containerVariables" -}}
- name: containers
  expression: object.{{ index . 0 }}.containers
- name: oldContainers
  expression: oldObject.{{ index . 0 }}.containers
# The container to resize: the only one, or the one named in the annotation.
- name: sized
  expression: >-
    oldObject.{{ index . 1 }}.?annotations[?'pipes.clouddb.dev/container'].orValue(
      size(variables.oldContainers) == 1 ? variables.oldContainers[0].name : '')
{{- end }}

{{- define "pipe-scaling.containerValidations" -}}
- message: the controller may change only the resources of one container of a pipe
  expression: >-
    variables.containers.map(each, each.name) == variables.oldContainers.map(each, each.name) &&
    variables.containers.all(each, variables.oldContainers.all(old,
      old.name != each.name ||
      (dyn(each).all(key,
          (key == 'resources' && each.name == variables.sized) ||
          dyn(old)[?key] == optional.of(dyn(each)[key])) &&
        dyn(old).all(key, key in dyn(each) || (key == 'resources' && each.name == variables.sized)))))
# An existing CPU limit may follow the request, which preserves the QoS class Guaranteed.
- message: the controller may change only the cpu and memory requests and the memory limit of a container, and set an existing cpu limit to the cpu request
  expression: >-
    variables.containers.all(each, variables.oldContainers.all(old,
      old.name != each.name ||
      (dyn(each.?resources.orValue({})).all(key,
          key in ['requests', 'limits'] ||
          dyn(old.?resources.orValue({}))[?key] == optional.of(dyn(each.resources)[key])) &&
        dyn(old.?resources.orValue({})).all(key,
          key in ['requests', 'limits'] || key in dyn(each.?resources.orValue({}))) &&
        each.?resources.?requests.orValue({}).all(key,
          key in ['cpu', 'memory'] ||
          old.?resources.?requests[?key] == optional.of(each.resources.requests[key])) &&
        old.?resources.?requests.orValue({}).all(key,
          key in ['cpu', 'memory'] || key in each.?resources.?requests.orValue({})) &&
        each.?resources.?limits.orValue({}).all(key,
          key == 'memory' || old.?resources.?limits[?key] == optional.of(each.resources.limits[key]) ||
          (key == 'cpu' && old.?resources.?limits[?key].hasValue() &&
            each.?resources.?requests[?key].hasValue() &&
            quantity(each.resources.limits[key]).compareTo(quantity(each.resources.requests[key])) == 0)) &&
        old.?resources.?limits.orValue({}).all(key,
          key == 'memory' || key in each.?resources.?limits.orValue({})))))
{{- end }}

{{/* The writers of spec.paused, as the API server recorded them. Takes `object` or `oldObject`. */}}
{{- define "pipe-scaling.pausedBy" -}}
dyn({{ . }}.metadata).?managedFields.orValue([])
  .filter(each, each.?fieldsV1[?'f:spec'][?'f:paused'].hasValue())
  .map(each, [each.?manager.orValue(''), each.?operation.orValue('')])
{{- end }}

{{/* Takes a list: the root context, and the name of the policy. */}}
{{- define "pipe-scaling.controllerPolicyMetadata" -}}
name: {{ include "pipe-scaling.clusterName" . }}
labels:
  {{- include "pipe-scaling.labels" (index . 0) | nindent 2 }}
  app.kubernetes.io/component: controller
{{- end }}

{{/* Takes the same list. */}}
{{- define "pipe-scaling.controllerPolicyBinding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  {{- include "pipe-scaling.controllerPolicyMetadata" . | nindent 2 }}
spec:
  policyName: {{ include "pipe-scaling.clusterName" . }}
  validationActions: [Deny]
{{- end }}

{{/* True for requests of the API. */}}
{{- define "pipe-scaling.isApi" -}}
request.userInfo.username == 'system:serviceaccount:{{ .Release.Namespace }}:{{ include "pipe-scaling.apiName" . }}'
{{- end }}

{{/* Takes a list: the root context, and the name of the policy. */}}
{{- define "pipe-scaling.apiPolicyBinding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ include "pipe-scaling.clusterName" . }}
  labels:
    {{- include "pipe-scaling.labels" (index . 0) | nindent 4 }}
    app.kubernetes.io/component: api
spec:
  policyName: {{ include "pipe-scaling.clusterName" . }}
  validationActions: [Deny]
{{- end }}

{{/*
True if the records of other field managers have not changed, except for fields that the process may change. Otherwise a
request could erase who set a field, and a later apply of its owner would behave differently. The API server itself
merges the oldest records of an object with more than ten. Takes a dict: `own`, our field manager, and `nodes`, a list of
the paths to those fields: for each node, CEL of the keys that lead to it, and a CEL list of the keys that may change.
*/}}
{{- define "pipe-scaling.managersUnchanged" -}}
variables.managers.all(each,
  each.?manager.orValue('') in ['{{ .own }}', 'before-first-apply', 'ancient-changes'] ||
  variables.oldManagers.exists(old,
    old.?manager == each.?manager && old.?operation == each.?operation && old.?subresource == each.?subresource)) &&
((variables.oldManagers.filter(each, each.?operation.orValue('') == 'Update').size() >= 10 &&
    variables.managers.filter(each, each.?operation.orValue('') == 'Update').size() >= 10) ||
  variables.oldManagers
    .filter(old, old.?manager.orValue('') != '{{ .own }}' && old.?apiVersion.orValue('') == object.apiVersion)
    .map(old, [old.?fieldsV1.orValue({})] +
      variables.managers.filter(each,
        each.?manager == old.?manager && each.?operation == old.?operation &&
        each.?subresource == old.?subresource && each.?apiVersion == old.?apiVersion)
      .map(each, each.?fieldsV1.orValue({})) + [{}])
    .all(fields,
      {{- range $index, $node := .nodes }}
      {{- $old := printf "fields[0]%s" (index $node 0) }}
      {{- $new := printf "fields[1]%s" (index $node 0) }}
      {{- if index $node 0 }}
      {{- $old = printf "%s.orValue({})" $old }}
      {{- $new = printf "%s.orValue({})" $new }}
      {{- end }}
      {{ if $index }}&& {{ end }}{{ $old }}.all(key,
        key in {{ index $node 1 }} || {{ $new }}[?key] == optional.of({{ $old }}[key])) &&
      {{ $new }}.all(key, key in {{ index $node 1 }} || key in {{ $old }})
      {{- end }}))
{{- end }}

{{/* Variables for this rule. */}}
{{- define "pipe-scaling.managerVariables" -}}
- name: managers
  expression: dyn(object.metadata).?managedFields.orValue([])
- name: oldManagers
  expression: dyn(oldObject.metadata).?managedFields.orValue([])
{{- end }}
