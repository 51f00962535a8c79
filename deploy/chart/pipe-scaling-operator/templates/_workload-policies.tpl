{{/*
Parts of the policies of Deployments and StatefulSets. RBAC cannot restrict fields, so these policies allow the controller
to change only the CPU and memory of one container of a pipe, and our own annotation, and what each kind needs so that its
template can follow its pods. Everything else is compared with the old object key by key, so keys that later versions of
Kubernetes add are covered too.
*/}}

{{/* Takes a dict: `own`, the tree of the fields that our own record of field managers may name. */}}
{{- define "pipe-scaling.workloadVariables" -}}
- name: annotations
  expression: object.metadata.?annotations.orValue({})
- name: oldAnnotations
  expression: oldObject.metadata.?annotations.orValue({})
- name: ownAnnotations
  expression: >-
    ['pipes.clouddb.dev/last-rollout']
# The end of the last good size is the next key: `src/controller/observe/last-rollout.ts`.
{{- range tuple (list "lastGood" "annotations") (list "oldLastGood" "oldAnnotations") }}
- name: {{ index . 0 }}
  expression: >-
    variables.{{ index . 1 }}[?'pipes.clouddb.dev/last-rollout'].orValue('').split('"lastGoodSize":"')
      .map(each, each.split('","startedAtMs":')[0])
{{- end }}
{{- include "pipe-scaling.containerVariables" (list "spec.template.spec" "metadata") | nindent 0 }}
{{- include "pipe-scaling.managerVariables" . | nindent 0 }}
- name: ownFields
  expression: >-
    {{- include "pipe-scaling.fieldSet" .own | nindent 4 }}
# An annotation that is copied to another object names the first one.
- name: annotationStart
  expression: >-
    '{"version":1,"deploymentUid":"' + string(oldObject.metadata.uid) + '",'
- name: isAnnotated
  expression: >-
    variables.oldAnnotations[?'pipes.clouddb.dev/last-rollout'].orValue('').startsWith(variables.annotationStart)
# The API server keeps no records after a writer has removed all of them. Then only the annotation shows it.
- name: isRecorded
  expression: >-
    variables.oldManagers.exists(each, each.?fieldsV1.hasValue())
- name: isWritten
  expression: >-
    (variables.ownAnnotations.exists(key, key in variables.annotations &&
      variables.oldAnnotations[?key] != optional.of(variables.annotations[key]))) ||
    variables.amounts.exists(each, variables.oldAmounts.exists(old,
      [0, 1, 2, 3].exists(index, each[index] != '' && each[index] != old[index])))
{{- end }}

{{/*
Takes a dict: `root`, the root context; `kind`; and `specKeys`, a CEL list of the keys of the spec that may change, whose
contents the policy of the kind restricts.
*/}}
{{- define "pipe-scaling.workloadValidations" -}}
- message: the controller may change only its own annotations in the metadata of a {{ .kind }}
  expression: >-
    {{- include "pipe-scaling.unchanged" (list "metadata" "['labels', 'annotations', 'generation', 'managedFields', 'resourceVersion']") | nindent 4 }} &&
    {{- include "pipe-scaling.tagsUnchanged" (dict "annotations" "variables.ownAnnotations") | nindent 4 }}
