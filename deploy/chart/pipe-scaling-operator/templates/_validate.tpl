{{/* Rules between two values. Returns one line for each error. */}}
{{- define "pipe-scaling.problems" -}}
{{- include "pipe-scaling.nameProblems" . }}
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
{{- if gt (int $tier.defaultCpuMillicores) (mul (int $.Values.sizes.maximumCores) 1000 | int) }}
tiers.{{ $name }}: defaultCpuMillicores ({{ int $tier.defaultCpuMillicores }}) is greater than sizes.maximumCores ({{ int $.Values.sizes.maximumCores }}) allows: lower it, or raise sizes.maximumCores.
{{- end }}
{{- if gt (int $tier.defaultCpuMillicores) (int $tier.maximumCpuMillicores) }}
tiers.{{ $name }}: defaultCpuMillicores ({{ int $tier.defaultCpuMillicores }}) is greater than maximumCpuMillicores ({{ int $tier.maximumCpuMillicores }}).
{{- end }}
{{- end }}
{{- if and (ne .Values.controller.config.resizeStrategy "Rollout") (not .Values.rbac.inPlaceResize) }}
controller.config.resizeStrategy is {{ .Values.controller.config.resizeStrategy }}, but rbac.inPlaceResize is false, so the controller has no permission to resize pods: set rbac.inPlaceResize to true, or controller.config.resizeStrategy to Rollout.
{{- end }}
{{- with .Values.api.tls }}
{{- if and .certificate.enabled (not .enabled) }}
api.tls.certificate.enabled is true but api.tls.enabled is false, so the certificate would be unused: set both to the same value.
{{- end }}
{{- if and .certificate.enabled (not .certificate.issuerRef.name) }}
api.tls.certificate.issuerRef.name is empty: set it to the name of the issuer.
{{- end }}
{{- if and .enabled (not .certificate.enabled) (eq .secretName (include "pipe-scaling.selfSignedName" $)) }}
api.tls.secretName is {{ .secretName }}, the name of the Secret that the chart creates for a self-signed certificate, and Helm deletes one that the chart has created: store your certificate in a Secret of another name, and set api.tls.secretName to that name.
{{- end }}
{{- with .certificate }}
{{- if and .enabled .renewBefore .duration (ge (include "pipe-scaling.milliseconds" .renewBefore | int64) (include "pipe-scaling.milliseconds" .duration | int64)) }}
api.tls.certificate.renewBefore ({{ .renewBefore }}) must be less than api.tls.certificate.duration ({{ .duration }}).
{{- end }}
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
{{- include "pipe-scaling.environmentProblems" . }}
{{- include "pipe-scaling.podProblems" (list "api" .Values.api (ternary .Values.api.autoscaling.minReplicas .Values.api.replicaCount .Values.api.autoscaling.enabled)) }}
{{- include "pipe-scaling.podProblems" (list "controller" .Values.controller .Values.controller.replicaCount) }}
{{- with .Values.api.service }}
{{- if and .externalTrafficPolicy (eq .type "ClusterIP") }}
api.service.externalTrafficPolicy requires the type NodePort or LoadBalancer: set api.service.type, or remove it.
{{- end }}
{{- if and (or .loadBalancerClass .loadBalancerSourceRanges) (ne .type "LoadBalancer") }}
api.service.loadBalancerClass and api.service.loadBalancerSourceRanges require the type LoadBalancer: set api.service.type, or remove them.
{{- end }}
{{- if and (gt (len .ipFamilies) 1) (eq .ipFamilyPolicy "SingleStack") }}
api.service.ipFamilies lists two IP families, but api.service.ipFamilyPolicy is SingleStack: remove one of them, or set the policy to PreferDualStack or RequireDualStack.
{{- end }}
{{- if and (or (has "IPv6" .ipFamilies) (eq .ipFamilyPolicy "RequireDualStack")) (not (contains ":" $.Values.listenAddress)) }}
api.service has an IPv6 address, but listenAddress ({{ $.Values.listenAddress }}) is an IPv4 address, so connections over IPv6 would fail: set listenAddress to "::", which accepts both.
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
{{- include "pipe-scaling.monitoringProblems" . }}
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

