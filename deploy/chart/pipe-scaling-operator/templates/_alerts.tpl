{{/*
The alerts. Each has a runbook of the same name in docs/runbooks and a test with promtool. `$of` selects this release:
the ServiceMonitor and the PodMonitor set `job` to the name of the release. Some expressions return no labels, so each alert sets the
labels of the release.
*/}}
{{- define "pipe-scaling.alerts" -}}
{{- $job := .Values.monitoring.prometheusRule.job | default .Release.Name }}
{{- $of := printf `namespace="%s", job="%s"` .Release.Namespace $job }}
{{- $labels := printf "namespace: %q\nrelease: %q" .Release.Namespace .Release.Name }}
{{- $maxCacheAge := .Values.api.config.maxCacheAge }}
{{- /* Anyone can request the others, and take any time to read the documentation. */}}
{{- $needsKey := `route!~"/v1|/openapi.json|/docs.*"` }}
{{- $alerts := .Values.monitoring.prometheusRule.alerts }}
{{- with $alerts.PipeScalingApiDown }}
{{- if .enabled }}
- alert: PipeScalingApiDown
  {{- /* Prometheus also scrapes a pod that is not ready, because its caches were never filled. */}}
  expr: |-
    absent(up{ {{- $of }}, container="api"} == 1)
      or max(min by (pod) (max by (pod, resource) (pipe_scaling_cache_synced{ {{- $of }}}))) == 0
  for: 5m
  labels:
    severity: critical
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      No API process is ready.
    description: For 5 minutes, Prometheus has reached no pod of the API that is ready. Callers can neither resize pipes nor read sizes. Pipes keep running.
    {{- include "pipe-scaling.runbook" (list $ "PipeScalingApiDown") }}
{{- end }}
{{- end }}
{{- with $alerts.PipeScalingNoLeader }}
{{- if .enabled }}
- alert: PipeScalingNoLeader
  expr: absent(leader_election_master_status{ {{- $of }}, name="pipescaling"} == 1)
  for: 5m
  labels:
    severity: critical
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      No controller is the leader.
    description: No controller has held the lease for 5 minutes. The API accepts new sizes, but nothing applies them to the pipes. Pipes keep running.
    {{- include "pipe-scaling.runbook" (list $ "PipeScalingNoLeader") }}
{{- end }}
{{- end }}
{{- with $alerts.PipeScalingApiErrors }}
{{- if .enabled }}
- alert: PipeScalingApiErrors
  {{- /*
  A 503 because the pipes of a service have had no common size yet is no failure of the API. Requests without a key,
  and others that the API rejects, must not hide those that fail, nor may clients that poll hide writes that fail.
  */}}
  {{- $served := printf `%s, %s, code!~"4.."` $of $needsKey }}
  {{- $failed := printf `%s, %s, code=~"5.."` $of $needsKey }}
  {{- $writes := `method!~"GET|HEAD|OPTIONS"` }}
  expr: |-
    (sum(rate(pipe_scaling_http_requests_total{ {{- $failed }}}[5m]))
      - (sum(rate(pipe_scaling_size_not_reached_total{ {{- $of }}}[5m])) or vector(0)))
      / sum(rate(pipe_scaling_http_requests_total{ {{- $served }}}[5m])) > {{ .threshold }} / 100
      and sum(rate(pipe_scaling_http_requests_total{ {{- $failed }}}[5m]))
      - (sum(rate(pipe_scaling_size_not_reached_total{ {{- $of }}}[5m])) or vector(0)) > {{ .minimumPerMinute }} / 60
      or sum(rate(pipe_scaling_http_requests_total{ {{- $failed }}, {{ $writes }}}[5m]))
      / sum(rate(pipe_scaling_http_requests_total{ {{- $served }}, {{ $writes }}}[5m])) > {{ .threshold }} / 100
      and sum(rate(pipe_scaling_http_requests_total{ {{- $failed }}, {{ $writes }}}[5m])) > {{ .minimumPerMinute }} / 60
  for: 10m
  labels:
    severity: critical
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      The API fails {{ "{{ $value | humanizePercentage }}" }} of its requests, or of those that change something.
    description: More than {{ .threshold }}% of the requests, or of those that change something, and more than {{ .minimumPerMinute }} per minute, have failed with a 5xx for 10 minutes. Requests with a 4xx do not count.
    {{- include "pipe-scaling.runbook" (list $ "PipeScalingApiErrors") }}
{{- end }}
{{- end }}
{{- with $alerts.PipeScalingApiSlow }}
{{- if .enabled }}
- alert: PipeScalingApiSlow
  {{- /*
  A duration includes the time that a client takes to send the body of a request that is rejected, and to read a long
  response.
  */}}
  {{- $timed := printf `%s, %s, route!~"none|.*/prometheus"` $of $needsKey }}
  expr: |-
    histogram_quantile(0.95,
      sum by (le) (rate(pipe_scaling_http_request_duration_seconds_bucket{ {{- $timed }}}[5m]))) > {{ .threshold }}
      and sum(rate(pipe_scaling_http_request_duration_seconds_count{ {{- $timed }}}[5m])) > {{ .minimumPerMinute }} / 60
  for: 10m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      One in twenty requests to the API takes more than {{ "{{ $value | humanizeDuration }}" }}.
    description: The 95th percentile of the response time has been above {{ printf "{{ %v | humanizeDuration }}" .threshold }} for 10 minutes. Normally it is a few milliseconds.
    {{- include "pipe-scaling.runbook" (list $ "PipeScalingApiSlow") }}
{{- end }}
{{- end }}
{{- with $alerts.PipeScalingCertificateExpiry }}
{{- if .enabled }}
- alert: PipeScalingCertificateExpiry
  expr: min by (pod) (pipe_scaling_certificate_expiration_timestamp_seconds{ {{- $of }}}) - time() < {{ .threshold }} * 86400
  for: 15m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "The TLS certificate of {{ $labels.pod }} expires in {{ $value | humanizeDuration }}." }}
    description: Nothing has renewed the certificate, although it expires within {{ .threshold }} days. After that, callers reject it and cannot use the API.
    {{- include "pipe-scaling.runbook" (list $ "PipeScalingCertificateExpiry") }}
{{- end }}
{{- end }}
{{- with $alerts.PipeScalingApiCacheStale }}
{{- if .enabled }}
- alert: PipeScalingApiCacheStale
  expr: max by (resource, pod) (pipe_scaling_cache_age_seconds{ {{- $of }}}) > {{ .threshold }}
  for: 1m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "The {{ $labels.resource }} cache of {{ $labels.pod }} has not been confirmed for {{ $value | humanizeDuration }}." }}
    description: The API server normally confirms each cache once a minute. If the age reaches {{ $maxCacheAge }}, the API rejects reads too.
    {{- include "pipe-scaling.runbook" (list $ "PipeScalingApiCacheStale") }}
{{- end }}
{{- end }}
{{- with $alerts.PipeScalingWatchStale }}
{{- if .enabled }}
- alert: PipeScalingWatchStale
  expr: max by (resource, pod) (pipe_scaling_watch_age_seconds{ {{- $of }}}) > {{ .threshold }}
  for: 1m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "The {{ $labels.resource }} watch of {{ $labels.pod }} has been silent for {{ $value | humanizeDuration }}." }}
    description: The API server normally confirms each watch once a minute. Until it does, the controller does not see changes of {{ "{{ $labels.resource }}" }}, and the pod is not ready.
    {{- include "pipe-scaling.runbook" (list $ "PipeScalingWatchStale") }}
{{- end }}
{{- end }}
{{- with $alerts.PipeScalingNamespacesLeftOut }}
{{- if .enabled }}
- alert: PipeScalingNamespacesLeftOut
  expr: max(pipe_scaling_unreadable_namespaces{ {{- $of }}}) > {{ .threshold }}
  for: 5m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "The controller may not read {{ $value }} namespaces of pipes." }}
    description: It left them out when it started, so sizes that are requested there are not applied. The pipes keep running. The log of the controller names each namespace.
    {{- include "pipe-scaling.runbook" (list $ "PipeScalingNamespacesLeftOut") }}
{{- end }}
{{- end }}
{{- with $alerts.PipeScalingClusterErrors }}
{{- if .enabled }}
- alert: PipeScalingClusterErrors
  expr: |-
    sum by (pod) (rate(rest_client_requests_total{ {{- $of }}, code=~"5..|429|<error>"}[5m]))
      / sum by (pod) (rate(rest_client_requests_total{ {{- $of }}}[5m])) > {{ .threshold }} / 100
  for: 10m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "{{ $value | humanizePercentage }} of the API server calls of {{ $labels.pod }} fail." }}
    description: More than {{ .threshold }}% of its calls to the API server have failed or received no response for 10 minutes.
    {{- include "pipe-scaling.runbook" (list $ "PipeScalingClusterErrors") }}
{{- end }}
{{- end }}
{{- with $alerts.PipeScalingStalled }}
{{- if .enabled }}
- alert: PipeScalingStalled
  expr: max(pipe_scaling_services{ {{- $of }}, condition="Stalled"}) > {{ .threshold }}
  for: 15m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "{{ $value }} services are stalled." }}
    description: Their PipeScalings have been Stalled for 15 minutes. The message of each gives the cause and the remedy.
    {{- include "pipe-scaling.runbook" (list $ "PipeScalingStalled") }}
{{- end }}
{{- end }}
{{- with $alerts.PipeScalingPropagationSlow }}
{{- if .enabled }}
- alert: PipeScalingPropagationSlow
  expr: max(pipe_scaling_oldest_propagation_seconds{ {{- $of }}}) > {{ .threshold }}
  for: 5m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      A rescale has been in progress for {{ "{{ $value | humanizeDuration }}" }}.
    description: The service is neither Ready nor Stalled.
    {{- include "pipe-scaling.runbook" (list $ "PipeScalingPropagationSlow") }}
{{- end }}
{{- end }}
{{- /* Clusters and pipes that cannot be resized in place by their configuration are no surprise. */}}
{{- $unexpected := printf `reason!~"%s"` (include "pipe-scaling.expectedFallbacks" $) }}
{{- with $alerts.PipeScalingInPlaceFallbacks }}
{{- if .enabled }}
- alert: PipeScalingInPlaceFallbacks
  expr: |-
    sum(increase(pipe_scaling_in_place_fallbacks_total{ {{- $of }}, {{ $unexpected }}}[1h])) > {{ .threshold }}
      and sum(increase(pipe_scaling_in_place_fallbacks_total{ {{- $of }}, {{ $unexpected }}}[1h]))
        > sum(increase(pipe_scaling_in_place_commits_total{ {{- $of }}}[1h]))
  for: 5m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ `{{ $value | printf "%.0f" }}` }} pipes could not be resized in place within an hour.
    description: More than half of the pipes that should have been resized in place restarted instead. They get their size by a rollout.
    {{- include "pipe-scaling.runbook" (list $ "PipeScalingInPlaceFallbacks") }}
{{- end }}
{{- end }}
{{- with $alerts.PipeScalingReconcileErrors }}
{{- if .enabled }}
- alert: PipeScalingReconcileErrors
  expr: |-
    sum(rate(controller_runtime_reconcile_errors_total{ {{- $of }}, controller="pipescaling"}[10m]))
      / sum(rate(controller_runtime_reconcile_total{ {{- $of }}, controller="pipescaling"}[10m])) > {{ .threshold }} / 100
  for: 15m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "{{ $value | humanizePercentage }}" }} of the controller's reconciliations fail.
    description: More than {{ .threshold }}% of the reconciliations have failed for 15 minutes. The controller retries them.
    {{- include "pipe-scaling.runbook" (list $ "PipeScalingReconcileErrors") }}
{{- end }}
{{- end }}
{{- with $alerts.PipeScalingQueueSlow }}
{{- if .enabled }}
- alert: PipeScalingQueueSlow
  expr: |-
    histogram_quantile(0.9,
      sum by (le) (rate(workqueue_queue_duration_seconds_bucket{ {{- $of }}, name="pipescaling"}[10m]))) > {{ .threshold }}
  for: 15m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      Services wait {{ "{{ $value | humanizeDuration }}" }} in the work queue.
    description: One in ten services has waited in the work queue for more than {{ printf "{{ %v | humanizeDuration }}" .threshold }}, for 15 minutes.
    {{- include "pipe-scaling.runbook" (list $ "PipeScalingQueueSlow") }}
{{- end }}
{{- end }}
{{- with $alerts.PipeScalingMalformedRecords }}
{{- if .enabled }}
- alert: PipeScalingMalformedRecords
  expr: max by (resource) (pipe_scaling_malformed_records{ {{- $of }}}) > {{ .threshold }}
  for: 5m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "{{ $value }} records in {{ $labels.resource }} are malformed." }}
    description: The API rejects malformed keys and requests that depend on a malformed record. The affected pipes keep their size. The log of the API names each record.
    {{- include "pipe-scaling.runbook" (list $ "PipeScalingMalformedRecords") }}
{{- end }}
{{- end }}
{{- with $alerts.PipeScalingFailedLogins }}
{{- if .enabled }}
- alert: PipeScalingFailedLogins
  expr: sum(rate(pipe_scaling_authentications_total{ {{- $of }}, result="refused"}[10m])) > {{ .threshold }}
  for: 10m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "{{ $value | humanize }} requests per second have invalid credentials." }}
    description: The rate has been above {{ .threshold }} per second for 10 minutes. Either someone is guessing keys, or a client uses a key that is disabled, expired or deleted.
    {{- include "pipe-scaling.runbook" (list $ "PipeScalingFailedLogins") }}
{{- end }}
{{- end }}
{{- end }}

{{- define "pipe-scaling.runbook" -}}
{{- with (index . 0).Values.monitoring.prometheusRule.runbookUrl }}
    runbook_url: {{ . | trimSuffix "/" }}/{{ index $ 1 }}.md
{{- end }}
{{- end }}
