{{- /* Generated from src/crd/fallback-reasons.ts by `npm run generate`; do not edit. */}}
{{- define "pipe-scaling.expectedFallbacks" -}}
ContainerNotNamed|ContainerRestarts|NotSupported|PodsNotLabeled|SizeFromEnvironment|SizeFromPercentage|SizeNotRequested
{{- end }}
