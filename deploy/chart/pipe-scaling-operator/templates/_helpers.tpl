{{/*
Names. Names of cluster-scoped objects include the namespace of the release, so that releases with the same name in
different namespaces do not conflict. The name of a Service has at most 63 characters; "-controller" takes 11 of them.
*/}}
{{- define "pipe-scaling.chartName" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "pipe-scaling.name" -}}
{{- $chart := include "pipe-scaling.chartName" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains $chart .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $chart | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "pipe-scaling.apiName" -}}
{{ include "pipe-scaling.name" . }}-api
{{- end }}

{{- define "pipe-scaling.controllerName" -}}
{{ include "pipe-scaling.name" . }}-controller
{{- end }}

{{/* Name of the ServiceAccount of a process. Takes a list: the root context, and `api` or `controller`. */}}
{{- define "pipe-scaling.serviceAccountName" -}}
{{- $root := index . 0 }}
{{- $component := index . 1 }}
{{- (index $root.Values $component).serviceAccount.name | default (include (printf "pipe-scaling.%sName" $component) $root) }}
{{- end }}

{{/* Name of a cluster-scoped object. Takes a list: the root context and the name of the object within the release. */}}
{{- define "pipe-scaling.clusterName" -}}
{{ include "pipe-scaling.name" (index . 0) }}-{{ index . 1 }}.{{ (index . 0).Release.Namespace }}
{{- end }}

{{- define "pipe-scaling.tiersName" -}}
{{ include "pipe-scaling.name" . }}-tiers
{{- end }}

{{- define "pipe-scaling.tlsSecretName" -}}
{{- $standard := ternary (printf "%s-certificate" (include "pipe-scaling.apiName" .)) (include "pipe-scaling.selfSignedName" .) .Values.api.tls.certificate.enabled -}}
{{ .Values.api.tls.secretName | default $standard }}
{{- end }}

{{/* Name of the Secret that the chart creates. Helm deletes it when the values use another certificate. */}}
{{- define "pipe-scaling.selfSignedName" -}}
{{ include "pipe-scaling.apiName" . }}-tls
{{- end }}

{{/*
Replicas of the API. With autoscaling, they are the current number, because Kubernetes resets a field that Helm omits for
the first time to 1, until the next sync of the autoscaler. The field is omitted if there is no Deployment yet, if Helm
renders without a cluster, and once the autoscaler has set it: server-side apply then keeps it, and would report a
conflict for an older number in a rollback. Helm applies under the name of its program, such as helm4, helm-controller in
Flux, or the provider of Terraform or Pulumi with its version.
*/}}
{{- define "pipe-scaling.apiReplicas" -}}
{{- if not .Values.api.autoscaling.enabled }}
{{- .Values.api.replicaCount }}
{{- else }}
{{- with lookup "apps/v1" "Deployment" .Release.Namespace (include "pipe-scaling.apiName" .) }}
{{- $isApplied := false }}
{{- $isScaled := false }}
{{- range .metadata.managedFields }}
{{- $isApplied = or $isApplied (and (regexMatch "^(helm|terraform-provider-helm|pulumi)" .manager) (eq .operation "Apply")) }}
{{- $isScaled = or $isScaled (eq (get . "subresource") "scale") }}
{{- end }}
{{- if not (and $isApplied $isScaled) }}
{{- max (int .spec.replicas) (int $.Values.api.autoscaling.minReplicas) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* True if the chart creates the certificate itself. */}}
{{- define "pipe-scaling.selfSigned" -}}
{{- with .Values.api.tls }}
{{- if and .enabled (not .secretName) (not .certificate.enabled) }}true{{ end }}
{{- end }}
{{- end }}

{{/* DNS names of the Service of the API, as a list. */}}
{{- define "pipe-scaling.serviceNames" -}}
{{- $name := include "pipe-scaling.apiName" . -}}
- {{ $name }}.{{ .Release.Namespace }}.svc
- {{ $name }}.{{ .Release.Namespace }}
- {{ $name }}
{{- end }}

