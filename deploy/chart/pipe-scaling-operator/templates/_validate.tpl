{{/* Rules between two values. Returns one line for each error. */}}
{{- define "pipe-scaling.problems" -}}
{{- if not .Values.image.repository }}
image.repository is empty: set it to the repository of the image, such as registry.example.com/platform/pipe-scaling-operator.
{{- end }}
{{- with .Values.pipes }}
{{- if and (not .namespaces) (not .allNamespaces) }}
pipes.namespaces is empty: list the namespaces where pipes run, or set pipes.allNamespaces to true.
{{- else if and .namespaces .allNamespaces }}
pipes.namespaces and pipes.allNamespaces are mutually exclusive: set only one of them.
{{- end }}
{{- end }}
{{- if eq .Values.records.namespace .Release.Namespace }}
records.namespace is the namespace of the release ({{ .Release.Namespace }}), so the API could read the Secrets of Helm: set another namespace.
{{- end }}
{{- if has .Values.records.namespace .Values.pipes.namespaces }}
records.namespace ({{ .Values.records.namespace }}) is one of pipes.namespaces, so the API could read the Secrets of pipes: set another namespace.
{{- end }}
{{- range $name, $tier := .Values.tiers }}
{{- if gt (int $tier.defaultCpuMillicores) (int $tier.maximumCpuMillicores) }}
tiers.{{ $name }}: defaultCpuMillicores ({{ int $tier.defaultCpuMillicores }}) is greater than maximumCpuMillicores ({{ int $tier.maximumCpuMillicores }}).
{{- end }}
{{- end }}
{{- if and (eq .Values.controller.config.resizeStrategy "InPlaceOrRollout") (not .Values.rbac.inPlaceResize) }}
controller.config.resizeStrategy is InPlaceOrRollout, but rbac.inPlaceResize is false, so the controller has no permission to resize pods: set rbac.inPlaceResize to true, or controller.config.resizeStrategy to Rollout.
{{- end }}
{{- with .Values.api.tls }}
{{- if and .certificate.enabled (not .enabled) }}
api.tls.certificate.enabled is true but api.tls.enabled is false, so the certificate would be unused: set both to the same value.
{{- end }}
{{- if and .certificate.enabled (not .certificate.issuerRef.name) }}
api.tls.certificate.issuerRef.name is empty: set it to the name of the issuer.
{{- end }}
{{- end }}
{{- range $component := list "api" "controller" }}
{{- with (index $.Values $component).serviceAccount }}
{{- if and (not .create) (not .name) }}
{{ $component }}.serviceAccount.name is empty: set it to the name of an existing ServiceAccount, or set {{ $component }}.serviceAccount.create to true.
{{- end }}
{{- end }}
{{- end }}
{{- if eq (include "pipe-scaling.serviceAccountName" (list . "api")) (include "pipe-scaling.serviceAccountName" (list . "controller")) }}
api.serviceAccount.name and controller.serviceAccount.name are the same, so each process would have the permissions of both: set different names.
{{- end }}
{{- with .Values.api.service }}
{{- if and .externalTrafficPolicy (eq .type "ClusterIP") }}
api.service.externalTrafficPolicy requires the type NodePort or LoadBalancer: set api.service.type, or remove it.
{{- end }}
{{- if and (or .loadBalancerClass .loadBalancerSourceRanges) (ne .type "LoadBalancer") }}
api.service.loadBalancerClass and api.service.loadBalancerSourceRanges require the type LoadBalancer: set api.service.type, or remove them.
{{- end }}
{{- end }}
{{- with .Values.api.autoscaling }}
{{- if .enabled }}
{{- if not (dig "requests" "cpu" "" $.Values.api.resources) }}
api.autoscaling.enabled requires api.resources.requests.cpu, because the target is a percentage of it.
{{- end }}
{{- if gt (int .minReplicas) (int .maxReplicas) }}
api.autoscaling: minReplicas ({{ int .minReplicas }}) is greater than maxReplicas ({{ int .maxReplicas }}).
{{- end }}
{{- end }}
{{- end }}
{{- if and .Values.api.ingress.enabled (not .Values.api.ingress.hosts) }}
api.ingress.hosts is empty: add the host name of the API.
{{- end }}
{{- if and .Values.monitoring.serviceMonitor.enabled .Values.monitoring.podMonitor.enabled }}
monitoring.serviceMonitor and monitoring.podMonitor are both enabled, so Prometheus would scrape each pod twice: disable one of them.
{{- end }}
{{- if regexMatch "/v1/traces/*$" .Values.tracing.otlpEndpoint }}
tracing.otlpEndpoint ({{ .Values.tracing.otlpEndpoint }}) ends with /v1/traces, which is appended automatically: remove it.
{{- end }}
{{- if and (or .Values.tracing.headersSecretName .Values.tracing.to) (not .Values.tracing.otlpEndpoint) }}
tracing.otlpEndpoint is empty: set it to the URL of the collector, or remove tracing.headersSecretName and tracing.to.
{{- end }}
{{- if and .Values.api.httpRoute.enabled (not .Values.api.httpRoute.parentRefs) }}
api.httpRoute.parentRefs is empty: add a Gateway.
{{- end }}
{{- end }}

{{- define "pipe-scaling.validate" -}}
{{- with include "pipe-scaling.problems" . | trim }}
{{- fail (printf "\n\nInvalid combination of values:\n\n%s\n" .) }}
{{- end }}
{{- end }}
