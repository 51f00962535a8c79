{{/* Rules of texts, which files/text-rules.yaml lists. Returns one line for each error. */}}
{{- define "pipe-scaling.textProblems" -}}
{{- range $rule := .Files.Get "files/text-rules.yaml" | fromYamlArray }}
{{- $isList := hasSuffix "[]" $rule.path }}
{{- $path := trimSuffix "[]" $rule.path }}
{{- $value := $.Values }}
{{- range splitList "." $path }}
{{- /* A value is absent if the user has removed it with null. */}}
{{- if kindIs "map" $value }}{{ $value = index $value . }}{{ end }}
{{- end }}
{{- range $text := ternary $value (list $value) $isList }}
{{- if kindIs "string" $text }}
{{- $problem := include "pipe-scaling.textProblem" (list $rule $text) }}
{{- if $problem }}
{{ $path }} {{ ternary "contains" "is" $isList }} {{ $text | quote }}, but {{ $problem }}.
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Returns the rule that a text breaks, as in "it must be …". Takes a list: the rule, and the text. */}}
{{- define "pipe-scaling.textProblem" -}}
{{- $rule := index . 0 }}
{{- $text := index . 1 }}
{{- if not (regexMatch $rule.pattern $text) }}
{{- $rule.sentence }}
{{- else if $rule.least }}
{{- $duration := include "pipe-scaling.milliseconds" $text | int64 }}
{{- $least := include "pipe-scaling.milliseconds" $rule.least | int64 }}
{{- $most := include "pipe-scaling.milliseconds" $rule.most | int64 }}
{{- if or (lt $duration $least) (gt $duration $most) }}
{{- $rule.sentence }}
{{- end }}
{{- else if and $rule.isRange (contains "/" $text) }}
{{- with include "pipe-scaling.rangeOf" $text }}
{{- printf "it must begin with the first address of its range: set it to %s" . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Takes a duration such as 90s. */}}
{{- define "pipe-scaling.milliseconds" -}}
{{- $units := dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 }}
{{- mul (regexFind "^[0-9]+" . | atoi) (get $units (regexFind "[a-z]+$" .)) }}
{{- end }}

{{/* Returns the range of a CIDR that does not begin with the first address of it: 10.0.0.0/8 for 10.1.2.3/8. */}}
{{- define "pipe-scaling.rangeOf" -}}
{{- $parts := splitList "/" . }}
{{- $address := first $parts }}
{{- $prefix := last $parts | atoi }}
{{- $isV4 := contains "." $address }}
{{- /* Parts of an address have 8 bits in IPv4, and 16 bits in IPv6, where :: stands for parts that are 0. */}}
{{- $width := ternary 8 16 $isV4 }}
{{- $texts := splitList "." $address }}
{{- if not $isV4 }}
{{- $halves := splitList "::" $address }}
{{- $left := splitList ":" (first $halves) | compact }}
{{- $right := ternary (splitList ":" (last $halves) | compact) list (gt (len $halves) 1) }}
{{- $zeros := list }}
{{- range until (sub 8 (add (len $left) (len $right)) | int) }}{{ $zeros = append $zeros "0" }}{{ end }}
{{- $texts = concat $left $zeros $right }}
{{- end }}
{{- $isFirst := true }}
{{- $range := list }}
{{- range $at, $text := $texts }}
{{- $number := $isV4 | ternary (atoi $text) (int64 (printf "0x%s" $text)) | int64 }}
{{- $hostBits := max 0 (min $width (sub (mul $width (add1 $at)) $prefix)) | int }}
{{- $size := 1 }}
{{- range until $hostBits }}{{ $size = mul $size 2 }}{{ end }}
{{- if mod $number $size }}{{ $isFirst = false }}{{ end }}
{{- $range = append $range (printf (ternary "%d" "%x" $isV4) (sub $number (mod $number $size))) }}
{{- end }}
{{- if not $isFirst }}
{{- $first := join (ternary "." ":" $isV4) $range }}
{{- $isV4 | ternary $first (regexReplaceAll "(^0|:0)(:0)+$" $first "::") }}/{{ $prefix }}
{{- end }}
{{- end }}

{{/*
Rules of the image, whose parts are separate values. Returns one line for each error, with the values that the user
probably means.
*/}}
{{- define "pipe-scaling.imageProblems" -}}
{{- with .Values.image }}
{{- $digest := regexFind "@.*$" .repository | trimPrefix "@" }}
{{- $name := regexReplaceAll "^[A-Za-z0-9+.-]*://|@.*$" .repository "" }}
{{- $tag := regexFind ":[^/]*$" $name | trimPrefix ":" }}
{{- $name = regexReplaceAll ":[^/]*$" $name "" }}
{{- $part := "[a-z0-9]+((\\.|_{1,2}|-+)[a-z0-9]+)*" }}
{{- if not .repository }}
image.repository is empty: set it to the repository of the image, such as registry.example.com/platform/pipe-scaling-operator.
{{- else if ne $name .repository }}
image.repository is {{ .repository | quote }}, but it must have no scheme, tag or digest: set image.repository to {{ $name }}
{{- with $tag }}, image.tag to {{ . }}{{ end }}
{{- with $digest }}, image.digest to {{ . }}{{ end }}.
{{- else if not (regexMatch (printf "^([A-Za-z0-9.-]+(:[0-9]+)?/)?%s(/%s)*$" $part $part) $name) }}
image.repository is {{ .repository | quote }}, but it must consist of lowercase letters and digits, separated by dots, hyphens, underscores and slashes, such as registry.example.com/platform/pipe-scaling-operator.
{{- end }}
{{- with .registry }}
{{- $host := regexReplaceAll "^[A-Za-z0-9+.-]*://" . "" | trimSuffix "/" }}
{{- if ne $host . }}
image.registry is {{ . | quote }}, but it must have no scheme and no slash at the end: set it to {{ $host }}.
{{- end }}
{{- end }}
{{- end }}
{{- end }}
