// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// everything turns on all optional objects.
const everything = `
otlp:
  endpoint: https://backend:4317
  headers: {tenant: $a}
  headersFromSecret: [{name: authorization, secret: backend, key: token}]
  tls: {caSecret: ca, clientSecret: client}
prometheus: {enabled: true}
clusterName: east
podMonitor: {enabled: true}
prometheusRule: {enabled: true}
dashboards: {enabled: true}
networkPolicy: {enabled: true}
`

// Review each change of these files: which privileges the Collector has, which directories of the node
// it sees, and whether volumes, ports, labels and variables match.
func TestChartRendersTheGoldenFiles(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]string{
		"least":     {endpoint},
		"processes": {everything},
		"kubelet":   {everything, "mode: kubelet"},
		"sidecar":   {everything, "mode: sidecar"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := render(t, values...)
			compareGolden(t, filepath.Join("testdata", name+".yaml"), m.golden(load(t).Metadata.Version))
		})
	}
}

// golden returns the notes and the objects, without comments, and without copies of the files in dashboards/.
func (m *manifests) golden(version string) string {
	list, _ := documents(strings.NewReader(m.text)) // reading a string doesn't fail
	list = slices.DeleteFunc(list, func(d string) bool {
		return strings.Contains(d, "kind: PrometheusRule\n") || strings.Contains(d, "grafana_dashboard:")
	})
	for i, d := range list {
		list[i] = regexp.MustCompile(`(?m)^ *(#.*)?\n`).ReplaceAllString(strings.TrimSpace(d)+"\n", "")
	}
	slices.Sort(list)
	text := strings.Join(append(list, m.notes), "---\n")
	text = regexp.MustCompile(`checksum/config: \w+`).ReplaceAllString(text, "checksum/config: SUM")
	return strings.ReplaceAll(text, version, "VERSION")
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		must.OK(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	must.OK(t, err)
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("%s isn't what the chart renders; run the test with -update (-want +got):\n%s", file, d)
	}
}
