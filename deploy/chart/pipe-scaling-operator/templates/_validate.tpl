{{/* What two values must be to each other: each line of what this returns is a reason to refuse them. */}}
{{- define "pipe-scaling.problems" -}}
{{- with .Values.pipes }}
{{- if and (not .namespaces) (not .allNamespaces) }}
pipes.namespaces is empty: name the namespaces where pipes run, or set pipes.allNamespaces to true.
{{- else if and .namespaces .allNamespaces }}
pipes.namespaces and pipes.allNamespaces exclude each other: give one of them.
{{- end }}
{{- end }}
{{- if eq .Values.records.namespace .Release.Namespace }}
records.namespace is the release's own ({{ .Release.Namespace }}), and the API's account would read Helm's Secrets: give another.
{{- end }}
{{- if has .Values.records.namespace .Values.pipes.namespaces }}
records.namespace ({{ .Values.records.namespace }}) is one of pipes.namespaces, and the API's account would read the pipes' Secrets: give another.
{{- end }}
{{- range $name, $tier := .Values.tiers }}
{{- if gt (int $tier.defaultCpuMillicores) (int $tier.maximumCpuMillicores) }}
tiers.{{ $name }}: defaultCpuMillicores ({{ int $tier.defaultCpuMillicores }}) is above maximumCpuMillicores ({{ int $tier.maximumCpuMillicores }}).
{{- end }}
{{- end }}
{{- with .Values.api.tls }}
{{- if and .enabled (not .secretName) (not .certificate.enabled) }}
api.tls.enabled needs a certificate: give api.tls.secretName, or set api.tls.certificate.enabled to true (cert-manager). Only where TLS ends in front of the pods set api.tls.enabled to false.
{{- end }}
{{- if and .certificate.enabled (not .enabled) }}
api.tls.certificate.enabled is true, but api.tls.enabled is false: nothing would use the certificate.
{{- end }}
{{- if and .certificate.enabled (not .certificate.issuerRef.name) }}
api.tls.certificate.issuerRef.name is empty: name the issuer.
{{- end }}
{{- end }}
{{- with .Values.api.autoscaling }}
{{- if .enabled }}
{{- if not (dig "requests" "cpu" "" $.Values.api.resources) }}
api.autoscaling.enabled needs api.resources.requests.cpu: its target is a percentage of that.
{{- end }}
{{- if gt (int .minReplicas) (int .maxReplicas) }}
api.autoscaling: minReplicas ({{ int .minReplicas }}) is above maxReplicas ({{ int .maxReplicas }}).
{{- end }}
{{- end }}
{{- end }}
{{- if and .Values.api.ingress.enabled (not .Values.api.ingress.host) }}
api.ingress.host is empty: give the name by which clients reach the API.
{{- end }}
{{- if regexMatch "/v1/traces/*$" .Values.tracing.otlpEndpoint }}
tracing.otlpEndpoint ({{ .Values.tracing.otlpEndpoint }}) ends with /v1/traces, which is added to it: leave that out.
{{- end }}
{{- if and (or .Values.tracing.headersSecretName .Values.tracing.to) (not .Values.tracing.otlpEndpoint) }}
tracing.otlpEndpoint is empty: give the collector's address, or leave the rest of tracing out.
{{- end }}
{{- if and .Values.api.httpRoute.enabled (not .Values.api.httpRoute.parentRefs) }}
api.httpRoute.parentRefs is empty: name the Gateway.
{{- end }}
{{- end }}

{{- define "pipe-scaling.validate" -}}
{{- with include "pipe-scaling.problems" . | trim }}
{{- fail (printf "\n\nThese values do not go together:\n\n%s\n" .) }}
{{- end }}
{{- end }}
