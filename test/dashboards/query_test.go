// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dashboards

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// grafana has the fields of a Grafana dashboard that the tests use.
type grafana struct {
	UID        string
	Templating struct {
		List []struct {
			Name, Type, Regex string
			Query             any // text or an object
			Multi             bool
		}
	}
	Annotations struct {
		List []struct{ Name, Expr string }
	}
	Panels []panel
}

type panel struct {
	Title   string
	Type    string
	Targets []struct{ Expr string }
	Panels  []panel // of a collapsed row
}

// all yields the panels, including those of collapsed rows.
func (d *grafana) all(yield func(panel) bool) {
	for _, p := range d.Panels {
		for _, q := range append([]panel{p}, p.Panels...) {
			if !yield(q) {
				return
			}
		}
	}
}

const (
	window   = "10s"  // of rates
	host     = "here" // of the agents
	deadHost = "dead" // of the Collector that is killed
	// agent is the agent that the test selects. It has layout v4 because older
	// layouts have fewer metrics.
	agent = "steady-3"
)

// Each form of histograms is tested where it occurs.
func TestAllQueriesAndAlertsReturnData(t *testing.T) {
	start := map[string]func(*testing.T) backend{
		"VictoriaMetrics": startVictoriaMetrics,
		"Prometheus":      func(t *testing.T) backend { t.Helper(); return startPrometheus(t) },
	}
	for kind, forms := range map[string]map[string]string{
		explicit:    {"Prometheus": `nixl_transfer_duration_seconds_bucket{le!=""}`, "VictoriaMetrics": `nixl_transfer_duration_seconds_bucket{le!=""}`},
		exponential: {"Prometheus": "nixl_transfer_duration_seconds", "VictoriaMetrics": `nixl_transfer_duration_seconds_bucket{vmrange!=""}`},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var backends []backend
			for name := range forms {
				backends = append(backends, start[name](t))
			}
			fill(t, kind, backends...)
			for _, b := range backends {
				t.Run(b.name, func(t *testing.T) {
					t.Parallel()
					b.hasData(t, "form of histograms", forms[b.name])
					if b.name == "VictoriaMetrics" {
						b.recordRules(t)
					}
					// Each rule needs the results of the rules before it, so this takes some rounds, and each takes long on
					// a busy machine.
					must.Within(t, 3*must.Patience, func() string { return b.number(t, "count(agent:nixl_transfer_throughput:relative)") })
					t.Run("grafana", b.testGrafana)
					if b.name == "VictoriaMetrics" { // promtool evaluates the alerts as Prometheus does
						t.Run("alerts", b.testAlerts)
					}
				})
			}
		})
	}
}

// severalHosts replaces variables as Grafana does if hosts with these names are selected.
var severalHosts = strings.NewReplacer("$__rate_interval", window, "$host", `(gpu-1\\.example|gpu-2\\.example)`, "$", "")

func (b backend) testGrafana(t *testing.T) {
	paths, err := filepath.Glob(file(t, "dashboards", "grafana", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d dashboards, error %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var d grafana
			readJSON(t, path, &d)
			choices := b.variables(t, &d)
			for p := range d.all {
				if p.Type == "logs" { // these backends have no logs
					continue
				}
				var exprs []string
				for _, target := range p.Targets {
					exprs = append(exprs, choices.Replace(target.Expr))
				}
				if p.Type == "heatmap" { // it has one query for each form of histograms
					b.hasData(t, p.Title, exprs...)
					continue
				}
				for i, expr := range exprs {
					b.hasData(t, p.Title, expr)
					if d.UID != "nixl-cluster" && strings.Contains(p.Targets[i].Expr, "($top, ") { // only two hosts aren't idle
						b.hasTwoSeries(t, p.Title, expr)
					}
				}
			}
			for _, a := range d.Annotations.List {
				for _, expr := range []string{choices.Replace(a.Expr), severalHosts.Replace(a.Expr)} {
					if _, err := b.query(t, expr); err != nil || strings.Contains(expr, "$") {
						t.Errorf("annotation %s: %s: error %v", a.Name, expr, err)
					}
				}
			}
		})
	}
}