{{/* Helm and the schema allow names and labels that Kubernetes does not, after it has created a part of the objects. */}}
{{- define "pipe-scaling.nameProblems" -}}
{{- if not (regexMatch "^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$" (include "pipe-scaling.chartName" .)) }}
nameOverride is {{ .Values.nameOverride | quote }}, but it becomes a label of all objects: it must have only letters, digits, hyphens, dots and underscores, and letters or digits at both ends.
{{- end }}
{{- range $path, $labels := dict "commonLabels" .Values.commonLabels "api.podLabels" .Values.api.podLabels "controller.podLabels" .Values.controller.podLabels }}
{{- range $key, $value := $labels }}
{{- if not (regexMatch "^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$" $value) }}
{{ $path }}.{{ $key }} is {{ $value | quote }}, but the value of a label has at most 63 letters, digits, hyphens, dots and underscores, and letters or digits at both ends.
{{- end }}
{{- end }}
{{- end }}
{{- $name := include "pipe-scaling.name" . }}
{{- if not (regexMatch "^[a-z][a-z0-9-]*$" $name) }}
The names of all objects would begin with {{ $name | quote }}, from {{ ternary "fullnameOverride" "the release name and nameOverride" (ne .Values.fullnameOverride "") }}, but the name of a Service has only lowercase letters, digits and hyphens, and begins with a letter: set fullnameOverride to such a name.
{{- end }}
{{- end }}

{{/* Rules of the pods of a process. Takes a list: its name, its values, and the least number of its pods. */}}
{{- define "pipe-scaling.podProblems" -}}
{{- $component := index . 0 }}
{{- $replicas := index . 2 | int }}
{{- with index . 1 }}
{{- range .extraContainers }}
{{- if eq (get . "name") $component }}
{{ $component }}.extraContainers has a container named {{ $component }}, which is the name of the process: use another name.
{{- end }}
{{- end }}
{{- if and (eq .dnsPolicy "None") (not (get .dnsConfig "nameservers")) }}
{{ $component }}.dnsPolicy is None, but {{ $component }}.dnsConfig has no nameservers: add them, or use another policy.
{{- end }}
{{- with .podDisruptionBudget }}
{{- $unset := list "" nil }}
{{- if and .enabled (not (has .minAvailable $unset)) (not (has .maxUnavailable $unset)) }}
{{ $component }}.podDisruptionBudget: minAvailable and maxUnavailable are mutually exclusive: set only one of them.
{{- end }}
{{- /* A process without pods is stopped on purpose, and an eviction of nothing cannot be blocked. */}}
{{- if and .enabled $replicas }}
{{- $least := int .minAvailable }}
{{- if kindIs "string" .minAvailable }}
{{- /* Kubernetes rounds a percentage of the pods up. */}}
{{- $least = div (add (mul (trimSuffix "%" .minAvailable | atoi) $replicas) 99) 100 | int }}
{{- end }}
{{- if ge $least $replicas }}
{{ $component }}.podDisruptionBudget.minAvailable ({{ .minAvailable }}) allows no eviction of the {{ $replicas }} pods, so that no node with one of them can be drained: set it to a lower value, or run more pods.
{{- end }}
{{- if has (toString .maxUnavailable) (list "0" "0%" "00%") }}
{{ $component }}.podDisruptionBudget.maxUnavailable ({{ .maxUnavailable }}) allows no eviction, so that no node with one of the pods can be drained: set it to a higher value.
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Kubernetes rejects a server-side apply of a container that has a variable twice. */}}
{{- define "pipe-scaling.environmentProblems" -}}
{{- range $component := list "api" "controller" }}
{{- $values := index $.Values $component }}
{{- $settings := dict
  "PIPE_SCALING_NAMESPACE" "records.namespace"
  "PIPE_SCALING_PIPE_NAMESPACES" "pipes.namespaces"
  "PIPE_SCALING_TIERS_FILE" "tiers"
  "PIPE_SCALING_MAXIMUM_CORES" "sizes.maximumCores"
  "PIPE_SCALING_HOST" "listenAddress"
  "PIPE_SCALING_METRICS_AUTHENTICATION" "monitoring.authentication.enabled"
  "PIPE_SCALING_OTLP_ENDPOINT" "tracing.otlpEndpoint"
  "OTEL_EXPORTER_OTLP_HEADERS" "tracing.headersSecretName"
  "PIPE_SCALING_TLS_CERT" "api.tls"
  "PIPE_SCALING_TLS_KEY" "api.tls"
  "PIPE_SCALING_PLAIN_HTTP" "api.tls.enabled" }}
{{- range $key, $_ := $values.config }}
{{- $_ := set $settings (snakecase $key | upper | printf "PIPE_SCALING_%s") (printf "%s.config.%s" $component $key) }}
{{- end }}
{{- $names := list }}
{{- range include "pipe-scaling.environment" (list $ $component) | fromYamlArray }}{{ $names = append $names .name }}{{ end }}
{{- range $values.extraEnv }}
{{- $name := get . "name" }}
{{- if has $name $names }}
{{ $component }}.extraEnv contains {{ $name }}, which the chart sets: {{ with get $settings $name }}set {{ . }} instead{{ else }}remove it{{ end }}.
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "pipe-scaling.monitoringProblems" -}}
{{- $policy := .Values.networkPolicy }}
{{- with .Values.monitoring }}
{{- $isMonitored := or .serviceMonitor.enabled .podMonitor.enabled }}
{{- if and .serviceMonitor.enabled .podMonitor.enabled }}
monitoring.serviceMonitor and monitoring.podMonitor are both enabled, so Prometheus would scrape each pod twice: disable one of them.
{{- end }}
{{- range $key, $monitor := dict "serviceMonitor" .serviceMonitor "podMonitor" .podMonitor }}
{{- if and $monitor.enabled $monitor.scrapeTimeout $monitor.interval (gt (include "pipe-scaling.milliseconds" $monitor.scrapeTimeout | int64) (include "pipe-scaling.milliseconds" $monitor.interval | int64)) }}
monitoring.{{ $key }}.scrapeTimeout ({{ $monitor.scrapeTimeout }}) is longer than monitoring.{{ $key }}.interval ({{ $monitor.interval }}).
{{- end }}
{{- end }}
{{- if and .prometheusRule.enabled (not $isMonitored) (not .prometheusRule.job) }}
monitoring.prometheusRule is enabled, but nothing scrapes the metrics, so that some of its alerts would always fire: enable monitoring.serviceMonitor or monitoring.podMonitor. If a scrape configuration of your own collects the metrics, set monitoring.prometheusRule.job to their label `job`.
{{- end }}
{{- if and .prometheusRule.job $isMonitored }}
monitoring.prometheusRule.job is for metrics that a scrape configuration of your own collects, but {{ ternary "monitoring.serviceMonitor" "monitoring.podMonitor" .serviceMonitor.enabled }}, which sets the label `job` itself, is enabled: set only one of them.
{{- end }}
{{- with .prometheusRule.alerts.PipeScalingCertificateExpiry }}
{{- $certificate := $.Values.api.tls.certificate }}
{{- if and $.Values.monitoring.prometheusRule.enabled .enabled $certificate.enabled $certificate.renewBefore (ge (mulf .threshold 86400000) (include "pipe-scaling.milliseconds" $certificate.renewBefore | float64)) }}
monitoring.prometheusRule.alerts.PipeScalingCertificateExpiry.threshold ({{ .threshold }} days) is not less than api.tls.certificate.renewBefore ({{ $certificate.renewBefore }}), so that the alert would fire before each renewal: lower the threshold, or raise api.tls.certificate.renewBefore.
{{- end }}
{{- end }}
{{- with .prometheusRule.alerts.PipeScalingApiCacheStale }}
{{- $maxCacheAge := $.Values.api.config.maxCacheAge }}
{{- if and $.Values.monitoring.prometheusRule.enabled .enabled $maxCacheAge (ge (mulf .threshold 1000) (include "pipe-scaling.milliseconds" $maxCacheAge | float64)) }}
monitoring.prometheusRule.alerts.PipeScalingApiCacheStale.threshold ({{ .threshold }} s) is not less than api.config.maxCacheAge ({{ $maxCacheAge }}), so that the API would reject reads before the alert fires: lower the threshold, or raise api.config.maxCacheAge.
{{- end }}
{{- end }}
{{- if and $policy.enabled (not $policy.metricsFrom) (or $isMonitored .prometheusRule.enabled) }}
networkPolicy.metricsFrom is empty, so that Prometheus cannot read the metrics: add its pods, or disable monitoring.
{{- end }}
{{- end }}
{{- end }}

