{{- /* The HTTPRoutes that the router writes: their names. */}}
{{- define "serin.httpRoutes" -}}
{{- $names := list }}
{{- range .Values.router.services }}
{{- with .httpRoute }}
{{- $names = append $names .name }}
{{- end }}
{{- end }}
{{- dict "names" $names | toYaml }}
{{- end }}

{{- /* Whether the router asks the API server. */}}
{{- define "serin.asks" -}}
{{- if or (eq .Values.router.store.kind "kubernetes") (include "serin.httpRoutes" . | fromYaml).names -}}
yes
{{- end }}
{{- end }}

{{- /* router.yaml from the values. */}}
{{- define "serin.routerConfig" -}}
{{- $name := include "serin.name" . }}
{{- $r := .Values.router }}
{{- $services := list }}
{{- range $r.services }}
{{- $versions := list }}
{{- range .versions }}
{{- $pods := printf "%s-pods" (ternary (printf "%s-canary" $name) $name (eq .track "canary")) }}
{{- $path := .path | default "" }}
{{- $endpoints := dict "dns" (.url | default (printf "http://%s:8000%s" $pods $path)) "interval" "2s" }}
{{- if and (not .url) (eq $r.store.kind "kubernetes") }}
{{- /* Its account may read EndpointSlices, which tell of a pod that ends before a name server does. */}}
{{- $slices := dict "service" $pods "port" "http" }}
{{- $endpoints = dict "kubernetes" (ternary (set $slices "path" $path) $slices (ne $path "")) "grpc_port" "grpc" }}
{{- else if not .url }}
{{- $endpoints = set $endpoints "grpc_port" 8001 }}
{{- end }}
{{- $versions = append $versions (dict "name" .name "endpoints" $endpoints) }}
{{- end }}
{{- $service := dict "name" .name "initial_stable" .initialStable "versions" $versions }}
{{- with .httpRoute }}
{{- $_ := set $service "http_route" . }}
{{- end }}
{{- $services = append $services $service }}
{{- end -}}
listen: 0.0.0.0:8080
admin: {listen: "0.0.0.0:8081", tokens: /etc/serin/tokens/tokens.yaml}
{{- if $r.tlsSecret }}
tls: {cert: /etc/serin/tls/tls.crt, key: /etc/serin/tls/tls.key}
{{- end }}
{{- $file := "/var/lib/serin/router.db" }}
{{- if eq $r.store.kind "sqlite" }}
store: {{ $file }}
{{- else if eq $r.store.kind "etcd" }}
store: {file: {{ $file }}, etcd: {endpoints: {{ toJson $r.store.etcd.endpoints }}, prefix: {{ $r.store.etcd.prefix }}}}
{{- else }}
store: {file: {{ $file }}, kubernetes: {group: {{ $name }}-router}}
{{- end }}
{{- with $r.nodeTaints }}
kubernetes: {node_taints: {{ toJson . }}}
{{- end }}
{{- if ne $r.store.kind "sqlite" }}
replicas: {max: {{ $r.maxReplicas }}, listen: "0.0.0.0:8082"}
{{- end }}
{{- if $r.externalMetrics.enabled }}
{{- $folder := "/etc/serin/external-metrics" }}
external_metrics: {listen: "0.0.0.0:8443", tls: {cert: {{ $folder }}/tls.crt, key: {{ $folder }}/tls.key, client_ca: {{ $folder }}/front-proxy-ca.crt}}
{{- end }}
{{- if $r.externalScaler.enabled }}
{{- $folder := "/etc/serin/external-scaler" }}
external_scaler: {listen: "0.0.0.0:8444", tls: {{ if $r.externalScaler.secret }}{cert: {{ $folder }}/tls.crt, key: {{ $folder }}/tls.key, client_ca: {{ $folder }}/ca.crt}{{ else }}none{{ end }}}
{{- end }}
services: {{- toYaml $services | nindent 2 }}
{{- end }}