// variables checks that each variable has values, and selects one value for a single choice, all for a
// multiple choice, and the two highest or lowest series.
func (b backend) variables(t *testing.T, d *grafana) *strings.Replacer {
	t.Helper()
	values := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	result := regexp.MustCompile(`^query_result\((.*)\)$`)
	chosen := []string{"$__rate_interval", window, "$__range", "30s", "$top", "2"}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		var of struct{ Query string }
		remarshal(t, v.Query, &of)
		if m := result.FindStringSubmatch(of.Query); m != nil {
			chosen = append(chosen, "${"+v.Name+"}", b.result(t, m[1], v.Regex))
			continue
		}
		m := values.FindStringSubmatch(of.Query)
		if m == nil {
			t.Fatalf("variable %s: %s", v.Name, of.Query)
		}
		match := strings.NewReplacer(chosen...).Replace(m[1])
		value := map[string]string{"host": host, "agent": agent}[v.Name]
		must.Eventually(t, func() string {
			text, err := b.get(t, "/api/v1/label/"+m[2]+"/values", url.Values{"match[]": {match}})
			var answer struct{ Data []string }
			if err == nil {
				err = json.Unmarshal(text, &answer)
			}
			if err != nil || len(answer.Data) == 0 || !v.Multi && !slices.Contains(answer.Data, value) {
				return fmt.Sprintf("variable %s, %s of %s: %v, error %v", v.Name, m[2], match, answer.Data, err)
			}
			return ""
		})
		if v.Multi {
			value = ".*" // Grafana's value for all
		}
		chosen = append(chosen, "$"+v.Name, value)
	}
	return strings.NewReplacer(chosen...)
}

// result returns the value of a variable of type query_result. Like Grafana, it
// matches the pattern with the text of each series, and returns "" without a match.
func (b backend) result(t *testing.T, expr, pattern string) string {
	t.Helper()
	list, err := b.query(t, expr)
	must.OK(t, err)
	for _, s := range list {
		var labels []string
		for k, v := range s.labels {
			labels = append(labels, fmt.Sprintf("%s=%q", k, v))
		}
		text := fmt.Sprintf("{%s} %g", strings.Join(labels, ","), s.value)
		if m := regexp.MustCompile(strings.Trim(pattern, "/")).FindStringSubmatch(text); m != nil {
			return m[1]
		}
	}
	return ""
}

// hasData fails the test if no query of a panel ever returns a number.
func (b backend) hasData(t *testing.T, title string, exprs ...string) {
	t.Helper()
	must.Eventually(t, func() string {
		problems := title
		for _, expr := range exprs {
			problem := b.number(t, expr)
			if problem == "" {
				return ""
			}
			problems += ": " + problem
		}
		return problems
	})
}

// hasTwoSeries fails the test if a query of the two highest or lowest series always has others at some point.
func (b backend) hasTwoSeries(t *testing.T, title, expr string) {
	t.Helper()
	must.Eventually(t, func() string {
		now := time.Now().Unix()
		text, err := b.get(t, "/api/v1/query_range", url.Values{
			"query": {expr}, "start": {strconv.FormatInt(now-30, 10)}, "end": {strconv.FormatInt(now, 10)}, "step": {"1s"},
		})
		must.OK(t, err)
		var answer struct {
			Data struct{ Result []json.RawMessage }
		}
		must.OK(t, json.Unmarshal(text, &answer))
		if n := len(answer.Data.Result); n > 2 {
			return fmt.Sprintf("%s: %d series, want 2: %s", title, n, expr)
		}
		return ""
	})
}

// number returns "" if a query returns a number or a native histogram, and
// otherwise a message.
func (b backend) number(t *testing.T, expr string) string {
	t.Helper()
	list, err := b.query(t, expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err) // a retry doesn't help
	}
	for _, s := range list {
		if !math.IsNaN(s.value) && !math.IsInf(s.value, 0) {
			return ""
		}
	}
	return fmt.Sprintf("%s: no number among %d series", expr, len(list))
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	must.OK(t, err)
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
