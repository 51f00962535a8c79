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
{{- with lookup "v1" "Service" "default" "kubernetes" }}
{{- if and (not (has "IPv4" .spec.ipFamilies)) (has "IPv6" .spec.ipFamilies) (not (contains ":" $.Values.listenAddress)) }}
listenAddress ({{ $.Values.listenAddress }}) is an IPv4 address, but the Services of this cluster have only IPv6 addresses, so no probe would reach the pods. Set listenAddress to "::".
{{- end }}
{{- end }}
{{- include "pipe-scaling.secretProblems" . }}
{{- include "pipe-scaling.addOnProblems" . }}
{{- $others := list }}
{{- range (lookup "v1" "Service" "" "").items }}
{{- if include "pipe-scaling.isOtherApi" (list $ .) }}{{ $others = append $others . }}{{ end }}
{{- end }}
{{- with lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "pipescalings.pipes.clouddb.dev" }}
{{- $annotations := .metadata.annotations | default dict }}
{{- $owner := get $annotations "meta.helm.sh/release-name" }}
{{- $namespace := get $annotations "meta.helm.sh/release-namespace" }}
{{- $isOurs := and (eq $owner $.Release.Name) (eq $namespace $.Release.Namespace) }}
{{- $isOwnerHere := not $owner }}
{{- range $others }}
{{- $isOwnerHere = or $isOwnerHere (and (eq $owner (index .metadata.labels "app.kubernetes.io/instance")) (eq $namespace .metadata.namespace)) }}
{{- end }}
{{- if and $.Values.crds.enabled (not $isOurs) $others $isOwnerHere }}
crds.enabled is true, but {{ ternary (printf "the release %s in the namespace %s" $owner $namespace) "another installation" (ne $owner "") }} manages the CRD of PipeScaling, and only one can. Set crds.enabled to false.
{{- else if and (not $.Values.crds.enabled) $owner (ne (get $annotations "helm.sh/resource-policy") "keep") }}
{{- if $isOurs }}
crds.enabled is false, but this release installed the CRD with crds.keep=false, so Helm would delete it with all PipeScalings. Upgrade with crds.enabled=true and crds.keep=true first.
{{- else }}
crds.enabled is false, and the release {{ $owner }} in the namespace {{ $namespace }} would delete the CRD, with the PipeScalings of this release, when it is uninstalled. Set crds.keep to true in that release.
{{- end }}
{{- end }}
{{- end }}
{{- range $others }}
{{- include "pipe-scaling.overlap" (list $ .) }}
{{- end }}
{{- end }}
{{- end }}

{{/* True for the Service of the API of another release. Takes a list: the root context, and a Service. */}}
{{- define "pipe-scaling.isOtherApi" -}}
{{- $root := index . 0 }}
{{- $metadata := (index . 1).metadata }}
{{- $labels := $metadata.labels | default dict }}
{{- $isApi := and (eq (get $labels "app.kubernetes.io/part-of") "pipe-scaling-operator") (eq (get $labels "app.kubernetes.io/component") "api") }}
{{- $isOurs := and (eq (get $labels "app.kubernetes.io/instance") $root.Release.Name) (eq $metadata.namespace $root.Release.Namespace) }}
{{- if and $isApi (not $isOurs) }}true{{ end }}
{{- end }}

{{/*
Returns one line for each conflict with another release. Takes a list: the root context, and the Service of the API of
the other release.
*/}}
{{- define "pipe-scaling.overlap" -}}
{{- $root := index . 0 }}
{{- $metadata := (index . 1).metadata }}
{{- $other := printf "the release %s in the namespace %s" (get $metadata.labels "app.kubernetes.io/instance") $metadata.namespace }}
{{- $annotations := $metadata.annotations | default dict }}
{{- $theirs := get $annotations "pipes.clouddb.dev/pipe-namespaces" }}
{{- $theirRecords := get $annotations "pipes.clouddb.dev/records-namespace" }}
{{- if eq $root.Values.records.namespace $theirRecords }}
records.namespace: {{ $other }} also stores its records in {{ $root.Values.records.namespace }}, and each release needs a namespace of its own for them. Set records.namespace to another name.
{{- end }}
{{- /* The API of a release can read all Secrets in the namespace of its records. */}}
{{- if has $root.Values.records.namespace (splitList "," $theirs) }}
records.namespace: {{ $other }} manages the pipes in {{ $root.Values.records.namespace }}, so the API of this release could read their Secrets. Set records.namespace to another name.
{{- end }}
{{- if eq $root.Values.records.namespace $metadata.namespace }}
records.namespace: {{ $root.Values.records.namespace }} is the namespace of another release, {{ get $metadata.labels "app.kubernetes.io/instance" }}, so the API of this release could read its Secrets. Set records.namespace to another name.
{{- end }}
{{- if has $theirRecords $root.Values.pipes.namespaces }}
pipes.namespaces: {{ $other }} stores its records in {{ $theirRecords }}, so its API could read the Secrets of the pipes there. Remove {{ $theirRecords }} from the list.
{{- end }}
{{- if eq $theirRecords $root.Release.Namespace }}
The release {{ $root.Release.Name }} is to be in the namespace {{ $theirRecords }}, but {{ $other }} stores its records there, so its API could read the Secrets of this release. Install this release in another namespace.
{{- end }}
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

