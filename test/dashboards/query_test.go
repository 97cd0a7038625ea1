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
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// grafana is what the tests read of a dashboard.
type grafana struct {
	UID        string
	Templating struct {
		List []struct {
			Name, Type string
			Query      any // text or an object
			Multi      bool
			Current    struct{ Value any }
		}
	}
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

// The window of rates, the host of the agents and, for a single choice, one of
// layout v4: older ones don't tell all there is.
const window, host, agent = "10s", "here", "steady-4"

// TestQueries runs all queries of all dashboards, and all alerts, on each
// backend.
func TestQueries(t *testing.T) {
	backends := []backend{startVictoriaMetrics(t)}
	if os.Getenv("PROMETHEUS") != "" {
		backends = append(backends, startPrometheus(t))
	} else {
		t.Log("without Prometheus: PROMETHEUS doesn't name a program")
	}
	fill(t, backends...)
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			t.Run("grafana", b.testGrafana)
			t.Run("victoriametrics", b.testVMUI)
			t.Run("top", b.testTop)
			t.Run("alerts", b.testAlerts)
		})
	}
}

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
			for _, p := range d.Panels {
				for _, target := range p.Targets {
					b.hasData(t, p.Title, choices.Replace(target.Expr))
				}
			}
		})
	}
}

// variables checks that there is something to choose, and chooses it: one of
// what is single, all of the rest, and what is chosen at first of what is known.
func (b backend) variables(t *testing.T, d *grafana) *strings.Replacer {
	t.Helper()
	query := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	chosen := []string{"$__rate_interval", window, "$__range", "30s"}
	for _, v := range d.Templating.List {
		if v.Type == "custom" {
			chosen = append(chosen, "$"+v.Name, fmt.Sprint(v.Current.Value))
		}
		if v.Type != "query" {
			continue
		}
		var of struct{ Query string }
		remarshal(t, v.Query, &of)
		m := query.FindStringSubmatch(of.Query)
		if m == nil {
			t.Fatalf("variable %s: %s", v.Name, of.Query)
		}
		match := strings.NewReplacer(chosen...).Replace(m[1])
		value := map[string]string{"host": host, "agent": agent}[v.Name]
		proc.Eventually(t, func() string {
			b.record(t, match)
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
			value = ".*" // what Grafana is told to take for all
		}
		chosen = append(chosen, "$"+v.Name, value)
	}
	return strings.NewReplacer(chosen...)
}

func (b backend) testVMUI(t *testing.T) {
	for title, queries := range vmui(t) {
		for _, expr := range queries {
			b.hasData(t, title, expr)
		}
	}
}

// vmui are the queries of VictoriaMetrics' page, by the titles of their panels.
func vmui(t *testing.T) map[string][]string {
	t.Helper()
	var d struct {
		Rows []struct {
			Panels []struct {
				Title string
				Expr  []string
			}
		}
	}
	readJSON(t, file(t, "dashboards", "victoriametrics", "nixl.json"), &d)
	panels := make(map[string][]string)
	for _, r := range d.Rows {
		for _, p := range r.Panels {
			panels[p.Title] = p.Expr
		}
	}
	if len(panels) == 0 {
		t.Fatal("no panels")
	}
	return panels
}

// hasData fails the test where a query doesn't give a number in the end.
func (b backend) hasData(t *testing.T, title, expr string) {
	t.Helper()
	proc.Eventually(t, func() string {
		b.record(t, expr)
		list, err := b.query(t, expr)
		if err != nil {
			return fmt.Sprintf("%s: %s: %v", title, expr, err)
		}
		for _, s := range list {
			if !math.IsNaN(s.value) && !math.IsInf(s.value, 0) {
				return ""
			}
		}
		return fmt.Sprintf("%s: %s: no number among %d series", title, expr, len(list))
	})
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
