{{/*
Fragments of CEL for the admission policies. Objects are compared key by key, so keys that later versions of
Kubernetes add are covered too. dyn() makes the CEL type checker accept objects as maps.
*/}}

{{/* True for requests of the controller. */}}
{{- define "pipe-scaling.isController" -}}
request.userInfo.username == 'system:serviceaccount:{{ .Release.Namespace }}:{{ include "pipe-scaling.serviceAccountName" (list . "controller") }}'
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
# Its key in managedFields.
- name: sizedField
  expression: >-
    'k:{"name":"' + variables.sized + '"}'
{{- include "pipe-scaling.amountVariables" . }}
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
# An existing CPU limit may follow the request, which preserves the QoS class Guaranteed.{{ if .kind }} Without a request, it may
# return to the one that the annotation records.{{ end }}
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
            (each.?resources.?requests[?key].hasValue()
              ? quantity(each.resources.limits[key]).compareTo(quantity(each.resources.requests[key])) == 0
              : {{ if .kind }}size(variables.oldLastGood) == 2 && variables.oldLastGood[1].contains(
                '\\"limits\\":{\\"cpu\\":\\"' + each.resources.limits[key] + '\\"'){{ else }}false{{ end }}))) &&
        old.?resources.?limits.orValue({}).all(key,
          key == 'memory' || key in each.?resources.?limits.orValue({})))))
{{- end }}

{{/*
Cores of the largest size that a pipe can have. Lower values do not reduce it below the default, so that pods can return
to an earlier size.
*/}}
{{- define "pipe-scaling.maximumCores" -}}
{{- max 24 (int .Values.sizes.maximumCores) (include "pipe-scaling.largestTierCores" . | int) }}
{{- end }}

{{/* Cores of the largest size of a tier. */}}
{{- define "pipe-scaling.largestTierCores" -}}
{{- $largest := 0 }}
{{- range .Values.tiers }}
{{- with . }}
{{- $largest = max $largest (int .maximumCpuMillicores) }}
{{- end }}
{{- end }}
{{- div $largest 1000 }}
{{- end }}

{{/* Variables for the rules of sizes: of the container to resize [cpu, memory, memory limit, cpu limit], '' for none. */}}
{{- define "pipe-scaling.amountVariables" -}}
{{- range tuple (list "amounts" "containers") (list "oldAmounts" "oldContainers") }}
- name: {{ index . 0 }}
  expression: >-
    variables.{{ index . 1 }}.filter(each, each.name == variables.sized).map(each, [
      each.?resources.?requests[?'cpu'].orValue(''),
      each.?resources.?requests[?'memory'].orValue(''),
      each.?resources.?limits[?'memory'].orValue(''),
      each.?resources.?limits[?'cpu'].orValue('')])
{{- end }}
{{- end }}

{{/*
Limits of the sizes of running pods and ReplicaSets. They can also return to a size that is no step, and do not record
which. Takes a list: the root context, the smallest CPU and memory, and the name of a variable with the amounts that the
container runs, in a list that may be empty; "" for ReplicaSets.
*/}}
{{- define "pipe-scaling.boundedSizeValidation" -}}
{{- $cores := include "pipe-scaling.maximumCores" (index . 0) | int }}
{{- $running := index . 3 }}
- message: the controller may remove neither requests nor limits
  expression: >-
    variables.amounts.all(each, variables.oldAmounts.all(old,
      [0, 1, 2, 3].all(index, each[index] != '' || old[index] == '')))
- message: the controller may set only sizes from {{ index . 1 }} CPU with {{ index . 2 }} memory to {{ $cores }} CPU with {{ mul $cores 4 }}Gi{{ if $running }}, and the one that the container runs{{ end }}
  expression: >-
    variables.amounts == variables.oldAmounts ||
    variables.amounts.all(each,
      (each[0] == '' || (quantity(each[0]).compareTo(quantity('{{ index . 1 }}')) >= 0 &&
        quantity(each[0]).compareTo(quantity('{{ $cores }}')) <= 0)) &&
      [each[1], each[2]].all(memory,
        memory == '' || (quantity(memory).compareTo(quantity('{{ index . 2 }}')) >= 0 &&
          quantity(memory).compareTo(quantity('{{ mul $cores 4 }}Gi')) <= 0)))
    {{- if $running }} ||
    variables.amounts.all(each, variables.{{ $running }}.exists(old,
      [0, 1, 2].all(index, each[index] == '' ||
        (old[index] != '' && quantity(each[index]).compareTo(quantity(old[index])) == 0))))
    {{- end }}
{{- end }}