{{- define "pipe-scaling.servicePort" -}}
{{ .Values.api.service.port | int | default (ternary 443 80 .Values.api.tls.enabled) }}
{{- end }}

{{/*
Labels of an object. Takes a list: the root context, and the labels that only this object has. They and ours override
commonLabels, because selectors depend on them. Each key occurs once, because Flux rejects an object that repeats one.
*/}}
{{- define "pipe-scaling.labels" -}}
{{- $root := index . 0 }}
{{- $ours := dict
  "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_")
  "app.kubernetes.io/name" (include "pipe-scaling.chartName" $root)
  "app.kubernetes.io/instance" $root.Release.Name
  "app.kubernetes.io/version" $root.Chart.AppVersion
  "app.kubernetes.io/managed-by" $root.Release.Service }}
{{- toYaml (merge dict (index . 1 | default dict) $ours ($root.Values.commonLabels | default dict)) }}
{{- end }}

{{/* Annotations of an object. Takes a list: the root context, and the annotations that only this object has. */}}
{{- define "pipe-scaling.annotations" -}}
{{- with merge dict (index . 1 | default dict) ((index . 0).Values.commonAnnotations | default dict) }}
  annotations:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end }}

{{/* Takes a list: the root context, and `api` or `controller`. Do not change it, because selectors are immutable. */}}
{{- define "pipe-scaling.selector" -}}
app.kubernetes.io/name: {{ include "pipe-scaling.chartName" (index . 0) | quote }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Labels that only the pods of the two processes have. */}}
{{- define "pipe-scaling.processes" -}}
app.kubernetes.io/name: {{ include "pipe-scaling.chartName" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/part-of: pipe-scaling-operator
{{- end }}

{{/* Annotations that make Helm, Argo CD and Flux keep an object when the release is removed. */}}
{{- define "pipe-scaling.kept" -}}
helm.sh/resource-policy: keep
argocd.argoproj.io/sync-options: Prune=false,Delete=false
kustomize.toolkit.fluxcd.io/prune: disabled
{{- end }}

{{- define "pipe-scaling.image" -}}
{{- with .Values.image }}
{{- $name := list .registry .repository | compact | join "/" }}
{{- if .digest }}
{{- printf "%s@%s" $name .digest }}
{{- else }}
{{- printf "%s:%s" $name (.tag | default $.Chart.AppVersion) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "pipe-scaling.tiers" -}}
{{ toYaml .Values.tiers }}
{{- end }}

{{/* Environment variables of a process. Takes a list: the root context, and `api` or `controller`. */}}
{{- define "pipe-scaling.environment" -}}
{{- $root := index . 0 }}
{{- $component := index . 1 -}}
{{- $extra := list }}
{{- range (get $root.Values $component).extraEnv }}{{ $extra = append $extra (get . "name") }}{{ end }}
{{- include "pipe-scaling.commonEnvironment" $root }}
{{- range $name, $value := dict "MALLOC_ARENA_MAX" "2" "MALLOC_TRIM_THRESHOLD_" "131072" }}
{{- if not (has $name $extra) }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- include "pipe-scaling.config" (index $root.Values $component).config | trim | nindent 0 }}
{{- if eq $component "api" }}
- name: PIPE_SCALING_PORT
  value: "8080"
{{- if $root.Values.api.tls.enabled }}
- name: PIPE_SCALING_TLS_CERT
  value: /etc/pipe-scaling-tls/tls.crt
- name: PIPE_SCALING_TLS_KEY
  value: /etc/pipe-scaling-tls/tls.key
{{- else }}
- name: PIPE_SCALING_PLAIN_HTTP
  value: "true"
{{- end }}
{{- end }}
{{- end }}

{{/* Environment variables of both processes. Each is also a flag (`pipe-scaling api --help`). */}}
{{- define "pipe-scaling.commonEnvironment" -}}
- name: PIPE_SCALING_NAMESPACE
  value: {{ .Values.records.namespace | quote }}
{{- if not .Values.pipes.allNamespaces }}
- name: PIPE_SCALING_PIPE_NAMESPACES
  value: {{ join "," .Values.pipes.namespaces | quote }}
{{- end }}
- name: PIPE_SCALING_TIERS_FILE
  value: /etc/pipe-scaling/tiers.yaml
- name: PIPE_SCALING_MAXIMUM_CORES
  value: {{ int .Values.sizes.maximumCores | quote }}
- name: PIPE_SCALING_HOST
  value: {{ .Values.listenAddress | quote }}
- name: PIPE_SCALING_OPS_PORT
  value: "9090"
{{- if .Values.monitoring.authentication.enabled }}
- name: PIPE_SCALING_METRICS_AUTHENTICATION
  value: "true"
{{- end }}
{{- with .Values.tracing }}
{{- if .otlpEndpoint }}
- name: PIPE_SCALING_OTLP_ENDPOINT
  value: {{ .otlpEndpoint | quote }}
{{- if .headersSecretName }}
- name: OTEL_EXPORTER_OTLP_HEADERS
  valueFrom:
    secretKeyRef:
      name: {{ .headersSecretName | quote }}
      key: headers
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Turns the settings of a process into environment variables. Names are derived from the keys: `rateLimit` becomes
PIPE_SCALING_RATE_LIMIT. Lists and maps are separated by commas. Takes the settings.
*/}}
{{- define "pipe-scaling.config" -}}
{{- range $key, $value := . }}
{{- $text := toString $value }}
{{- if kindIs "slice" $value }}
{{- $text = join "," $value }}
{{- else if kindIs "map" $value }}
{{- $pairs := list }}
{{- range $name, $of := $value }}
{{- $pairs = append $pairs (printf "%s=%s" $name $of) }}
{{- end }}
{{- $text = join "," $pairs }}
{{- else if kindIs "float64" $value }}
{{- $text = int64 $value | toString }}
{{- end }}
{{- if ne $text "" }}
- name: PIPE_SCALING_{{ snakecase $key | upper }}
  value: {{ $text | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* Ports of DNS pods for a NetworkPolicy, which sees the port behind the Service. The pods of OpenShift listen on 5353. */}}
{{- define "pipe-scaling.dnsPorts" -}}
{{- range $port := list 53 5353 -}}
- port: {{ $port }}
  protocol: UDP
