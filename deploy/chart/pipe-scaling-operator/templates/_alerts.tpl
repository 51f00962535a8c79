{{/*
The alerts. Each has a runbook of its name in docs/runbooks, and a test with promtool. `$of` picks out this release:
the ServiceMonitor gives job the release's name. Some
expressions have no labels of their own, so each alert says which release it is about.
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
      No process of the API answers.
    description: For 5 minutes Prometheus has reached no pod of the API. Callers cannot resize pipes, nor read their size. Pipes run on as they are.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingApiDown") }}
- alert: PipeScalingNoLeader
  expr: absent(leader_election_master_status{ {{- $of }}, name="pipescaling"} == 1)
  for: 5m
  labels:
    severity: critical
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      No controller is at work.
    description: For 5 minutes no controller has held the lease. Sizes that are asked for are accepted, and not given to the pipes. Pipes run on as they are.
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
    description: For 10 minutes more than 5 % of the requests have been answered by a 5xx.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingApiErrors") }}
- alert: PipeScalingApiCacheStale
  expr: max by (resource, pod) (pipe_scaling_cache_age_seconds{ {{- $of }}}) > 150
  for: 1m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "{{ $labels.pod }} has not heard of {{ $labels.resource }} for {{ $value | humanizeDuration }}." }}
    description: The cluster proves once a minute that what is cached is fresh. From {{ $maxCacheAge }} on reads are refused too.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingApiCacheStale") }}
- alert: PipeScalingWatchStale
  expr: max by (resource, pod) (pipe_scaling_watch_age_seconds{ {{- $of }}}) > 300
  for: 1m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "{{ $labels.pod }} has had no contact with its watch of {{ $labels.resource }} for {{ $value | humanizeDuration }}." }}
    description: The API server confirms every watch once a minute. Until it does, the controller does not see changes of {{ "{{ $labels.resource }}" }}, and the pod is not ready.
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
      {{ "{{ $value | humanizePercentage }} of the calls of {{ $labels.pod }} to the cluster fail." }}
    description: For 10 minutes more than 10 % of its calls to the API server have failed or gone without an answer.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingClusterErrors") }}
- alert: PipeScalingStalled
  expr: max(pipe_scaling_services{ {{- $of }}, condition="Stalled"}) > 0
  for: 15m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "{{ $value }} services do not get the size that is asked for." }}
    description: Their PipeScaling has been Stalled for 15 minutes; its message says why, and what can be done.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingStalled") }}
- alert: PipeScalingPropagationSlow
  expr: max(pipe_scaling_oldest_propagation_seconds{ {{- $of }}}) > 3600
  for: 5m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      A change of size has been on its way for {{ "{{ $value | humanizeDuration }}" }}.
    description: It is neither done nor has it failed.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingPropagationSlow") }}
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
    description: For 15 minutes more than 10 % of the reconciliations have ended with an error. They are retried.
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
      Services wait {{ "{{ $value | humanizeDuration }}" }} for the controller to look at them.
    description: For 15 minutes one in ten services has waited for more than a minute in the queue.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingQueueSlow") }}
- alert: PipeScalingMalformedRecords
  expr: max by (resource) (pipe_scaling_malformed_records{ {{- $of }}}) > 0
  for: 5m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "{{ $value }} records of {{ $labels.resource }} cannot be read." }}
    description: What they are about is refused or left alone until they are put right; the API's log names each.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingMalformedRecords") }}
- alert: PipeScalingFailedLogins
  expr: sum(rate(pipe_scaling_authentications_total{ {{- $of }}, result="refused"}[10m])) > 1
  for: 10m
  labels:
    severity: warning
    {{- $labels | nindent 4 }}
  annotations:
    summary: >-
      {{ "{{ $value | humanize }} requests a second bring credentials that are refused." }}
    description: For 10 minutes more than one a second. Somebody guesses keys, or a client goes on with a key that is disabled or expired.
    {{- include "pipe-scaling.runbook" (list . "PipeScalingFailedLogins") }}
{{- end }}

{{- define "pipe-scaling.runbook" -}}
{{- with (index . 0).Values.monitoring.prometheusRule.runbookUrl }}
    runbook_url: {{ . | trimSuffix "/" }}/{{ index $ 1 }}.md
{{- end }}
{{- end }}
