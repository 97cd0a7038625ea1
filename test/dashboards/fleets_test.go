// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dashboards

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/diagnose/fleets"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
)

// unitTest is a test of promtool.
type unitTest struct {
	Interval string        `json:"interval"`
	Series   []inputSeries `json:"input_series"`
	Exprs    []exprTest    `json:"promql_expr_test"`

	agents int
	fleets []func() // add the series and alerts of each
}

type inputSeries struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

type exprTest struct {
	Expr    string         `json:"expr"`
	At      string         `json:"eval_time"`
	Samples []exprTestWant `json:"exp_samples"`
}

type exprTestWant struct {
	Labels string  `json:"labels"`
	Value  float64 `json:"value"`
}

var only = flag.String("fleets", "", "test only the fleets whose names match this regular expression")

// affordable is the number of hours of agents up to which visitors are tested without -fleets.
const affordable = 16

// unseen has the reasons why no alert knows about some visitors.
var unseen = map[string]string{
	"a NIC renegotiates its speed for 20 seconds every three minutes": "within the three minutes of a rule, the mean is only a third longer",
	"an agent loses its slots until it does nothing":                  "a router that drains an agent gives the same totals: its load fades, and its peers take it over",
}

// Each incident must raise at least a warning in time, and name whom it is about, but nobody else. Healthy
// fleets must not raise a critical alert; those that a person may want to know about may raise a warning. Each fleet is a cluster of its own, so
// promtool can evaluate the rules for several at once, which takes a third of the time.
func TestAlertsNameEachIncidentAndNoHealthyFleet(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	must.OK(t, os.WriteFile(rules, alertsOnly(t), 0o600))
	var tests []*unitTest
	open, native := make(map[string]*unitTest), make(map[string]bool) // by what the fleets must share, and by alert
	known := slices.Concat(fleets.Incidents(), fleets.Healthy(), fleets.Strangers(), fleets.HealthyStrangers())
	visitors := slices.Concat(fleets.Visitors(), fleets.HealthyVisitors())
	for i, f := range slices.Concat(known, visitors) {
		if !regexp.MustCompile(*only).MatchString(f.Name) {
			continue
		}
		if i >= len(known) && *only == "" && float64(len(f.Members))*f.Length.Hours() > affordable {
			continue
		}
		if unseen[f.Name] != "" {
			f.Want, f.Alerts = nil, nil
		}
		// Only the tools say it; or promtool would need a minute, for the same rules.
		if len(f.Want) > 0 && len(f.Alerts) == 0 || len(f.Members) > 100 {
			continue
		}
		kinds := []string{explicit}
		// promtool takes longest for exponential histograms. Three rules read them, and all others read the results
		// of these, so an incident of each alert, one with the speeds of a direction, and a few healthy fleets are enough.
		name := aboutSpeed(f.Alerts)
		if name != "" && !native[name] || f.Name == "a NIC at half speed, but only for writes" || len(f.Alerts) == 0 && i%9 == 0 {
			native[name] = true
			kinds = append(kinds, exponential)
		}
		for _, kind := range kinds {
			shared := fmt.Sprint(kind, f.Length, f.Requests) // running requests have no cluster
			if slices.ContainsFunc(f.Alerts, func(a fleets.Alert) bool { return a.Name == "NIXLNoData" }) {
				shared += f.Name // there is no data at all
			}
			u := open[shared]
			if u == nil || u.agents > 80 {
				u = &unitTest{Interval: fleets.Every.String()}
				open[shared], tests = u, append(tests, u)
			}
			u.agents += len(f.Members)
			u.fleets = append(u.fleets, func() { u.add(&f, kind) })
		}
	}
	for i, u := range tests {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			for _, add := range u.fleets {
				add()
			}
			text, err := json.Marshal(map[string]any{"rule_files": []string{rules}, "evaluation_interval": "1m", "tests": []*unitTest{u}})
			must.OK(t, err)
			path := filepath.Join(t.TempDir(), "test.yaml")
			must.OK(t, os.WriteFile(path, text, 0o600))
			// The other tests have programs that must not wait for the CPU.
			cmd := exec.CommandContext(t.Context(), "nice", "-n19", built.Path(t, "PROMTOOL"), "test", "rules", path)
			cmd.Env = append(os.Environ(), "GOGC=400")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("promtool: %v\n%s", err, out)
			}
		})
	}
}

