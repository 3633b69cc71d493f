{{- /* Names, labels, and the hardening that every pod has. */}}

{{- define "serin.name" -}}
{{ .Values.nameOverride | default .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- /* Of pods and their selectors, which cannot change later. Takes {root, component, track}. */}}
{{- define "serin.selector" -}}
app.kubernetes.io/name: serin
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- with .track }}
serin.dev/track: {{ . }}
{{- end }}
{{- end }}

{{- /* Of every object. Takes the same. */}}
{{- define "serin.labels" -}}
{{ include "serin.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: serin
app.kubernetes.io/managed-by: {{ .root.Values.managedBy | default .root.Release.Service }}
{{- end }}

{{- /* Takes {root, image}: that image, or else the one of all. */}}
{{- define "serin.image" -}}
{{- $all := .root.Values.image }}
{{- $image := .image | default dict }}
{{- $digest := $image.digest | default (ternary "" $all.digest (not (empty $image.tag))) }}
{{- if $digest -}}
{{ $all.repository }}@{{ $digest }}
{{- else -}}
{{ $all.repository }}:{{ $image.tag | default $all.tag | default .root.Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "serin.account" -}}
{{ .Values.serviceAccount.name | default (ternary (include "serin.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "serin.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "serin.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* Seconds for which a pod may take to end, and some to spare. Takes the values of the server or of the router. */}}
{{- define "serin.grace" -}}
{{ add .preStopSeconds .drainSeconds .requestSeconds 5 }}
{{- end }}

{{- /* Annotations of Prometheus without its operator. Takes {root, port}. */}}
{{- define "serin.scrape" -}}
{{- if not (or .root.Values.monitoring.serviceMonitor .root.Values.monitoring.podMonitor) -}}
prometheus.io/scrape: "true"
prometheus.io/port: {{ .port | quote }}
prometheus.io/path: /metrics
{{- end }}
{{- end }}

{{- /* Labels and annotations of a pod in an Istio mesh: the proxy starts before the server and ends after it. Takes the values. */}}
{{- define "serin.istioAnnotations" -}}
{{- if .root.Values.istio.enabled -}}
proxy.istio.io/config: '{"holdApplicationUntilProxyStarts": true, "terminationDrainDuration": "{{ include "serin.grace" .values }}s"}'
{{- end }}
{{- end }}

{{- /* The servers that there are: stable, and with a canary that, whose values are those of stable but for what it names. */}}
{{- define "serin.servers" -}}
{{- $name := include "serin.name" . }}
{{- $servers := list }}
{{- if .Values.runtime.enabled }}
{{- $servers = append $servers (dict "name" $name "track" "stable" "values" .Values.runtime) }}
{{- if .Values.canary.enabled }}
{{- $values := mustMergeOverwrite (deepCopy .Values.runtime) (omit .Values.canary "enabled") }}
{{- $servers = append $servers (dict "name" (printf "%s-canary" $name) "track" "canary" "values" $values) }}
{{- end }}
{{- end }}
{{- dict "servers" $servers | toYaml }}
{{- end }}

{{- /* Whether servers take files of models from each other. */}}
{{- define "serin.peers" -}}
{{- range (include "serin.servers" . | fromYaml).servers }}
{{- if .values.models.registry.peers -}}
yes
{{- end }}
{{- end }}
{{- end }}

{{- /* Peers of a NetworkPolicy: clients as the values name them, or all pods of the namespace. */}}
{{- define "serin.clients" -}}
{{- range .Values.networkPolicy.clients }}
{{- if .cidr }}
- ipBlock: {cidr: {{ .cidr }}}
{{- else }}
- namespaceSelector: {matchLabels: {{ .namespaceLabels | default dict | toJson }}}
  podSelector: {matchLabels: {{ .podLabels | default dict | toJson }}}
{{- end }}
{{- else }}
- podSelector: {}
{{- end }}
- podSelector: {matchLabels: {app.kubernetes.io/name: serin-test, app.kubernetes.io/instance: {{ .Release.Name }}}}
{{- end }}
