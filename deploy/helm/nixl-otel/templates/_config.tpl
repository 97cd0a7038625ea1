{{- /* The Collector's configuration, as YAML. */}}
{{- define "nixl-otel.config" -}}
{{- $config := include "nixl-otel.defaultConfig" . | fromYaml }}
{{- with get $config "Error" }}{{ fail . }}{{ end }}
{{- $receiver := get $config.receivers "nixl_shm" | mustMergeOverwrite (dict) }}
{{- $_ := set $config.receivers "nixl_shm" (mustMergeOverwrite $receiver (deepCopy .Values.receiver)) }}
{{- mustMergeOverwrite $config (deepCopy .Values.config) | toYaml }}
{{- end }}

{{- define "nixl-otel.exporterName" -}}
{{- if eq .Values.otlp.protocol "http" }}otlp_http{{ else }}otlp_grpc{{ end }}
{{- end }}

{{- /* The processors of the pipeline, in order. */}}
{{- define "nixl-otel.processorNames" -}}
{{- $names := list "memory_limiter" }}
{{- if include "nixl-otel.watchesPods" . }}{{ $names = append $names "k8s_attributes" }}{{ end }}
{{- if include "nixl-otel.needsPodName" . }}{{ $names = append $names "filter/unknown_pod" }}{{ end }}
{{- toJson $names }}
{{- end }}

{{- define "nixl-otel.exporterNames" -}}
{{- $names := list }}
{{- if .Values.otlp.endpoint }}{{ $names = append $names (include "nixl-otel.exporterName" .) }}{{ end }}
{{- if .Values.prometheus.enabled }}{{ $names = append $names "prometheus" }}{{ end }}
{{- if not (or $names (get .Values.config "exporters")) }}
{{- fail "nowhere to send metrics to: set otlp.endpoint, or prometheus.enabled, or config.exporters" }}
{{- end }}
{{- toJson $names }}
{{- end }}

{{- define "nixl-otel.defaultConfig" -}}
extensions:
  health_check:
    endpoint: ":13133" # the kubelet probes from outside the pod
  file_storage:
    directory: /var/lib/otelcol-nixl
    create_directory: true
    recreate: true # keeps a damaged file as a backup, and starts with an empty one

receivers:
  nixl_shm:
    {{- include "nixl-otel.receiver" . | nindent 4 }}

processors:
  memory_limiter:
    check_interval: 1s
    limit_percentage: 80 # of the container's memory limit
    spike_limit_percentage: 20
  {{- if include "nixl-otel.watchesPods" . }}
  k8s_attributes:
    {{- include "nixl-otel.kubernetesAttributes" . | nindent 4 }}
  {{- end }}
  {{- if include "nixl-otel.needsPodName" . }}
  # Until the API server has answered, totals lack the name of their pod, and would be
  # other series. Dropping them loses nothing, because the next export includes them. The
  # UID of a static pod is a hash without hyphens, which the API server doesn't know.
  filter/unknown_pod:
    metric_conditions:
      - resource.attributes["k8s.pod.uid"] != nil and resource.attributes["k8s.pod.name"] == nil and IsMatch(resource.attributes["k8s.pod.uid"], "-")
  {{- end }}

exporters:
  {{- if .Values.otlp.endpoint }}
  {{ include "nixl-otel.exporterName" . }}:
    {{- mustMergeOverwrite (include "nixl-otel.otlp" . | fromYaml) (deepCopy .Values.otlp.exporter) | toYaml | nindent 4 }}
  {{- end }}
  {{- if .Values.prometheus.enabled }}
  prometheus:
    endpoint: ":{{ .Values.prometheus.port }}"
    resource_constant_labels: {included: ["*"]} # otherwise series don't have the agent and the pod
    without_scope_info: true
  {{- end }}

service:
  extensions: [health_check, file_storage]
  pipelines:
    metrics:
      receivers: [nixl_shm]
      processors: {{ include "nixl-otel.processorNames" . }}
      exporters: {{ include "nixl-otel.exporterNames" . }}
  telemetry:
    logs:
      disable_zap_resource: true # shorter lines
    metrics:
      readers:
        - pull: {exporter: {prometheus: {host: 0.0.0.0, port: {{ .Values.telemetry.port }}}}}
{{- end }}