// aboutSpeed returns the first alert that is about the speed or the size of transfers.
func aboutSpeed(alerts []fleets.Alert) string {
	for _, a := range alerts {
		if slices.Contains([]string{"NIXLStraggler", "NIXLSlower", "NIXLSmallerTransfers"}, a.Name) {
			return a.Name
		}
	}
	return ""
}

// alertsOnly returns the alerts that are more than information, after the rules that they need.
func alertsOnly(t *testing.T) []byte {
	t.Helper()
	recording, needed := rules(t, "rules.yaml"), make(map[string]bool)
	var need func(expr string)
	need = func(expr string) {
		for _, name := range recorded.FindAllString(expr, -1) {
			if needed[name] {
				continue
			}
			needed[name] = true
			for _, r := range recording {
				if r.Record == name {
					need(r.Expr)
				}
			}
		}
	}
	alerts := slices.DeleteFunc(rules(t, "alerts.yaml"), func(a rule) bool { return a.Labels["severity"] == "info" })
	for i := range alerts {
		need(alerts[i].Expr)
		alerts[i].Annotations = nil
	}
	list := append(slices.DeleteFunc(recording, func(r rule) bool { return !needed[r.Record] }), alerts...)
	// The order of groups would be random, so there is one.
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "all", "rules": list}}})
	must.OK(t, err)
	return text
}

// add adds the series of a fleet, and the alerts that must fire or not.
func (u *unitTest) add(f *fleets.Fleet, kind string) {
	for key, values := range newSeries(f, kind) {
		u.Series = append(u.Series, inputSeries{key.name + "{" + key.labels + "}", strings.Join(values, " ")})
	}
	if f.Requests > 0 {
		u.Series = append(u.Series, inputSeries{fmt.Sprintf("vllm:num_requests_running{namespace=%q}", f.Members[0].Namespace), fmt.Sprintf("%gx%d", f.Requests, f.Length/fleets.Every)})
	}
	at, over := f.Length, f.Length
	if len(f.Alerts) > 0 {
		over = cmp.Or(f.Within, fleets.Found-fleets.Begin)
		at = fleets.Begin + over
	}
	firing := func(matchers string) string {
		return fmt.Sprintf(`(count_over_time(ALERTS{alertstate="firing",severity=~"warning|critical",k8s_cluster_name=~%q%s}[%s]))`, "|"+regexp.QuoteMeta(f.Name), matchers, over)
	}
	none := func(by, matchers string) {
		u.Exprs = append(u.Exprs, exprTest{"count by (" + by + ") " + firing(matchers), at.String(), nil})
	}
	some := func(matchers string) {
		u.Exprs = append(u.Exprs, exprTest{"group " + firing(matchers), at.String(), []exprTestWant{{"{}", 1}}})
	}
	if len(f.Alerts) == 0 {
		matchers := ""
		if f.Warns {
			matchers = `,severity="critical"`
		}
		none("alertname, nixl_agent_name, severity", matchers)
		return
	}
	names := make(map[string][]string)
	for _, a := range f.Alerts {
		some(fmt.Sprintf(`,alertname=~%q,%s=%q`, cmp.Or(a.Name, ".+"), a.Label, a.Value))
		names[a.Label] = append(names[a.Label], a.Value)
	}
	if f.Critical {
		some(`,severity="critical"`)
	}
	if f.Lasts {
		u.Exprs = append(u.Exprs, exprTest{fmt.Sprintf(`group(ALERTS{alertstate="firing",alertname=~%q,k8s_cluster_name=%q})`, cmp.Or(f.Alerts[0].Name, ".+"), f.Name), f.Length.String(), []exprTestWant{{"{}", 1}}})
	}
	for label, list := range names {
		if names["host_name"] == nil { // no Collector is to blame
			none("alertname", `,host_name!="",nixl_agent_name=""`)
		}
		if label != "service_name" {
			none("alertname, "+label, fmt.Sprintf(`,%s!="",%[1]s!~%q`, label, strings.Join(list, "|")))
		}
	}
}
