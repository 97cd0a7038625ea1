// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

func TestHelmLintFindsNothing(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		values := map[string]any{"mode": mode, "otlp": map[string]any{"endpoint": "http://gateway:4317"}}
		linter := lint.All(chartDir, values, namespace, true)
		for _, message := range linter.Messages {
			if message.Severity > support.InfoSev {
				t.Errorf("mode %s: %v", mode, message)
			}
		}
	}
}

func collectorOf(t *testing.T, pod corev1.PodSpec) corev1.Container {
	t.Helper()
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		if c.Name == "otelcol-nixl" {
			return c
		}
	}
	t.Fatal("the pod has no Collector")
	return corev1.Container{}
}

func TestReleaseWithoutDestinationIsRejected(t *testing.T) {
	t.Parallel()
	if _, err := tryRender(t); err == nil || !strings.Contains(err.Error(), "otlp.endpoint") {
		t.Errorf("error %v", err)
	}
	for _, values := range []string{
		"prometheus: {enabled: true}",
		"config: {exporters: {debug: {}}, service: {pipelines: {metrics: {exporters: [debug]}}}}",
	} {
		render(t, values)
	}
}

// The default image is the one that the Dockerfile builds at a tag. The release
// script changes the version of both.
func TestChartHasTheVersionOfTheCollector(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../builder-full.yaml")
	must.OK(t, err)
	var recipe struct{ Dist struct{ Version string } }
	must.OK(t, yaml.Unmarshal(text, &recipe))
	if m := load(t).Metadata; m.Version != recipe.Dist.Version || m.AppVersion != recipe.Dist.Version {
		t.Errorf("version %s, appVersion %s, the recipe has %s", m.Version, m.AppVersion, recipe.Dist.Version)
	}
}

// A change of the configuration must start a rollout.
func TestConfigurationChangeRollsOut(t *testing.T) {
	t.Parallel()
	sum := func(values ...string) string {
		return render(t, values...).daemonSet.Spec.Template.Annotations["checksum/config"]
	}
	if a, b := sum(endpoint), sum(endpoint, "collectionInterval: 11s"); a == b || a == "" {
		t.Errorf("checksums %q and %q", a, b)
	}
	if a, b := sum(endpoint), sum(endpoint, "podMonitor: {enabled: true}"); a != b {
		t.Errorf("checksums %q and %q, but the configuration is the same", a, b)
	}
}

// The user's values replace the chart's values, even with false and 0.
func TestConfigurationIsMergedOverTheChartsOwn(t *testing.T) {
	t.Parallel()
	m := render(t, endpoint, `
receiver:
  stale_after: 7m
  storage: ""
  histograms: {size: {kind: none}}
  discovery: {processes: {otel_resource_attributes: ["team.*"]}}
otlp: {exporter: {sending_queue: {queue_size: 9}}}
config:
  processors: {k8s_attributes: {wait_for_metadata: true}}
  exporters: {otlp_grpc: {retry_on_failure: {enabled: false}}}
`)
	compareGolden(t, filepath.Join("testdata", "merged.yaml"), m.configMap.Data["config.yaml"])
}

// The chart links to the files in dashboards/. Helm packages what they link to.
func TestPrometheusObjectsHaveEveryRuleAndDashboard(t *testing.T) {
	t.Parallel()
	m := render(t, everything)
	want := 0
	for _, pattern := range []string{"alerts*.yaml", "rules*.yaml"} {
		paths, err := filepath.Glob(filepath.Join("../../dashboards", pattern))
		must.OK(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			must.OK(t, err)
			var file struct{ Groups []struct{ Rules []any } }
			must.OK(t, yaml.Unmarshal(text, &file))
			for _, g := range file.Groups {
				want += len(g.Rules)
			}
		}
	}
	got := 0
	for _, g := range m.rule.Spec.Groups {
		got += len(g.Rules)
	}
	if got != want || want == 0 {
		t.Errorf("%d rules, dashboards/ has %d", got, want)
	}
	files, err := filepath.Glob("../../dashboards/grafana/*.json")
	if err != nil || len(m.dashboards) != len(files) {
		t.Errorf("%d dashboards, dashboards/grafana has %d (error %v)", len(m.dashboards), len(files), err)
	}
	for _, c := range m.dashboards {
		for name, text := range c.Data {
			if c.Labels["grafana_dashboard"] != "1" || !json.Valid([]byte(text)) {
				t.Errorf("%s: labels %v, valid JSON %v", name, c.Labels, json.Valid([]byte(text)))
			}
		}
	}
}

// An alert's command finds the Collector in the namespace of the release.
func TestCommandsOfAlertsHaveTheReleasesNamespace(t *testing.T) {
	t.Parallel()
	commands := 0
	for _, g := range render(t, everything).rule.Spec.Groups {
		for _, r := range g.Rules {
			command, ok := r.Annotations["command"]
			if !ok {
				continue
			}
			commands++
			if strings.Count(command, "kubectl ") != strings.Count(command, "kubectl -n "+namespace+" ") {
				t.Errorf("%s: %s", r.Alert, command)
			}
		}
	}
	if commands == 0 {
		t.Error("no alert has a command")
	}
}

func TestExpectedErrorsAreThoseOfTheValues(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"{}": "nixl_expected:error_type canceled, nixl_uncritical:error_type not_found",
		"prometheusRule: {expectedErrors: [canceled, not_found], uncriticalErrors: []}": "nixl_expected:error_type canceled, nixl_expected:error_type not_found",
	} {
		var got []string
		for _, g := range render(t, everything, values).rule.Spec.Groups {
			for _, r := range g.Rules {
				if status := r.Labels["error_type"]; r.Record != "" && status != "" {
					got = append(got, r.Record+" "+status)
				}
			}
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s renders the rules %q, want %q", values, got, want)
		}
	}
}
