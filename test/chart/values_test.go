// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// changes has a change for each value, and the values that it needs to have an
// effect.
var changes = map[string]struct{ change, given string }{
	"mode":                                      {change: `mode: kubelet`},
	"otlp.endpoint":                             {change: `otlp: {endpoint: "http://other:4317"}`},
	"otlp.protocol":                             {change: `otlp: {protocol: http}`},
	"otlp.compression":                          {change: `otlp: {compression: none}`},
	"otlp.headers":                              {change: `otlp: {headers: {tenant: a}}`},
	"otlp.headersFromSecret":                    {change: `otlp: {headersFromSecret: [{name: authorization, secret: s, key: k}]}`},
	"otlp.tls.caSecret":                         {change: `otlp: {tls: {caSecret: ca}}`, given: tls},
	"otlp.tls.caKey":                            {change: `otlp: {tls: {caKey: root.pem}}`, given: `otlp: {endpoint: "https://gateway:4317", tls: {caSecret: ca}}`},
	"otlp.tls.clientSecret":                     {change: `otlp: {tls: {clientSecret: client}}`, given: tls},
	"otlp.tls.serverName":                       {change: `otlp: {tls: {serverName: backend}}`, given: tls},
	"otlp.tls.insecureSkipVerify":               {change: `otlp: {tls: {insecureSkipVerify: true}}`, given: tls},
	"otlp.exporter":                             {change: `otlp: {exporter: {timeout: 9s}}`},
	"prometheus.enabled":                        {change: `prometheus: {enabled: true}`},
	"prometheus.port":                           {change: `prometheus: {port: 9999}`, given: `prometheus: {enabled: true}`},
	"clusterName":                               {change: `clusterName: east`},
	"collectionInterval":                        {change: `collectionInterval: 30s`},
	"identifyBy":                                {change: `identifyBy: [pod, rank]`},
	"serviceName":                               {change: `serviceName: kv`},
	"processes.interval":                        {change: `processes: {interval: 1s}`},
	"processes.envAttributes":                   {change: `processes: {envAttributes: {RANK: nixl.rank}}`},
	"kubelet.path":                              {change: `kubelet: {path: /data/kubelet/pods}`, given: `mode: kubelet`},
	"kubelet.volumes":                           {change: `kubelet: {volumes: [shm]}`, given: `mode: kubelet`},
	"sidecar.container":                         {change: `sidecar: {container: main}`, given: `mode: sidecar`},
	"sidecar.runAsUser":                         {change: `sidecar: {runAsUser: 1000}`, given: `mode: sidecar`},
	"sidecar.directory":                         {change: `sidecar: {directory: /rings}`, given: `mode: sidecar`},
	"sidecar.sizeLimit":                         {change: `sidecar: {sizeLimit: 1Gi}`, given: `mode: sidecar`},
	"receiver":                                  {change: `receiver: {max_rings: 9}`},
	"config":                                    {change: `config: {processors: {memory_limiter: {limit_percentage: 70}}}`},
	"kubernetesAttributes.enabled":              {change: `kubernetesAttributes: {enabled: false}`},
	"kubernetesAttributes.metadata":             {change: `kubernetesAttributes: {metadata: [k8s.pod.name]}`},
	"kubernetesAttributes.labels":               {change: `kubernetesAttributes: {labels: [{key: app, tag_name: app}]}`},
	"kubernetesAttributes.annotations":          {change: `kubernetesAttributes: {annotations: [{key: app, tag_name: app}]}`},
	"state.hostPath":                            {change: `state: {hostPath: ""}`},
	"image.repository":                          {change: `image: {repository: registry.example/otelcol-nixl}`},
	"image.tag":                                 {change: `image: {tag: v1}`},
	"image.digest":                              {change: `image: {digest: "sha256:` + strings.Repeat("0", 64) + `"}`},
	"image.pullPolicy":                          {change: `image: {pullPolicy: Always}`},
	"imagePullSecrets":                          {change: `imagePullSecrets: [{name: pull}]`},
	"nameOverride":                              {change: `nameOverride: other`},
	"fullnameOverride":                          {change: `fullnameOverride: other`},
	"rbac.create":                               {change: `rbac: {create: false}`},
	"rbac.extraRules":                           {change: `rbac: {extraRules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]}`},
	"serviceAccount.create":                     {change: `serviceAccount: {create: false}`},
	"serviceAccount.name":                       {change: `serviceAccount: {name: other}`},
	"serviceAccount.annotations":                {change: `serviceAccount: {annotations: {a: b}}`},
	"telemetry.port":                            {change: `telemetry: {port: 8889}`},
	"podMonitor.enabled":                        {change: `podMonitor: {enabled: true}`},
	"podMonitor.interval":                       {change: `podMonitor: {interval: 10s}`, given: `podMonitor: {enabled: true}`},
	"podMonitor.labels":                         {change: `podMonitor: {labels: {a: b}}`, given: `podMonitor: {enabled: true}`},
	"prometheusRule.enabled":                    {change: `prometheusRule: {enabled: true}`},
	"prometheusRule.labels":                     {change: `prometheusRule: {labels: {a: b}}`, given: `prometheusRule: {enabled: true}`},
	"prometheusRule.alerts":                     {change: `prometheusRule: {alerts: false}`, given: `prometheusRule: {enabled: true}`},
	"prometheusRule.recordingRules":             {change: `prometheusRule: {recordingRules: false}`, given: `prometheusRule: {enabled: true}`},
	"prometheusRule.thresholds.stragglerSpeed":  {change: `prometheusRule: {thresholds: {stragglerSpeed: 0.3}}`, given: `prometheusRule: {enabled: true}`},
	"prometheusRule.thresholds.slowerSpeed":     {change: `prometheusRule: {thresholds: {slowerSpeed: 0.3}}`, given: `prometheusRule: {enabled: true}`},
	"prometheusRule.thresholds.postShare":       {change: `prometheusRule: {thresholds: {postShare: 0.3}}`, given: `prometheusRule: {enabled: true}`},
	"prometheusRule.thresholds.errorShare":      {change: `prometheusRule: {thresholds: {errorShare: 0.3}}`, given: `prometheusRule: {enabled: true}`},
	"prometheusRule.thresholds.agentErrorShare": {change: `prometheusRule: {thresholds: {agentErrorShare: 0.3}}`, given: `prometheusRule: {enabled: true}`},
	"prometheusRule.thresholds.ringFill":        {change: `prometheusRule: {thresholds: {ringFill: 0.3}}`, given: `prometheusRule: {enabled: true}`},
	"prometheusRule.grafana":                    {change: `prometheusRule: {grafana: "https://grafana.example.com"}`, given: `prometheusRule: {enabled: true}`},
	"dashboards.enabled":                        {change: `dashboards: {enabled: true}`},
	"dashboards.label":                          {change: `dashboards: {label: other}`, given: `dashboards: {enabled: true}`},
	"dashboards.labelValue":                     {change: `dashboards: {labelValue: other}`, given: `dashboards: {enabled: true}`},
	"dashboards.labels":                         {change: `dashboards: {labels: {a: b}}`, given: `dashboards: {enabled: true}`},
	"dashboards.annotations":                    {change: `dashboards: {annotations: {a: b}}`, given: `dashboards: {enabled: true}`},
	"networkPolicy.enabled":                     {change: `networkPolicy: {enabled: true}`},
	"networkPolicy.ingressFrom":                 {change: `networkPolicy: {ingressFrom: [{podSelector: {}}]}`, given: `networkPolicy: {enabled: true}`},
	"networkPolicy.extraEgress":                 {change: `networkPolicy: {extraEgress: [{ports: [{port: 9092}]}]}`, given: `networkPolicy: {enabled: true}`},
	"resources":                                 {change: `resources: {limits: {memory: 1Gi}}`},
	"priorityClassName":                         {change: `priorityClassName: system-node-critical`},
	"nodeSelector":                              {change: `nodeSelector: {nvidia.com/gpu.present: "true"}`},
	"tolerations":                               {change: `tolerations: [{operator: Exists}]`},
	"affinity":                                  {change: `affinity: {nodeAffinity: {}}`},
	"terminationGracePeriodSeconds":             {change: `terminationGracePeriodSeconds: 9`},
	"maxUnavailable":                            {change: `maxUnavailable: 1`},
	"podAnnotations":                            {change: `podAnnotations: {a: b}`},
	"podLabels":                                 {change: `podLabels: {a: b}`},
	"podSecurityContext":                        {change: `podSecurityContext: {seLinuxOptions: {type: spc_t}}`},
	"securityContext":                           {change: `securityContext: {capabilities: {add: [SYS_ADMIN]}}`},
	"extraEnv":                                  {change: `extraEnv: [{name: GOMEMLIMIT, value: 400MiB}]`},
	"extraVolumes":                              {change: `extraVolumes: [{name: more, emptyDir: {}}]`},
	"extraVolumeMounts":                         {change: `extraVolumeMounts: [{name: state, mountPath: /more}]`},
}