- port: {{ $port }}
{{ end }}
{{- end }}

{{/* The port of an http or https URL, or the default port of its scheme. */}}
{{- define "pipe-scaling.portOf" -}}
{{- $standard := hasPrefix "https:" . | ternary "443" "80" -}}
{{- $host := regexReplaceAll "^https?://|/.*$" . "" -}}
{{- regexFind ":[0-9]+$" $host | trimPrefix ":" | default $standard -}}
{{- end }}

{{/* Takes a list: the root context, and `api` or `controller`. */}}
{{- define "pipe-scaling.podTemplateMetadata" -}}
{{- $root := index . 0 }}
{{- $component := index . 1 }}
{{- $values := index $root.Values $component -}}
labels:
  {{- $selector := include "pipe-scaling.selector" . | fromYaml }}
  {{- $ours := merge $selector (include "pipe-scaling.processes" $root | fromYaml) }}
  {{- toYaml (merge $ours $values.podLabels $root.Values.commonLabels) | nindent 2 }}
annotations:
  # A process reads the tiers only at startup, so a change must restart the pods.
  {{- $checksum := dict "checksum/tiers" (include "pipe-scaling.tiers" $root | sha256sum) }}
  {{- $container := ternary dict (dict "kubectl.kubernetes.io/default-container" $component) (empty $values.extraContainers) }}
  {{- toYaml (merge $checksum ($values.podAnnotations | default dict) $container) | nindent 2 }}
{{- end }}

