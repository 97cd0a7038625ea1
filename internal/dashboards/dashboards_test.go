// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/dashboards"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// promName returns the Prometheus name of a metric in the catalog.
func promName(m semconv.Metric) string {
	name := strings.ReplaceAll(m.Name, ".", "_")
	switch m.Unit {
	case "s":
		name += "_seconds"
	case "By":
		name += "_bytes"
	case "By/s":
		name += "_bytes_per_second"
	case "1":
		if m.Kind == semconv.Gauge {
			name += "_ratio"
		}
	default: // {event}
	}
	if m.Kind == semconv.Counter {
		name += "_total"
	}
	return name
}

// known returns the names of all series of the project's metrics.
func known() map[string]bool {
	names := make(map[string]bool)
	for _, m := range slices.Concat(semconv.NIXL(), semconv.RingKernel(), semconv.SplitInference()) {
		name := promName(m)
		if m.Kind != semconv.Histogram {
			names[name] = true
			continue
		}
		for _, part := range []string{"", "_bucket", "_sum", "_count"} { // without a suffix, it is a native histogram
			names[name+part] = true
		}
	}
	return names
}

var (
	word   = regexp.MustCompile(`\b((nixl|ringkernel|splitinfer)_|(host\w*|agent|lane|band|job\w*|namespace|alert):)[\w:]+`)
	legend = regexp.MustCompile(`{{(\w+)}}`)
)

// labels returns the labels that series may have.
func labels() []string {
	list := []string{
		"le", "vmrange", "kind", "service_name", "host_name", "nixl_agent_name", "k8s_cluster_name", "k8s_namespace_name", "k8s_pod_name",
		"gen_ai_request_model",
	}
	for _, m := range slices.Concat(semconv.NIXL(), semconv.RingKernel(), semconv.SplitInference()) {
		for _, a := range slices.Concat(m.Attributes, m.Conditional) {
			list = append(list, strings.ReplaceAll(a, ".", "_"))
		}
	}
	return list
}

// yaml returns a file of rules.
func yaml(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "dashboards", name))
	must.OK(t, err)
	return string(text)
}

// panels yields all panels of all dashboards.
func panels(yield func(dashboards.Dashboard, dashboards.Panel) bool) {
	for _, d := range dashboards.Grafana() {
		for _, r := range d.Rows {
			for _, p := range r.Panels {
				if !yield(d, p) {
					return
				}
			}
		}
	}
}

// queries yields where queries of metrics are, and the queries.
func queries(yield func(string, dashboards.Query) bool) {
	for d, p := range panels {
		for _, q := range p.Queries {
			if p.Kind != dashboards.Logs && !yield(d.UID+": "+p.Title, q) {
				return
			}
		}
	}
}

func TestQueriesNameOnlyMetricsAndLabelsOfTheCatalog(t *testing.T) {
	names, labels := known(), labels()
	rules := yaml(t, "rules.yaml")
	for _, m := range regexp.MustCompile(`- record: (\S+)`).FindAllStringSubmatch(rules, -1) {
		names[m[1]] = true
	}
	check := func(what, expr string) {
		t.Helper()
		for _, w := range word.FindAllString(expr, -1) {
			if !names[w] && !slices.Contains(labels, w) {
				t.Errorf("%s: %q is neither a metric nor a label", what, w)
			}
		}
	}
	for _, d := range dashboards.Grafana() {
		for _, v := range d.Variables {
			unknown := func(metric string) bool { return !names[metric] }
			metrics := word.FindAllString(v.Metric, -1)
			if v.Options == nil && (len(metrics) == 0 || slices.ContainsFunc(metrics, unknown) || !slices.Contains(labels, v.Key)) {
				t.Errorf("%s: variable %s is %s of %s", d.UID, v.Name, v.Key, v.Metric)
			}
		}
	}
	for at, q := range queries {
		check(at, q.Expr+q.Rank)
	}
	for _, file := range []string{"rules.yaml", "alerts.yaml"} {
		for line := range strings.Lines(yaml(t, file)) {
			if !strings.Contains(line, "runbook_url") && !strings.Contains(line, `"nixl`) && !strings.HasPrefix(line, "#") {
				check(file, line)
			}
		}
	}
}

func TestPanelsHaveTitleDescriptionUnitAndLegends(t *testing.T) {
	titles := make(map[string]bool)
	labels := append(labels(), "finding", "collector", "exporter", "state", "reason", "Hostname", "gpu", "model", "model_name", "instance", "device", "port")
	for d, p := range panels {
		if p.Title == "" || p.Description == "" || p.Unit == (dashboards.Unit{}) && p.Kind != dashboards.Table && p.Kind != dashboards.Logs {
			t.Errorf("%s: panel %q lacks a title, a description or a unit", d.UID, p.Title)
		}
		key := d.UID + string(p.Kind) + p.Title
		if titles[key] {
			t.Errorf("%s: two panels %q", d.UID, p.Title)
		}
		titles[key] = true
	}
	for at, q := range queries {
		for _, m := range legend.FindAllStringSubmatch(q.Legend, -1) {
			if !slices.Contains(labels, m[1]) {
				t.Errorf("%s: no label %q for the legend", at, m[1])
			}
		}
		if strings.Contains(q.Legend, "nixl_agent_name") && !strings.Contains(q.Legend, "host_name") {
			t.Errorf("%s: legend %q doesn't name the host of the agent", at, q.Legend)
		}
	}
}

// If peers depended on the selected agents, a straggler that is selected alone would be as fast as
// its peers.
func TestPeersDoNotDependOnTheSelectedAgents(t *testing.T) {
	for at, q := range queries {
		if strings.Contains(q.Expr, "quantile by ("+"k8s_cluster_name") {
			t.Errorf("%s compares the selected agents with each other: %s", at, q.Expr)
		}
	}
}

