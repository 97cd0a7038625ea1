// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// changes has another value for each leaf of values.yaml, by the values that it needs to have an effect.
var changes = map[string]string{
	endpoint: `
mode: kubelet
otlp:
  endpoint: http://other:4317
  protocol: http
  compression: none
  headers: {tenant: a}
  headersFromSecret: [{name: authorization, secret: s, key: k}]
  exporter: {timeout: 9s}
prometheus: {enabled: true}
clusterName: east
collectionInterval: 30s
identifyBy: [pod, rank]
serviceName: kv
processes: {interval: 1s, envAttributes: {RANK: nixl.rank}}
receiver: {stale_after: 9m}
config: {processors: {memory_limiter: {limit_percentage: 70}}}
kubernetesAttributes: {enabled: false, metadata: [k8s.pod.name], labels: [{key: app, tag_name: app}], annotations: [{key: app, tag_name: app}]}
state: {hostPath: ""}
image:
  repository: registry.example/otelcol-nixl
  tag: v1
  digest: sha256:0000000000000000000000000000000000000000000000000000000000000000
  pullPolicy: Always
imagePullSecrets: [{name: pull}]
nameOverride: other
fullnameOverride: other
rbac: {create: false, extraRules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]}
serviceAccount: {create: false, name: other, annotations: {a: b}}
telemetry: {port: 8889}
podMonitor: {enabled: true}
prometheusRule: {enabled: true}
dashboards: {enabled: true}
networkPolicy: {enabled: true}
resources: {limits: {memory: 1Gi}}
priorityClassName: system-node-critical
nodeSelector: {nvidia.com/gpu.present: "true"}
tolerations: [{operator: Exists}]
affinity: {nodeAffinity: {}}
terminationGracePeriodSeconds: 9
maxUnavailable: 1
podAnnotations: {a: b}
podLabels: {a: b}
podSecurityContext: {seLinuxOptions: {type: spc_t}}
securityContext: {capabilities: {add: [SYS_ADMIN]}}
extraEnv: [{name: GOMEMLIMIT, value: 400MiB}]
extraVolumes: [{name: more, emptyDir: {}}]
extraVolumeMounts: [{name: state, mountPath: /more}]
`,
	`otlp: {endpoint: "https://gateway:4317", tls: {caSecret: own}}`: `
otlp: {tls: {caSecret: ca, caKey: root.pem, clientSecret: client, serverName: backend, insecureSkipVerify: true}}
`,
	`mode: kubelet`: `
kubelet: {path: /data/kubelet/pods}
`,
	`mode: sidecar`: `
sidecar: {container: main, runAsUser: 1000, directory: /rings, sizeLimit: 1Gi}
`,
	`{prometheus: {enabled: true}, podMonitor: {enabled: true}, dashboards: {enabled: true}, networkPolicy: {enabled: true}}`: `
prometheus: {port: 9999}
podMonitor: {interval: 10s, labels: {a: b}}
dashboards: {label: other, labelValue: other, labels: {a: b}, annotations: {a: b}}
networkPolicy: {ingressFrom: [{podSelector: {}}], extraEgress: [{ports: [{port: 9092}]}]}
`,
	`prometheusRule: {enabled: true}`: `
prometheusRule:
  labels: {a: b}
  alerts: false
  recordingRules: false
  thresholds: {stragglerSpeed: 0.3, slowerSpeed: 0.3, postShare: 0.3, errorShare: 0.3, agentErrorShare: 0.3, ringFill: 0.3}
  expectedErrors: [not_found]
  uncriticalErrors: []
  grafana: https://grafana.example.com
`,
}

func TestEveryValueHasAnEffect(t *testing.T) {
	t.Parallel()
	unchanged := leaves(t, load(t).Values)
	for given, text := range changes {
		values, err := chartutil.ReadValues([]byte(text))
		must.OK(t, err)
		before := render(t, endpoint, given)
		for path, value := range leaves(t, values) {
			delete(unchanged, path)
			for _, key := range slices.Backward(strings.Split(path, ".")) {
				value = map[string]any{key: value}
			}
			t.Run(path, func(t *testing.T) {
				t.Parallel()
				if after := render(t, endpoint, given, asYAML(t, value)); before.text == after.text {
					t.Errorf("%v changes nothing", value)
				}
			})
		}
	}
	for path := range unchanged {
		t.Errorf("no test changes %s", path)
	}
}

// leaves returns the values at the paths for which the schema has no nested properties.
func leaves(t *testing.T, values map[string]any) map[string]any {
	t.Helper()
	all := make(map[string]any)
	var walk func(prefix string, schema, values map[string]any)
	walk = func(prefix string, schema, values map[string]any) {
		properties, _ := schema["properties"].(map[string]any)
		for name, value := range values {
			property, ok := properties[name].(map[string]any)
			if !ok {
				t.Errorf("values.schema.json has no %s%s", prefix, name)
			} else if table, ok := value.(map[string]any); ok && property["properties"] != nil {
				walk(prefix+name+".", property, table)
			} else {
				all[prefix+name] = value
			}
		}
	}
	var schema map[string]any
	must.OK(t, json.Unmarshal(load(t).Schema, &schema))
	walk("", schema, values)
	return all
}

func TestUnknownAndWrongValuesAreRejected(t *testing.T) {
	t.Parallel()
	for _, values := range []string{
		`otpl: {endpoint: "http://gateway:4317"}`,
		`otlp: {endpiont: "http://gateway:4317"}`,
		`otlp: {tls: {ca: x}}`,
		`otlp: {endpoint: "gateway:4317"}`,
		`otlp: {headersFromSecret: [{name: authorization}]}`,
		`mode: daemonset`,
		`identifyBy: []`,
		`identifyBy: [process]`,
		`collectionInterval: 10`,
		`kubelet: {volumes: [shm]}`,
		`mode: directories`,
		`telemetry: {port: 0}`,
		`image: {digest: latest}`,
		`podLabels: {a: 1}`,
		`otlp: {endpoint: "http://gateway: 4317"}`,
		`collectionInterval: 0s`,
		`collectionInterval: 0m0.0s`,
		`processes: {interval: 0s}`,
		`prometheus: {enabled: true, port: 8888}`,
		`prometheus: {enabled: true, port: 13133}`,
		`telemetry: {port: 13133}`,
		`{mode: sidecar, sidecar: {runAsUser: 0}}`,
	} {
		if _, err := tryRender(t, endpoint, values); err == nil {
			t.Errorf("accepted %s", values)
		}
	}
}
