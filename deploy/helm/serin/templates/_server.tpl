{{- /* The pods of one server: `serin serve`. Takes {root, name, track, values}. */}}
{{- define "serin.server" -}}
{{- $v := .values }}
{{- $scheme := ternary "HTTPS" "HTTP" (not (empty $v.tlsSecret)) }}
{{- $ids := dict "root" .root "component" "runtime" "track" .track }}
{{- $registry := $v.models.registry }}
{{- if and $registry.peers (not $registry.url) }}
{{- fail "runtime.models.registry.peers: pods share the files of a registry only, so its url is needed" }}
{{- end }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  labels:
    {{- include "serin.labels" $ids | nindent 4 }}
    serin.dev/version: {{ $v.version | quote }}
spec:
  {{- if eq $v.autoscaling.kind "none" }}
  replicas: {{ $v.replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  selector:
    matchLabels: {{- include "serin.selector" $ids | nindent 6 }}
  strategy:
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  template:
    metadata:
      labels:
        {{- include "serin.labels" $ids | nindent 8 }}
        serin.dev/version: {{ $v.version | quote }}
        {{- if .root.Values.istio.enabled }}
        sidecar.istio.io/inject: "true"
        {{- end }}
        {{- with $v.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        kubectl.kubernetes.io/default-container: serin
        {{- with include "serin.scrape" (dict "root" .root "port" 8002) }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with include "serin.istioAnnotations" (dict "root" .root "values" $v) }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with $v.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      # {{ $v.preStopSeconds }} s in which load balancers learn of it, {{ $v.drainSeconds }} s of service, {{ $v.requestSeconds }} s for what is under way then, and some to spare.
      terminationGracePeriodSeconds: {{ include "serin.grace" $v }}
      serviceAccountName: {{ include "serin.account" .root }}
      automountServiceAccountToken: false
      enableServiceLinks: false
      {{- with $v.priorityClass }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with .root.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- range . }}
        - name: {{ . }}
        {{- end }}
      {{- end }}
      securityContext: {{- include "serin.podSecurity" . | nindent 8 }}
      {{- with $v.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $v.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: topology.kubernetes.io/zone
          whenUnsatisfiable: {{ $v.spread.zones }}
          labelSelector: {matchLabels: {{ include "serin.selector" $ids | fromYaml | toJson }}}
          matchLabelKeys: [pod-template-hash]
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: {{ $v.spread.nodes }}
          labelSelector: {matchLabels: {{ include "serin.selector" $ids | fromYaml | toJson }}}
          matchLabelKeys: [pod-template-hash]
      containers:
        - name: serin
          image: {{ include "serin.image" (dict "root" .root "image" $v.image) | quote }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args:
            - serve
            - --models
            - {{ $registry.url | default $v.models.path }}
            {{- if $registry.url }}
            - --registry-cache
            - {{ $v.models.path }}
            {{- if $registry.caSecret }}
            - --registry-ca
            - /etc/serin/registry/ca.crt
            {{- end }}
            {{- end }}
            {{- if $registry.peers }}
            - --registry-peers
            - {{ include "serin.name" .root }}-peers:8004
            {{- end }}
            - --address
            - 0.0.0.0
            - --drain-seconds
            - {{ $v.drainSeconds | quote }}
            - --log-format
            - json
            {{- if ne $v.device "cpu" }}
            - --device
            - {{ $v.device }}
            - --cuda-cache
            - /tmp/serin
            {{- end }}
            {{- if $v.tokensSecret }}
            - --tokens
            - /etc/serin/tokens/tokens.yaml
            {{- end }}
            {{- if $v.tlsSecret }}
            - --tls-cert
            - /etc/serin/tls/tls.crt
            - --tls-key
            - /etc/serin/tls/tls.key
            {{- if $registry.peers }}
            - --registry-peers-ca
            - /etc/serin/tls/ca.crt
            - --registry-peers-name
            - {{ $registry.peersName | default (printf "%s.%s.svc" (include "serin.name" .root) .root.Release.Namespace) }}
            {{- end }}
            {{- end }}
            {{- range $v.args }}
            - {{ . | quote }}
            {{- end }}
          {{- with $v.env }}
          env:
            {{- range $name, $value := . }}
            - {name: {{ $name }}, value: {{ $value | quote }}}
            {{- end }}
          {{- end }}
          {{- if $registry.secret }}
          envFrom:
            - secretRef: {name: {{ $registry.secret }}}
          {{- end }}
          ports:
            - {name: http, containerPort: 8000}
            - {name: grpc, containerPort: 8001}
            - {name: metrics, containerPort: 8002}
            {{- if $registry.peers }}
            - {name: peers, containerPort: 8004}
            {{- end }}
          # The port is open before the models are loaded: alive from the start, ready once all models were tried.
          startupProbe:
            httpGet: {path: /v2/health/live, port: http, scheme: {{ $scheme }}}
            periodSeconds: 2
            failureThreshold: {{ div (add $v.startSeconds 1) 2 }}
          livenessProbe:
            httpGet: {path: /v2/health/live, port: http, scheme: {{ $scheme }}}
            periodSeconds: 10
            timeoutSeconds: 5
          readinessProbe:
            httpGet: {path: /v2/health/ready, port: http, scheme: {{ $scheme }}}
            periodSeconds: 2
            timeoutSeconds: 2
          {{- if $v.preStopSeconds }}
          lifecycle:
            preStop: {sleep: {seconds: {{ $v.preStopSeconds }}}}
          {{- end }}
          resources:
            {{- $limits := deepCopy $v.resources.limits }}
            {{- if $v.accelerator.count }}
            {{- $_ := set $limits $v.accelerator.resource (toString $v.accelerator.count) }}
            {{- end }}
            requests: {{- toYaml $v.resources.requests | nindent 14 }}
            limits: {{- toYaml $limits | nindent 14 }}
          securityContext: {{- include "serin.containerSecurity" . | nindent 12 }}
          volumeMounts:
            - {name: models, mountPath: {{ $v.models.path }}{{ if not $registry.url }}, readOnly: true{{ end }}}
            - {name: tmp, mountPath: /tmp}
            {{- if $v.sharedMemory }}
            - {name: shared-memory, mountPath: /dev/shm}
            {{- end }}
            {{- if $v.tokensSecret }}
            - {name: tokens, mountPath: /etc/serin/tokens, readOnly: true}
            {{- end }}
            {{- if $v.tlsSecret }}
            - {name: tls, mountPath: /etc/serin/tls, readOnly: true}
            {{- end }}
            {{- if and $registry.url $registry.caSecret }}
            - {name: registry, mountPath: /etc/serin/registry, readOnly: true}
            {{- end }}
      volumes:
        - name: models
          {{- if $registry.url }}
          emptyDir: {sizeLimit: {{ $v.models.size }}}
          {{- else }}
          persistentVolumeClaim: {claimName: {{ $v.models.claim }}, readOnly: true}
          {{- end }}
        - name: tmp
          emptyDir: {sizeLimit: {{ $v.temporary }}}
        {{- if $v.sharedMemory }}
        - name: shared-memory
          emptyDir: {medium: Memory, sizeLimit: {{ $v.sharedMemory }}}
        {{- end }}
        {{- with $v.tokensSecret }}
        - name: tokens
          secret: {secretName: {{ . }}, defaultMode: 0440}
        {{- end }}
        {{- with $v.tlsSecret }}
        - name: tls
          secret: {secretName: {{ . }}, defaultMode: 0440}
        {{- end }}
        {{- if and $registry.url $registry.caSecret }}
        - name: registry
          secret: {secretName: {{ $registry.caSecret }}, defaultMode: 0440}
        {{- end }}
{{- end }}