{{/* The resources in `amounts` or `oldAmounts` as the annotation records them, without and with a CPU limit. */}}
{{- define "pipe-scaling.recordedTexts" -}}
variables.{{ . }}
  .map(each, each.map(amount, amount == '' ? 'null' : '\\"' + amount + '\\"'))
  .map(each, ['', '\\"cpu\\":' + each[3] + ','].map(limit,
    '{\\"requests\\":{\\"cpu\\":' + each[0] + ',\\"memory\\":' + each[1] + '},\\"limits\\":{' + limit +
    '\\"memory\\":' + each[2] + '}}'))
{{- end }}

{{/*
The writers of a field of the spec, as the API server recorded them. A request can change these records. Takes a list:
`object` or `oldObject`, and the keys that lead to the field in the records.
*/}}
{{- define "pipe-scaling.writersOf" -}}
dyn({{ index . 0 }}.metadata).?managedFields.orValue([])
  .filter(each, each.?fieldsV1[?'f:spec']{{ range index . 1 }}[?'{{ . }}']{{ end }}.hasValue())
  .map(each, [each.?manager.orValue(''), each.?operation.orValue('')])
{{- end }}

{{/* Takes a list: the root context, and the name of the policy. */}}
{{- define "pipe-scaling.controllerPolicyMetadata" -}}
name: {{ include "pipe-scaling.clusterName" . }}
labels:
  {{- include "pipe-scaling.labels" (list (index . 0) (dict "app.kubernetes.io/component" "controller")) | nindent 2 }}
{{- include "pipe-scaling.annotations" (list (index . 0) (include "pipe-scaling.specChecksum" . | fromYaml)) | replace "\n  " "\n" }}
{{- end }}

{{/* An annotation for `pipe-scaling.withSpecChecksums`. */}}
{{- define "pipe-scaling.specChecksum" -}}
pipes.clouddb.dev/spec-checksum: SPEC-CHECKSUM
{{- end }}

{{/*
The manifests with the SHA-256 of their specs in this annotation, so that doctor finds changes. Takes the text of
manifests with `pipe-scaling.specChecksum`.
*/}}
{{- define "pipe-scaling.withSpecChecksums" -}}
{{- range $index, $manifest := splitList "\n---\n" . }}
{{- if $index }}
---
{{ end }}
{{- $manifest | replace "SPEC-CHECKSUM" (get (fromYaml $manifest) "spec" | toRawJson | sha256sum) }}
{{- end }}
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
request.userInfo.username == 'system:serviceaccount:{{ .Release.Namespace }}:{{ include "pipe-scaling.serviceAccountName" (list . "api") }}'
{{- end }}

