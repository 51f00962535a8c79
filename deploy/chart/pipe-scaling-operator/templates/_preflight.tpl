{{/*
Checks against the cluster. Returns one line for each error. `lookup` finds nothing when Helm renders without a cluster;
the namespace `default` always exists.
*/}}
{{- define "pipe-scaling.preflightProblems" -}}
{{- if and .Values.preflight.enabled (lookup "v1" "Namespace" "" "default") }}
{{- range .Values.pipes.namespaces }}
{{- if not (lookup "v1" "Namespace" "" .) }}
pipes.namespaces: the namespace {{ . }} does not exist. Create it with `kubectl create namespace {{ . }}`, or remove it from the list.
{{- end }}
{{- end }}
{{- with .Values.records }}
{{- if and (not .createNamespace) (not (lookup "v1" "Namespace" "" .namespace)) }}
records.namespace: the namespace {{ .namespace }} does not exist. Create it with `kubectl create namespace {{ .namespace }}`, or set records.createNamespace to true.
{{- end }}
{{- end }}
{{- if not .Values.crds.enabled }}
{{- with lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "pipescalings.pipes.clouddb.dev" }}
{{- $annotations := .metadata.annotations | default dict }}
{{- $owner := get $annotations "meta.helm.sh/release-name" }}
{{- $namespace := get $annotations "meta.helm.sh/release-namespace" }}
{{- $isOurs := and (eq $owner $.Release.Name) (eq $namespace $.Release.Namespace) }}
{{- if and $owner (not $isOurs) (ne (get $annotations "helm.sh/resource-policy") "keep") }}
crds.enabled is false, and the release {{ $owner }} in the namespace {{ $namespace }} would delete the CRD, with the PipeScalings of this release, when it is uninstalled. Set crds.keep to true in that release.
{{- end }}
{{- end }}
{{- end }}
{{- range (lookup "v1" "Service" "" "").items }}
{{- include "pipe-scaling.overlap" (list $ .) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Returns one line for each conflict with another release. Takes a list: the root context, and a Service. */}}
{{- define "pipe-scaling.overlap" -}}
{{- $root := index . 0 }}
{{- $metadata := (index . 1).metadata }}
{{- $labels := $metadata.labels | default dict }}
{{- $release := get $labels "app.kubernetes.io/instance" }}
{{- $isApi := and (eq (get $labels "app.kubernetes.io/part-of") "pipe-scaling-operator") (eq (get $labels "app.kubernetes.io/component") "api") }}
{{- $isOurs := and (eq $release $root.Release.Name) (eq $metadata.namespace $root.Release.Namespace) }}
{{- if and $isApi (not $isOurs) }}
{{- $other := printf "the release %s in the namespace %s" $release $metadata.namespace }}
{{- $theirs := get ($metadata.annotations | default dict) "pipes.clouddb.dev/pipe-namespaces" }}
{{- if $root.Values.pipes.allNamespaces }}
pipes.allNamespaces is true, but {{ $other }} also manages pipes, and only one release may manage a pipe. List the namespaces of this release in pipes.namespaces, or uninstall the other release.
{{- else if eq $theirs "*" }}
pipes.namespaces: {{ $other }} has pipes.allNamespaces, and only one release may manage a pipe. List the namespaces of that release in its pipes.namespaces, or uninstall it.
{{- else }}
{{- range $root.Values.pipes.namespaces }}
{{- if has . (splitList "," $theirs) }}
pipes.namespaces: {{ $other }} also manages the pipes in {{ . }}, and only one release may manage a pipe. Remove {{ . }} from one of the two releases.
{{- end }}
{{- end }}
{{- end }}
{{- if and $root.Values.crds.enabled (not $root.Values.crds.keep) }}
crds.keep is false, so to uninstall this release would delete the PipeScalings of {{ $other }}. Set crds.keep to true.
{{- end }}
{{- end }}
{{- end }}

{{- define "pipe-scaling.preflight" -}}
{{- with include "pipe-scaling.preflightProblems" . | trim }}
{{- fail (printf "\n\nThe cluster is not ready for this release:\n\n%s\n\nNothing was changed. To skip these checks, set preflight.enabled to false.\n" .) }}
{{- end }}
{{- end }}
