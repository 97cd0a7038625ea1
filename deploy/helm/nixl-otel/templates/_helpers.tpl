{{- define "nixl-otel.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "nixl-otel.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $name := include "nixl-otel.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "nixl-otel.selectorLabels" -}}
app.kubernetes.io/name: {{ include "nixl-otel.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "nixl-otel.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "nixl-otel.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "nixl-otel.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "nixl-otel.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "nixl-otel.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository $tag }}
{{- end }}
{{- end }}

{{- define "nixl-otel.daemon" -}}
{{- if ne .Values.mode "sidecar" }}true{{ end }}
{{- end }}

{{- /* Reports whether the Collector gets pod metadata from the API server. */}}
{{- define "nixl-otel.watchesPods" -}}
{{- if and .Values.kubernetesAttributes.enabled (include "nixl-otel.daemon" .) }}true{{ end }}
{{- end }}

{{- /* Reports whether totals without the name of their pod are dropped. */}}
{{- define "nixl-otel.needsPodName" -}}
{{- if and (include "nixl-otel.watchesPods" .) (has "k8s.pod.name" .Values.kubernetesAttributes.metadata) }}true{{ end }}
{{- end }}

{{- /* Fails if two servers of the Collector would listen on one port. */}}
{{- define "nixl-otel.checkPorts" -}}
{{- $health := 13133 }}
{{- $telemetry := int .Values.telemetry.port }}
{{- if eq $telemetry $health }}
{{- fail (printf "telemetry.port: %d is the port of the health check: choose another" $telemetry) }}
{{- end }}
{{- if .Values.prometheus.enabled }}
{{- $page := int .Values.prometheus.port }}
{{- if eq $page $health }}
{{- fail (printf "prometheus.port: %d is the port of the health check: choose another" $page) }}
{{- else if eq $page $telemetry }}
{{- fail (printf "prometheus.port: %d is also telemetry.port, the port of the Collector's own metrics: choose another" $page) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "nixl-otel.ports" -}}
{{- include "nixl-otel.checkPorts" . }}
- name: health
  containerPort: 13133
- name: metrics
  containerPort: {{ .Values.telemetry.port }}
{{- if .Values.prometheus.enabled }}
- name: nixl
  containerPort: {{ .Values.prometheus.port }}
{{- end }}
{{- end }}

{{- define "nixl-otel.probes" -}}
livenessProbe:
  httpGet: {path: /, port: health}
readinessProbe:
  httpGet: {path: /, port: health}
{{- end }}

{{- /* The environment variables that the configuration uses. */}}
{{- define "nixl-otel.env" -}}
- name: K8S_NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
{{- range $i, $h := .Values.otlp.headersFromSecret }}
- name: OTLP_HEADER_{{ $i }}
  valueFrom:
    secretKeyRef:
      name: {{ $h.secret }}
      key: {{ $h.key }}
{{- end }}
{{- end }}

{{- define "nixl-otel.tlsMounts" -}}
{{- if .Values.otlp.tls.caSecret }}
- {name: tls-ca, mountPath: /etc/otelcol-nixl-tls/ca, readOnly: true}
{{- end }}
{{- if .Values.otlp.tls.clientSecret }}
- {name: tls-client, mountPath: /etc/otelcol-nixl-tls/client, readOnly: true}
{{- end }}
{{- end }}

{{- define "nixl-otel.tlsVolumes" -}}
{{- with .Values.otlp.tls.caSecret }}
- name: tls-ca
  secret: {secretName: {{ . }}}
{{- end }}
{{- with .Values.otlp.tls.clientSecret }}
- name: tls-client
  secret: {secretName: {{ . }}}
{{- end }}
{{- end }}
