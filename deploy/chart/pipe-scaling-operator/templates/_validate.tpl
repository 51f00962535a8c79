{{/* Rules between two values. Returns one line for each error. */}}
{{- define "pipe-scaling.problems" -}}
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
{{- if and .enabled (not .secretName) (not .certificate.enabled) }}
api.tls.enabled requires a certificate: set api.tls.secretName, or set api.tls.certificate.enabled to true (cert-manager). Set api.tls.enabled to false only if TLS is terminated in front of the pods.
{{- end }}
{{- if and .certificate.enabled (not .enabled) }}
api.tls.certificate.enabled is true but api.tls.enabled is false, so the certificate would be unused: set both to the same value.
{{- end }}
{{- if and .certificate.enabled (not .certificate.issuerRef.name) }}
api.tls.certificate.issuerRef.name is empty: set it to the name of the issuer.
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
{{- if and .Values.api.ingress.enabled (not .Values.api.ingress.host) }}
api.ingress.host is empty: set it to the host name of the API.
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