{{- define "nixl-otel.receiver" -}}
{{- if eq .Values.mode "sidecar" }}
directories: [{{ .Values.sidecar.directory | quote }}]
{{- else if eq .Values.mode "kubelet" }}
directories: []
discovery:
  kubelet:
    path: {{ .Values.kubelet.path }}
{{- else }}
directories: []
discovery:
  processes:
    interval: {{ .Values.processes.interval }}
    env_attributes: {{ toJson .Values.processes.envAttributes }}
{{- end }}
identify_by: {{ toJson .Values.identifyBy }}
resource: # not in a processor: the receiver must see a change
  service.name: {{ .Values.serviceName | quote }}
  host.name: ${env:K8S_NODE_NAME} # the pod's own name changes with each rollout
  {{- with .Values.clusterName }}
  k8s.cluster.name: {{ . | quote }}
  {{- end }}
  {{- if eq .Values.mode "sidecar" }}
  k8s.pod.uid: ${env:K8S_POD_UID} # two replicas on one node are different agents
  k8s.namespace.name: ${env:K8S_NAMESPACE_NAME}
  k8s.pod.name: ${env:K8S_POD_NAME}
  k8s.node.name: ${env:K8S_NODE_NAME}
  k8s.container.name: {{ .Values.sidecar.container | quote }}
  {{- end }}
collection_interval: {{ .Values.collectionInterval }}
{{- if ne (get .Values.receiver "mode") "observe" }}
storage: file_storage
{{- end }}
{{- end }}

{{- /* Associates by attributes of the receiver, not by connection, which would be the Collector's own pod. */}}
{{- define "nixl-otel.kubernetesAttributes" -}}
filter:
  node_from_env_var: K8S_NODE_NAME
wait_for_metadata: false # otherwise nothing is drained while the API server doesn't answer
# Agents of a removed pod are reported for up to stale_after, 5 minutes by default.
pod_delete_grace_period: 10m
pod_association:
  - sources: [{from: resource_attribute, name: k8s.pod.uid}]
extract:
  metadata: {{ toJson .Values.kubernetesAttributes.metadata }}
  labels: {{ toJson .Values.kubernetesAttributes.labels }}
  annotations: {{ toJson .Values.kubernetesAttributes.annotations }}
{{- end }}

{{- define "nixl-otel.otlp" -}}
endpoint: {{ .Values.otlp.endpoint | quote }}
compression: {{ .Values.otlp.compression }}
timeout: 5s
{{- if or .Values.otlp.headers .Values.otlp.headersFromSecret }}
headers:
  {{- range $name, $value := .Values.otlp.headers }}
  {{ $name | quote }}: {{ $value | toString | replace "$" "$$" | quote }}
  {{- end }}
  {{- range $i, $h := .Values.otlp.headersFromSecret }}
  {{ $h.name | quote }}: ${env:OTLP_HEADER_{{ $i }}}
  {{- end }}
{{- end }}
tls:
  {{- if hasPrefix "http://" .Values.otlp.endpoint }}
  insecure: true
  {{- else }}
  insecure: false
  {{- with .Values.otlp.tls }}
  {{- if .caSecret }}
  ca_file: /etc/otelcol-nixl-tls/ca/{{ .caKey }}
  {{- end }}
  {{- if .clientSecret }}
  cert_file: /etc/otelcol-nixl-tls/client/tls.crt
  key_file: /etc/otelcol-nixl-tls/client/tls.key
  {{- end }}
  {{- with .serverName }}
  server_name_override: {{ . | quote }}
  {{- end }}
  insecure_skip_verify: {{ .insecureSkipVerify }}
  {{- end }}
  {{- end }}
# Totals are cumulative: if points are lost while the endpoint is down, no event is lost.
sending_queue:
  queue_size: 60 # ten minutes at 10s
  num_consumers: 1 # in order: some backends reject points that are older than the last one
  batch: # a gRPC server rejects a request of more than 4 MiB, and with it all agents in it
    sizer: bytes
    max_size: 3000000
retry_on_failure:
  max_elapsed_time: 0 # until it succeeds
{{- end }}