{{/* Takes a list: the root context, and the name of the policy. */}}
{{- define "pipe-scaling.apiPolicyBinding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ include "pipe-scaling.clusterName" . }}
  labels:
    {{- include "pipe-scaling.labels" (list (index . 0) (dict "app.kubernetes.io/component" "api")) | nindent 4 }}
  {{- include "pipe-scaling.annotations" (list (index . 0) (include "pipe-scaling.specChecksum" . | fromYaml)) }}
spec:
  policyName: {{ include "pipe-scaling.clusterName" . }}
  validationActions: [Deny]
{{- end }}

{{/*
True if the records of field managers are those that the API server itself would write. A request can set them to
anything, of any length. Without this rule, it could erase who set a field, and a later apply of its owner would behave
differently; claim fields of others; or fill etcd.

- Our own record names only fields that we may write. It has the API version of the object and no other subresource.
- Records of others lose at most fields that we may write, and gain nothing. None is added.
- The API server itself merges the oldest records of updates of an object with more than ten into `ancient-changes`, and
  writes {".": {}}, a field without its children, as {}.

Takes a dict: `own`, our field manager; `fields`, CEL of a list of field sets that our record may have; `nodes`, a list of
the paths to fields that others may lose: for each node, CEL of the keys that lead to it, and a CEL list of keys; `added`,
CEL that is true for other records (`each`) that the API server adds; and `depth`, the depth of the deepest field.
*/}}
{{- define "pipe-scaling.managersUnchanged" -}}
{{- $first := sub 14 (.depth | default 14) }}
variables.managers.all(each,
  (each.?manager.orValue('') == '{{ .own }}'
    ? (variables.oldManagers.exists(old, {{ include "pipe-scaling.isSameManager" . }}) ||
      (each.?apiVersion.orValue('') == object.apiVersion && each.?subresource.orValue('') in ['', request.?subResource.orValue('')]))
    : (variables.oldManagers.exists(old, {{ include "pipe-scaling.isSameManager" . }} && old.?time == each.?time) ||
      (size(variables.merged) > 0 && {{ include "pipe-scaling.isMerger" . }} && variables.oldManagers.exists(old,
        old.?time == each.?time && old.?apiVersion == each.?apiVersion))
      {{- with .added }} || {{ . }}{{ end }})) &&
  [variables.oldManagers.filter(old, {{ include "pipe-scaling.isSameManager" . }}).map(old, old.?fieldsV1.orValue({})) +
    ({{ include "pipe-scaling.isMerger" . }} ? variables.merged.map(old, old.?fieldsV1.orValue({})) : []) +
    (each.?manager.orValue('') == '{{ .own }}' ? {{ .fields }} : [])].all(n{{ $first }},
    [each.?fieldsV1.orValue({})].all(f{{ $first }}, {{ with .added }}{{ . }} || {{ end }}
      {{- include "pipe-scaling.fieldsWithin" $first }}))) &&
(variables.oldManagers
    .filter(old, old.?manager.orValue('') != '{{ .own }}' && old.?apiVersion.orValue('') == object.apiVersion &&
      (size(variables.merged) == 0 ||
        !([old].exists(each, {{ include "pipe-scaling.isMerger" . }}) || old in variables.merged)))
    .map(old, [old.?fieldsV1.orValue({})] +
      variables.managers.filter(each, {{ include "pipe-scaling.isSameManager" . }})
      .map(each, each.?fieldsV1.orValue({})) + [{}])
    .all(fields,
      {{- range $index, $node := .nodes }}
      {{- $old := printf "fields[0]%s" (index $node 0) }}
      {{- $new := printf "fields[1]%s" (index $node 0) }}
      {{- $isEmpty := printf "%s == {}" $new }}
      {{- if index $node 0 }}
      {{- $isEmpty = printf "%s == optional.of({})" $new }}
      {{- $old = printf "%s.orValue({})" $old }}
      {{- $new = printf "%s.orValue({})" $new }}
      {{- end }}
      {{ if $index }}&& {{ end }}{{ $old }}.all(key,
        key in {{ index $node 1 }} || {{ $new }}[?key] == optional.of({{ $old }}[key]) ||
        (key == '.' && {{ $isEmpty }}))
      {{- end }}))
{{- end }}

{{/* True if the API server merges records into this one. It has one for each version. */}}
{{- define "pipe-scaling.isMerger" -}}
each.?manager.orValue('') == 'ancient-changes' && each.?operation.orValue('') == 'Update' && !each.?subresource.hasValue()
{{- end }}

{{/*
True if a field that does not change keeps its writers: none is added, and none is lost, except those whose records the
API server merges. The controller needs no such exception for itself, because its record is the newest. Takes a list: the
variables of the new and of the old writers, and CEL that is true if the controller may give up the field.
*/}}
{{- define "pipe-scaling.writersUnchanged" -}}
{{- $new := printf "variables.%s" (index . 0) }}
{{- $old := printf "variables.%s" (index . 1) -}}
{{ $new }}.all(each, each in {{ $old }} ||
  (each == ['ancient-changes', 'Update'] && size(variables.merged) > 0 && {{ $old }}.exists(old,
    old[0] != 'pipe-scaling-controller' && old[1] == 'Update' && !(old in {{ $new }})))) &&
{{ $old }}.all(old, old in {{ $new }} ||
  (old[0] == 'pipe-scaling-controller'
    ? {{ index . 2 }}
    : old[1] == 'Update' && size(variables.merged) > 0 && ['ancient-changes', 'Update'] in {{ $new }}))
{{- end }}

{{/*
True if a record of the controller has the time of the API server, which sets it if a request sets a field, and else
stores what the request says. Takes CEL that is true if the request sets a field.
*/}}
{{- define "pipe-scaling.ownTimesUnchanged" -}}
variables.managers.all(each, each.?manager.orValue('') != 'pipe-scaling-controller' ||
  (each.?operation.orValue('') == 'Update' && each.?subresource.orValue('') == '' && ({{ . }})) ||
  (variables.oldManagers.filter(old, {{ include "pipe-scaling.isSameManager" . }}).map(old, old.?time.orValue('')) + [''])[0]
    == each.?time.orValue(''))
{{- end }}

{{- define "pipe-scaling.isSameManager" -}}
old.?manager == each.?manager && old.?operation == each.?operation && old.?subresource == each.?subresource && old.?apiVersion == each.?apiVersion
{{- end }}

{{/*
True if each field of the field set f<depth> is in one of the list n<depth>, and the same holds for its children. CEL has
no recursion, so this repeats the expression for each depth up to 14. A list of one element names a value.
*/}}
{{- define "pipe-scaling.fieldsWithin" -}}
{{- $next := add1 . -}}
{{- if eq (int .) 14 -}}
f{{ . }} == {}
{{- else -}}
f{{ . }}.all(k, n{{ . }}.exists(n, n[?k] == optional.of(f{{ . }}[k])) || (n{{ . }}.exists(n, k in n) &&
  [f{{ . }}[k]].all(f{{ $next }}, [n{{ . }}.filter(n, k in n).map(n, n[k])].all(n{{ $next }}, {{ include "pipe-scaling.fieldsWithin" $next }}))))
{{- end }}
{{- end }}

{{/*
True if each field of the field set f<depth> exists in the value o<depth>, and the same holds for its children. Takes the
depth.
*/}}
{{- define "pipe-scaling.fieldsExist" -}}
{{- $next := add1 . -}}
{{- if eq (int .) 7 -}}
f{{ . }} == {}
{{- else -}}
f{{ . }}.all(k, k == '.' ? f{{ . }}[k] == {} : [f{{ . }}[k]].all(f{{ $next }}, (k.startsWith('f:')
  ? (k.substring(2) in o{{ . }} ? [dyn(o{{ . }}[k.substring(2)])] : [])
  : o{{ . }}.filter(o, ['name', 'pipe', 'type', 'uid'].exists(id, id in o && k == 'k:{"' + id + '":"' + string(o[id]) + '"}')))
  .exists(o{{ $next }}, {{ include "pipe-scaling.fieldsExist" $next }})))
{{- end }}
{{- end }}

{{/* CEL of a field set. Takes the tree of its fields; the key 'sized' stands for the container to resize. */}}
{{- define "pipe-scaling.fieldSet" -}}
dyn({
{{- if . }}'.': dyn({}){{ end }}
{{- range $key, $children := . }}, {{ if eq $key "sized" }}variables.sizedField{{ else }}'{{ $key }}'{{ end }}: {{ include "pipe-scaling.fieldSet" $children }}
{{- end }}})
{{- end }}

{{/* The fields of the size of a container, in a pod. */}}
{{- define "pipe-scaling.sizeFields" -}}
f:spec:
  f:containers:
    sized:
      f:name: {}
      f:resources:
        f:requests: {f:cpu: {}, f:memory: {}}
        f:limits: {f:cpu: {}, f:memory: {}}
{{- end }}

{{/*
The nodes for the size of a container. Takes a list: the keys that lead to the spec of the pods, and for each of them a
list of other keys at the same place that may change.
*/}}
{{- define "pipe-scaling.sizeNodes" -}}
{{- $path := "" }}
{{- range $index, $key := index . 0 }}
- [{{ $path | quote }}, {{ printf "['%s']" (prepend (index $ 1 $index) $key | join "', '") | quote }}]
{{- $path = printf "%s[?'%s']" $path $key }}
{{- end }}
- [{{ $path | quote }}, "['f:containers']"]
- [{{ printf "%s[?'f:containers']" $path | quote }}, "[variables.sizedField]"]
{{- $path = printf "%s[?'f:containers'][?variables.sizedField]" $path }}
- [{{ $path | quote }}, "['f:resources']"]
{{- $path = printf "%s[?'f:resources']" $path }}
- [{{ $path | quote }}, "['.', 'f:requests', 'f:limits']"]
{{- range list "f:requests" "f:limits" }}
- [{{ printf "%s[?'%s']" $path . | quote }}, "['.', 'f:cpu', 'f:memory']"]
{{- end }}
{{- end }}

{{/* Variables for the rule of field managers. */}}
{{- define "pipe-scaling.managerVariables" -}}
- name: managers
  expression: dyn(object.metadata).?managedFields.orValue([])
- name: oldManagers
  expression: >-
    oldObject == null ? [] : dyn(oldObject.metadata).?managedFields.orValue([])
# Records that the API server may have merged: only of updates, and at least ten remain.
- name: merged
  expression: >-
    [variables.oldManagers, variables.managers].all(records,
      records.filter(each, each.?operation.orValue('') == 'Update').size() >= 10) &&
    variables.managers.exists(each, {{ include "pipe-scaling.isMerger" . }})
      ? variables.oldManagers.filter(old, old.?operation.orValue('') == 'Update' &&
          !variables.managers.exists(each, {{ include "pipe-scaling.isSameManager" . }}))
      : []
{{- end }}

{{/*
True if no label and no annotation changes, except those that may change, and those that a webhook writes: some
organizations label every object. The API server records the fields that a request sets before webhooks run, so what no
record names is theirs. It keeps no records for an object after a writer has removed all of them, and can lose that of a
writer with the name ancient-changes when it merges records. Takes a dict: `labels` and `annotations`, each a CEL list of
keys that may change, or none.
*/}}
{{- define "pipe-scaling.tagsUnchanged" -}}
{{- range $index, $map := list "labels" "annotations" }}
{{- $own := get $ $map | default "[]" -}}
{{ if $index }} &&
{{ end }}[dyn(object.metadata).?{{ $map }}.orValue({})].all(new, [oldObject == null ? {} : dyn(oldObject.metadata).?{{ $map }}.orValue({})].all(old,
  new.all(key, key in {{ $own }} || old[?key] == optional.of(new[key]) ||
    (!(dyn(request.options).?fieldManager.orValue('') in ['', 'ancient-changes']) &&
    variables.managers.exists(each, each.?fieldsV1.hasValue()) && variables.managers.all(each,
      !each.?fieldsV1[?'f:metadata'][?'f:{{ $map }}'][?('f:' + key)].hasValue()))) &&
  old.all(key, key in {{ $own }} || key in new)))
{{- end }}
{{- end }}

{{/*
True if the metadata of a new object has nothing that a process does not need. Takes a CEL list of other keys. Some
versions of Kubernetes show a time that is not set yet as null.
*/}}
{{- define "pipe-scaling.isPlainMetadata" -}}
dyn(object.metadata).all(key,
  key in ['name', 'namespace', 'uid', 'creationTimestamp', 'generation', 'managedFields', 'resourceVersion', 'labels', 'annotations'] + {{ . }} ||
  dyn(object.metadata)[key] == null)
{{- end }}