- message: the controller may change only the size of a container in the spec of a {{ .kind }}
  expression: >-
    {{- include "pipe-scaling.unchanged" (list "spec" .specKeys) | nindent 4 }} &&
    object.spec.template.metadata == oldObject.spec.template.metadata &&
    {{- include "pipe-scaling.unchanged" (list "spec.template.spec" "['containers']") | nindent 4 }}
{{- include "pipe-scaling.containerValidations" . | nindent 0 }}
- message: the controller may set only the sizes of tiers, and the last good size that the annotation records
  expression: >-
    variables.amounts == variables.oldAmounts ||
    [{{ range $index, $cores := untilStep 1 (include "pipe-scaling.largestTierCores" .root | int | add1 | int) 1 }}{{ if $index }}, {{ end }}{{ $cores }}{{ end }}].exists(cores,
      variables.amounts.all(each, [each[0], each[1], each[2]].all(amount, amount != '') &&
        quantity(each[0]).compareTo(quantity(string(cores))) == 0 &&
        [each[1], each[2]].all(memory, quantity(memory).compareTo(quantity(string(cores * 4) + 'Gi')) == 0))) ||
    (size(variables.oldLastGood) == 2 &&
      ({{ include "pipe-scaling.recordedTexts" "amounts" | nindent 8 | trim }}
        .exists(texts, variables.oldLastGood[1] in texts) ||
      (variables.oldLastGood[1].matches('^[0-9]{1,9}m/[0-9]{1,9}Gi$') &&
        variables.amounts.all(each, [each[0], each[1], each[2]].all(amount, amount != '') &&
          quantity(each[0]).compareTo(quantity(variables.oldLastGood[1].split('/')[0])) == 0 &&
          [each[1], each[2]].all(memory,
            quantity(memory).compareTo(quantity(variables.oldLastGood[1].split('/')[1])) == 0)))))
# Otherwise the controller could record any size, and then return to it.
- message: the controller may record only a valid size or the current resources as the last good size
  expression: >-
    size(variables.lastGood) == 1 ||
    (size(variables.lastGood) == 2 &&
      (variables.lastGood == variables.oldLastGood ||
      (size(variables.oldLastGood) == 2 && variables.lastGood[1] == variables.oldLastGood[1]) ||
      variables.lastGood[1] in [{{ range $index, $cores := untilStep 1 (include "pipe-scaling.maximumCores" .root | int | add1 | int) 1 }}{{ if $index }}, {{ end }}'{{ mul $cores 1000 }}m/{{ mul $cores 4 }}Gi'{{ end }}] ||
      {{ include "pipe-scaling.recordedTexts" "oldAmounts" | nindent 8 | trim }}
        .exists(texts, variables.lastGood[1] in texts) ||
      (variables.lastGood[1].matches('^[0-9]{1,9}m/[0-9]{1,9}Gi$') && size(variables.oldAmounts) == 1 &&
        variables.oldAmounts.all(each, each[2] != '' && (each[0] != '' || each[3] != '') &&
          quantity(each[0] != '' ? each[0] : each[3])
            .compareTo(quantity(variables.lastGood[1].split('/')[0])) == 0 &&
          [each[1] != '' ? each[1] : each[2], each[2]].all(memory,
            quantity(memory).compareTo(quantity(variables.lastGood[1].split('/')[1])) == 0)))))
- message: the controller may write an annotation of at most 8192 characters
  expression: >-
    size(variables.annotations[?'pipes.clouddb.dev/last-rollout'].orValue('')) <= 8192 ||
    variables.annotations == variables.oldAnnotations
# The rules above find texts. The controller parses JSON, which has other texts for the same keys: a brace or a comma comes
# before a key, but never before the end of a string.
- message: the controller may write the keys of its annotation only as it writes them itself
  expression: >-
    variables.annotations == variables.oldAnnotations ||
    [variables.annotations[?'pipes.clouddb.dev/last-rollout'].orValue('')].all(text,
      !text.matches(r'(^|[^\\])(\\\\)*\\u00[2-7]') &&
      !text.matches(r'[{,]\s*"lastGoodSize"([^:]|:[^"])') && !text.matches(r'[{,]\s*"isCommitting"([^:]|:[^tf])'))
{{- end }}

{{/* True if a request or the memory limit changes, and not only its notation or the CPU limit. */}}
{{- define "pipe-scaling.sizeChanges" -}}
variables.amounts.exists(each, variables.oldAmounts.exists(old, [0, 1, 2].exists(index,
  quantity(each[index] == '' ? '0' : each[index])
    .compareTo(quantity(old[index] == '' ? '0' : old[index])) != 0)))
{{- end }}

{{/* CEL of the names of the StatefulSets that own a pod: one at most. */}}
{{- define "pipe-scaling.owningStatefulSets" -}}
dyn(oldObject.metadata).?ownerReferences.orValue([])
  .filter(each, each.apiVersion == 'apps/v1' && each.kind == 'StatefulSet' && each.?controller.orValue(false))
  .map(each, each.name)
{{- end }}