{{/* Values that files/required-values.yaml lists. Returns one line for each that is blank, itself or with its section. */}}
{{- define "pipe-scaling.blankProblems" -}}
{{- range $path := .Files.Get "files/required-values.yaml" | fromYamlArray }}
{{- $value := $.Values }}
{{- range splitList "." $path }}
{{- if kindIs "map" $value }}{{ $value = index $value . }}{{ end }}
{{- end }}
{{- if kindIs "invalid" $value }}
{{ $path }} is blank, and Helm removes the default of a blank value: set it, or remove it from your values. If you use --reuse-values, use --reset-then-reuse-values instead.
{{- end }}
{{- end }}
{{- end }}

{{- define "pipe-scaling.refuseBlank" -}}
{{- with include "pipe-scaling.blankProblems" . | trim }}
{{- fail (printf "\n\nInvalid values:\n\n%s\n" .) }}
{{- end }}
{{- end }}

{{- define "pipe-scaling.validate" -}}
{{- $ofTexts := printf "%s%s" (include "pipe-scaling.imageProblems" .) (include "pipe-scaling.textProblems" .) }}
{{- with printf "%s%s" $ofTexts (include "pipe-scaling.problems" .) | trim }}
{{- fail (printf "\n\nInvalid values:\n\n%s\n" .) }}
{{- end }}
{{- end }}