{{/* The parts of the pod spec that both pods share. Takes a list: the root context, and `api` or `controller`. */}}
{{- define "pipe-scaling.podSpec" -}}
{{- $root := index . 0 }}
{{- $component := index . 1 }}
{{- $values := index $root.Values $component -}}
serviceAccountName: {{ include "pipe-scaling.serviceAccountName" . | quote }}
automountServiceAccountToken: true
# Otherwise a Service named pipe-scaling would set variables that the processes read as their settings.
enableServiceLinks: false
{{- include "pipe-scaling.anyPodSpec" $root | nindent 0 }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $values.dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- with $values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.hostAliases }}
hostAliases:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  - labelSelector:
      matchLabels:
        {{- include "pipe-scaling.selector" (list $root $component) | nindent 8 }}
    # Spread the pods of each version separately, because the pods of the old one are about to terminate.
    {{- toYaml (merge . (dict "matchLabelKeys" (list "pod-template-hash"))) | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Parts of the spec of every pod, including that of `helm test`. */}}
{{- define "pipe-scaling.anyPodSpec" -}}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with concat .Values.global.imagePullSecrets .Values.imagePullSecrets | uniq }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "pipe-scaling.container" -}}
image: {{ include "pipe-scaling.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
{{- end }}

{{- define "pipe-scaling.metricsReaderName" -}}
{{ include "pipe-scaling.name" . }}-metrics-reader
{{- end }}

{{/* Parts of an endpoint of a ServiceMonitor or a PodMonitor. Takes a list: the root context, and the values of the monitor. */}}
{{- define "pipe-scaling.scraping" -}}
{{- $root := index . 0 }}
{{- with index . 1 -}}
interval: {{ .interval }}
{{- with .scrapeTimeout }}
scrapeTimeout: {{ . }}
{{- end }}
{{- range $key, $rules := dict "relabelings" .relabelings "metricRelabelings" .metricRelabelings }}
{{- with $rules }}
{{ $key }}:
  {{- /* Argo CD takes the default that the API server adds within a list for drift. */}}
  {{- range . }}
  - {{ toYaml (merge . (dict "action" "replace")) | indent 4 | trim }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- if $root.Values.monitoring.authentication.enabled }}
authorization:
  credentials:
    name: {{ include "pipe-scaling.metricsReaderName" $root }}
    key: token
{{- end }}
{{- end }}

{{/* Parts of the spec of both Deployments. Takes a list: the root context, and `api` or `controller`. */}}
{{- define "pipe-scaling.deploymentSpec" -}}
{{- $values := index (index . 0).Values (index . 1) -}}
{{- $strategy := $values.strategy | default dict -}}
revisionHistoryLimit: {{ $values.revisionHistoryLimit }}
strategy:
{{- if eq ($strategy.type | default "RollingUpdate") "RollingUpdate" }}
  {{- /* Otherwise, the API server would set the defaults, no manager would own them, and a change to Recreate would be rejected. */}}
  {{- $rolling := dict "maxSurge" "25%" "maxUnavailable" "25%" }}
  {{- range $name, $value := $strategy.rollingUpdate }}
  {{- $_ := set $rolling $name $value }}
  {{- end }}
  {{- toYaml (merge (dict "type" "RollingUpdate" "rollingUpdate" $rolling) $strategy) | nindent 2 }}
{{- else }}
  {{- toYaml $strategy | nindent 2 }}
{{- end }}
selector:
  matchLabels:
    {{- include "pipe-scaling.selector" . | nindent 4 }}
{{- end }}

{{/* Takes the values of a process. */}}
{{- define "pipe-scaling.probes" -}}
livenessProbe:
  httpGet:
    path: /healthz
    port: ops
  {{- toYaml .livenessProbe | nindent 2 }}
readinessProbe:
  httpGet:
    path: /readyz
    port: ops
  {{- toYaml .readinessProbe | nindent 2 }}
{{- end }}