// tls sets an endpoint with TLS.
const tls = `otlp: {endpoint: "https://gateway:4317"}`

func TestEveryValueHasAnEffect(t *testing.T) {
	t.Parallel()
	paths := leaves(t)
	for path := range maps.Keys(changes) {
		if !slices.Contains(paths, path) {
			t.Errorf("values.yaml has no %s", path)
		}
	}
	for _, path := range paths {
		c, ok := changes[path]
		if !ok {
			t.Errorf("no test changes %s", path)
			continue
		}
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			given := []string{endpoint, c.given}
			before, after := render(t, given...), render(t, append(given, c.change)...)
			if before.text == after.text {
				t.Errorf("%s changes nothing", c.change)
			}
		})
	}
}

// leaves returns the paths in values.yaml for which the schema has no nested
// properties.
func leaves(t *testing.T) (paths []string) {
	t.Helper()
	var walk func(prefix string, schema, values map[string]any)
	walk = func(prefix string, schema, values map[string]any) {
		properties, _ := schema["properties"].(map[string]any)
		for name, value := range values {
			property, ok := properties[name].(map[string]any)
			if !ok {
				t.Errorf("values.schema.json has no %s%s", prefix, name)
				continue
			}
			if table, ok := value.(map[string]any); ok && property["properties"] != nil {
				walk(prefix+name+".", property, table)
				continue
			}
			paths = append(paths, prefix+name)
		}
		for name := range properties {
			if _, ok := values[name]; !ok && prefix+name != "global" {
				t.Errorf("values.yaml has no %s%s", prefix, name)
			}
		}
	}
	walk("", schema(t), load(t).Values)
	return paths
}

func schema(t *testing.T) (schema map[string]any) {
	t.Helper()
	must.OK(t, json.Unmarshal(load(t).Schema, &schema))
	return schema
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
		`kubelet: {volumes: []}`,
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
