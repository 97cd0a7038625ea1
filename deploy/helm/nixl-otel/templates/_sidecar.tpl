{{- /* A strategic merge patch that adds the sidecar to a workload with a pod template. */}}
{{- define "nixl-otel.patch" -}}
spec:
  template:
    {{- if .Values.podMonitor.enabled }}
    metadata:
      labels:
        nixl-otel/release: {{ .Release.Name }} # for the PodMonitor
    {{- end }}
    spec:
      {{- with .Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      initContainers:
        - name: otelcol-nixl
          image: {{ include "nixl-otel.image" . | quote }}
          imagePullPolicy: {{ .Values.image.pullPolicy }}
          args: [--config=/etc/otelcol-nixl/config.yaml]
          restartPolicy: Always # a sidecar: it stops after the agents, so it drains their rings completely
          env:
            {{- include "nixl-otel.env" . | nindent 12 }}
            - {name: NIXL_TELEMETRY_DIR, value: {{ .Values.sidecar.directory }}} # for nixlring
            - name: K8S_POD_NAME
              valueFrom: {fieldRef: {fieldPath: metadata.name}}
            - name: K8S_POD_UID
              valueFrom: {fieldRef: {fieldPath: metadata.uid}}
            - name: K8S_NAMESPACE_NAME
              valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
            {{- with .Values.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            {{- include "nixl-otel.ports" . | nindent 12 }}
          {{- include "nixl-otel.probes" . | nindent 10 }}
          securityContext:
            {{- mustMergeOverwrite (include "nixl-otel.sidecarSecurityContext" . | fromYaml) (deepCopy .Values.securityContext) | toYaml | nindent 12 }}
          resources:
            {{- toYaml .Values.resources | nindent 12 }}
          volumeMounts:
            - {name: nixl-otel-config, mountPath: /etc/otelcol-nixl, readOnly: true}
            - {name: nixl-otel-state, mountPath: /var/lib/otelcol-nixl}
            - {name: nixl-rings, mountPath: {{ .Values.sidecar.directory }}}
            {{- with include "nixl-otel.tlsMounts" . }}
            {{- . | nindent 12 }}
            {{- end }}
            {{- with .Values.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      containers:
        - name: {{ .Values.sidecar.container }}
          env:
            - {name: NIXL_TELEMETRY_ENABLE, value: "y"}
            - {name: NIXL_TELEMETRY_EXPORTER, value: BUFFER}
            - {name: NIXL_TELEMETRY_DIR, value: {{ .Values.sidecar.directory }}}
          volumeMounts:
            - {name: nixl-rings, mountPath: {{ .Values.sidecar.directory }}}
      volumes:
        - name: nixl-rings
          emptyDir: {medium: Memory, sizeLimit: {{ .Values.sidecar.sizeLimit }}}
        - name: nixl-otel-config
          configMap: {name: {{ include "nixl-otel.fullname" . }}}
        - name: nixl-otel-state # survives a crash of the Collector, but not the pod
          emptyDir: {}
        {{- with include "nixl-otel.tlsVolumes" . }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with .Values.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end }}

{{- /* The agents' user needs no capabilities. Without a value, it is that of the pod. */}}
{{- define "nixl-otel.sidecarSecurityContext" -}}
{{- with .Values.sidecar.runAsUser }}
runAsUser: {{ . }}
runAsNonRoot: true
{{- end }}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}
