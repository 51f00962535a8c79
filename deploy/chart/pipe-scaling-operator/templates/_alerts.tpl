{{/*
The alerts. Each has a runbook of the same name in docs/runbooks and a test with promtool. `$of` selects this release:
the ServiceMonitor sets `job` to the name of the release. Some expressions return no labels, so each alert sets the
labels of the release.
*/}}
{{- define "pipe-scaling.alerts" -}}
{{- $of := printf `namespace="%s", job="%s"` .Release.Namespace .Release.Name }}
{{- $labels := printf "namespace: %q\nrelease: %q" .Release.Namespace .Release.Name }}
{{- $maxCacheAge := .Values.api.config.maxCacheAge -}}
- alert: PipeScalingApiDown
  expr: absent(up{ {{- $of }}, container="api"} == 1)
  for: 5m
  labels:
    severity: critical
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      No API process is up.
    description: Prometheus has not reached any pod of the API for 5 minutes. Callers can neither resize pipes nor read sizes. Pipes keep running.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingApiDown") }}
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
    {{- include "pipe-scaling.runbook" (list . "PipeScalingNoLeader") }}
- alert: PipeScalingApiErrors
  expr: |-
    sum(rate(pipe_scaling_http_requests_total{ {{- $of }}, code=~"5.."}[5m]))
      / sum(rate(pipe_scaling_http_requests_total{ {{- $of }}}[5m])) > 0.05
  for: 10m
  labels:
    severity: critical
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      The API fails {{ "{{ $value | humanizePercentage }}" }} of all requests.
    description: More than 5 % of the requests have failed with a 5xx for 10 minutes.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingApiErrors") }}
- alert: PipeScalingApiCacheStale
  expr: max by (resource, pod) (pipe_scaling_cache_age_seconds{ {{- $of }}}) > 150
  for: 1m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "The {{ $labels.resource }} cache of {{ $labels.pod }} has not been confirmed for {{ $value | humanizeDuration }}." }}
    description: The API server normally confirms each cache once a minute. If the age reaches {{ $maxCacheAge }}, the API rejects reads too.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingApiCacheStale") }}
- alert: PipeScalingWatchStale
  expr: max by (resource, pod) (pipe_scaling_watch_age_seconds{ {{- $of }}}) > 300
  for: 1m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "The {{ $labels.resource }} watch of {{ $labels.pod }} has been silent for {{ $value | humanizeDuration }}." }}
    description: The API server normally confirms each watch once a minute. Until it does, the controller does not see changes of {{ "{{ $labels.resource }}" }}, and the pod is not ready.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingWatchStale") }}
- alert: PipeScalingClusterErrors
  expr: |-
    sum by (pod) (rate(rest_client_requests_total{ {{- $of }}, code=~"5..|429|<error>"}[5m]))
      / sum by (pod) (rate(rest_client_requests_total{ {{- $of }}}[5m])) > 0.1
  for: 10m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "{{ $value | humanizePercentage }} of the API server calls of {{ $labels.pod }} fail." }}
    description: More than 10 % of its calls to the API server have failed or received no response for 10 minutes.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingClusterErrors") }}
- alert: PipeScalingStalled
  expr: max(pipe_scaling_services{ {{- $of }}, condition="Stalled"}) > 0
  for: 15m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "{{ $value }} services are stalled." }}
    description: Their PipeScalings have been Stalled for 15 minutes. The message of each gives the cause and the remedy.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingStalled") }}
- alert: PipeScalingPropagationSlow
  expr: max(pipe_scaling_oldest_propagation_seconds{ {{- $of }}}) > 3600
  for: 5m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      A rescale has been in progress for {{ "{{ $value | humanizeDuration }}" }}.
    description: It has neither completed nor failed.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingPropagationSlow") }}
{{- /* Clusters and pipes that cannot be resized in place by their configuration are no surprise. */}}
{{- $unexpected := `reason!~"ContainerNotNamed|ContainerRestarts|NotSupported|PodsNotLabeled"` }}
- alert: PipeScalingInPlaceFallbacks
  expr: |-
    sum(increase(pipe_scaling_in_place_fallbacks_total{ {{- $of }}, {{ $unexpected }}}[1h])) > 5
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
    {{- include "pipe-scaling.runbook" (list . "PipeScalingInPlaceFallbacks") }}
- alert: PipeScalingReconcileErrors
  expr: |-
    sum(rate(controller_runtime_reconcile_errors_total{ {{- $of }}, controller="pipescaling"}[10m]))
      / sum(rate(controller_runtime_reconcile_total{ {{- $of }}, controller="pipescaling"}[10m])) > 0.1
  for: 15m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "{{ $value | humanizePercentage }}" }} of the controller's reconciliations fail.
    description: More than 10 % of the reconciliations have failed for 15 minutes. The controller retries them.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingReconcileErrors") }}
- alert: PipeScalingQueueSlow
  expr: |-
    histogram_quantile(0.9,
      sum by (le) (rate(workqueue_queue_duration_seconds_bucket{ {{- $of }}, name="pipescaling"}[10m]))) > 60
  for: 15m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      Services wait {{ "{{ $value | humanizeDuration }}" }} in the work queue.
    description: One in ten services has waited in the work queue for more than a minute, for 15 minutes.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingQueueSlow") }}
- alert: PipeScalingMalformedRecords
  expr: max by (resource) (pipe_scaling_malformed_records{ {{- $of }}}) > 0
  for: 5m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "{{ $value }} records in {{ $labels.resource }} are malformed." }}
    description: The API rejects malformed keys and requests that depend on a malformed record. The affected pipes keep their size. The log of the API names each record.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingMalformedRecords") }}
- alert: PipeScalingFailedLogins
  expr: sum(rate(pipe_scaling_authentications_total{ {{- $of }}, result="refused"}[10m])) > 1
  for: 10m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "{{ $value | humanize }} requests per second have invalid credentials." }}
    description: The rate has been above one per second for 10 minutes. Either someone is guessing keys, or a client uses a key that is disabled, expired or deleted.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingFailedLogins") }}
{{- end }}

{{- define "pipe-scaling.runbook" -}}
{{- with (index . 0).Values.monitoring.prometheusRule.runbookUrl }}
    runbook_url: {{ . | trimSuffix "/" }}/{{ index $ 1 }}.md
{{- end }}
{{- end }}