{{/* Returns one line for each kind of an add-on that the values use and the cluster does not have. */}}
{{- define "pipe-scaling.addOnProblems" -}}
{{- $prometheus := "the Prometheus operator" }}
{{- range list
  (list "api.tls.certificate.enabled" .Values.api.tls.certificate.enabled "cert-manager.io/v1/Certificate" "cert-manager")
  (list "api.httpRoute.enabled" .Values.api.httpRoute.enabled "gateway.networking.k8s.io/v1/HTTPRoute" "the Gateway API")
  (list "monitoring.serviceMonitor.enabled" .Values.monitoring.serviceMonitor.enabled "monitoring.coreos.com/v1/ServiceMonitor" $prometheus)
  (list "monitoring.podMonitor.enabled" .Values.monitoring.podMonitor.enabled "monitoring.coreos.com/v1/PodMonitor" $prometheus)
  (list "monitoring.prometheusRule.enabled" .Values.monitoring.prometheusRule.enabled "monitoring.coreos.com/v1/PrometheusRule" $prometheus) }}
{{- if and (index . 1) (not ($.Capabilities.APIVersions.Has (index . 2))) }}
{{ first . }} is true, but the cluster has no {{ index . 2 | base }}: install {{ last . }} first, or set {{ first . }} to false.
{{- end }}
{{- end }}
{{- end }}

{{/* Returns one line for each Secret that the pods mount or read, but that does not exist or lacks a key. */}}
{{- define "pipe-scaling.secretProblems" -}}
{{- $secrets := list }}
{{- with .Values.api.tls }}
{{- if and .enabled .secretName (not .certificate.enabled) }}
{{- $secrets = append $secrets (dict "value" "api.tls.secretName" "name" .secretName "keys" (list "tls.crt" "tls.key") "create" "tls %s --cert tls.crt --key tls.key" "instead" "for a self-signed certificate") }}
{{- end }}
{{- end }}
{{- with .Values.tracing }}
{{- if and .otlpEndpoint .headersSecretName }}
{{- $secrets = append $secrets (dict "value" "tracing.headersSecretName" "name" .headersSecretName "keys" (list "headers") "create" "generic %s --from-file headers" "instead" "for a collector that requires no headers") }}
{{- end }}
{{- end }}
{{- $extra := "" }}
{{- range include "pipe-scaling.extraObjects" $ | splitList "\n---" }}{{ $extra = fromYaml . | toJson | cat $extra }}{{ end }}
{{- range $secrets }}
{{- $secret := lookup "v1" "Secret" $.Release.Namespace .name }}
{{- $data := $secret.data | default dict }}
{{- $missing := list }}
{{- range .keys }}{{ if not (hasKey $data .) }}{{ $missing = append $missing . }}{{ end }}{{ end }}
{{- /* A Secret, or an object that names the Secret that it creates, such as a Certificate or an ExternalSecret. */}}
{{- $isOurs := regexMatch (printf `"(name|secretName)":"%s"` (regexQuoteMeta .name)) $extra }}
{{- /* Without the checks, the user may lack the permission to read namespaces. */}}
{{- $isInNewNamespace := and $.Values.preflight.enabled (not (lookup "v1" "Namespace" "" $.Release.Namespace)) }}
{{- if and $missing $secret }}
{{ .value }}: the Secret {{ .name }} in the namespace {{ $.Release.Namespace }} lacks {{ join " and " $missing }}, and the pods wait for {{ ternary "it" "them" (eq (len $missing) 1) }}. Add what is missing.
{{- else if and $missing (not $isOurs) }}
{{ .value }}: the Secret {{ .name }} does not exist in the namespace {{ $.Release.Namespace }}, and the pods wait for it. Create it with {{ if $isInNewNamespace }}`kubectl create namespace {{ $.Release.Namespace }}` and {{ end }}`kubectl create secret {{ printf .create .name }} --namespace {{ $.Release.Namespace }}`, or leave {{ .value }} empty {{ .instead }}.
{{- end }}
{{- end }}
{{- end }}

{{- define "pipe-scaling.preflight" -}}
{{- with include "pipe-scaling.preflightProblems" . | trim }}
{{- fail (printf "\n\nThe cluster is not ready for this release:\n\n%s\n\nNothing was changed. To skip these checks, set preflight.enabled to false.\n" .) }}
{{- end }}
{{- end }}