// Recorded series of agents don't have the label of the model.
func TestRecordedSeriesAreNotSelectedByTheModel(t *testing.T) {
	files, err := dashboards.Files()
	must.OK(t, err)
	selected := regexp.MustCompile(`agent:[\w:]+{[^}]*}`)
	found := 0
	for name, text := range files {
		for _, s := range selected.FindAllString(string(text), -1) {
			found++
			if strings.Contains(s, "gen_ai_request_model") {
				t.Errorf("%s: %s", name, s)
			}
		}
	}
	if found == 0 {
		t.Error("no dashboard selects recorded series")
	}
}

// Grafana replaces variables in queries of logs as text, and the names of attributes differ by backend.
func TestLogsAreThoseOfTheSelectedAgent(t *testing.T) {
	found := 0
	for d, p := range panels {
		if p.Kind != dashboards.Logs {
			continue
		}
		found++
		for _, name := range []string{"nixl.agent.name", "host.name", semconv.TransferSizeBytes} {
			if expr := p.Queries[0].Expr; !strings.Contains(expr, name) && !strings.Contains(expr, strings.ReplaceAll(name, ".", "_")) {
				t.Errorf("%s: %s doesn't select %s", d.UID, expr, name)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d panels of logs", found)
	}
}

// Series of other programs don't have the labels that the variables select.
func TestVariablesSelectTheSeriesOfAllPanels(t *testing.T) {
	foreign := regexp.MustCompile(`otelcol_|DCGM_|dynamo_|vllm[:_]|node_(infiniband|network)_`)
	for at, q := range queries {
		if foreign.MatchString(q.Expr) == strings.Contains(q.Expr, "{@") {
			t.Errorf("%s: the variables select the wrong series: %s", at, q.Expr)
		}
	}
}

func TestPanelsOfAgentsOrHostsAreLimitedByTheVariable(t *testing.T) {
	each := regexp.MustCompile(`^\(?[a-z_]+(\(0.\d+, sum)? by \([^)]*(host_name|nixl_agent_name)`)
	for d, p := range panels {
		chosen := slices.ContainsFunc(d.Variables, func(v dashboards.Variable) bool { return v.Name == "top" })
		for _, q := range p.Queries {
			if each.MatchString(q.Expr) && chosen && q.Rank == "" || q.Rank != "" && !chosen {
				t.Errorf("%s: %s: series of each host or agent aren't ranked: %s", d.UID, p.Title, q.Expr)
			}
		}
	}
}

// The receiver's configuration and the backend determine whether a histogram has buckets or is
// native.
func TestQueriesOfHistogramsHaveBothForms(t *testing.T) {
	buckets := regexp.MustCompile(`\b((?:nixl|ringkernel|splitinfer|dynamo|vllm)[\w:]+)_bucket\b`)
	check := func(what, expr string) {
		t.Helper()
		for _, m := range buckets.FindAllStringSubmatch(expr, -1) {
			if !regexp.MustCompile(m[1] + `[{\[:]`).MatchString(expr) {
				t.Errorf("%s: no native form of %s: %s", what, m[1], expr)
			}
		}
	}
	for d, p := range panels {
		all := ""
		for _, q := range p.Queries {
			all += q.Expr + q.Rank
		}
		check(d.UID+": "+p.Title, all)
	}
	check("rules.yaml", yaml(t, "rules.yaml"))
}

func TestFilesHaveNoPlaceholdersLeft(t *testing.T) {
	files, err := dashboards.Files()
	must.OK(t, err)
	if len(files) != len(dashboards.Grafana()) {
		t.Errorf("only %d files: %v", len(files), slices.Sorted(maps.Keys(files)))
	}
	for name, text := range files {
		for _, left := range []string{"{@", "[@]", "now(", "{,", ",}", `\u003`, "__inputs"} {
			if strings.Contains(string(text), left) {
				t.Errorf("%s: %q is left", name, left)
			}
		}
	}
}

// Grafana's sidecar needs one file per dashboard, with a stable UID.
func TestFilesHaveTheirUIDAndPanelsThatDoNotOverlap(t *testing.T) {
	type panel struct {
		ID      int
		GridPos struct{ X, Y, W, H int }
		Panels  []panel
	}
	files, err := dashboards.Files()
	must.OK(t, err)
	for _, d := range dashboards.Grafana() {
		var got struct {
			UID, Title, Refresh string
			ID                  *int
			Panels              []panel
		}
		must.OK(t, json.Unmarshal(files["grafana/"+d.UID+".json"], &got))
		if got.UID != d.UID || got.Title != d.Title {
			t.Errorf("%s has the UID %q and the title %q", d.UID, got.UID, got.Title)
		}
		if got.ID != nil || got.Refresh == "" {
			t.Errorf("%s has an ID, or isn't refreshed", d.UID)
		}
		places, ids := make(map[[2]int]int), make(map[int]bool)
		var place func([]panel)
		place = func(list []panel) {
			for _, p := range list {
				if ids[p.ID] {
					t.Errorf("%s: two panels %d", d.UID, p.ID)
				}
				ids[p.ID] = true
				for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
					for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
						if other, taken := places[[2]int{x, y}]; taken || x >= 24 {
							t.Fatalf("%s: panel %d overlaps panel %d or the edge", d.UID, p.ID, other)
						}
						places[[2]int{x, y}] = p.ID
					}
				}
				place(p.Panels)
			}
		}
		place(got.Panels)
	}
}
