// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dashboards

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/diagnose/fleets"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
)

// With the recording rules in Prometheus, why evaluates all alerts. It reads only five minutes itself, so what compares with the past is
// found by the alerts alone. The fleets are the first of each alert, and some healthy ones.
func TestWhySaysWhatTheAlertsOfPrometheusFind(t *testing.T) {
	nixlring, b := built.Path(t, "NIXLRING"), startPrometheusWith(t, promotion(t))
	// The fleets begin a minute after a multiple of five minutes, and 90 seconds later, no such time has passed.
	end := time.Now().Add(-2 * time.Minute).Truncate(5 * time.Minute).Add(time.Minute)
	const healthy = 6
	var all []fleets.Fleet
	known := map[string]bool{"NIXLNoData": true} // there are data
	for _, f := range slices.Concat(fleets.Incidents(), fleets.Healthy()) {
		isNew := slices.ContainsFunc(f.Alerts, func(a fleets.Alert) bool { return !known[a.Name] })
		if f.Length != fleets.Found || len(f.Members) > 16 || !isNew && (len(f.Want)+len(f.Alerts) > 0 || len(all) > len(known)+healthy) {
			continue
		}
		all = append(all, f)
		for _, a := range f.Alerts {
			known[a.Name] = true
		}
	}
	agents := sendFleets(t, all, end, fleets.Found, []backend{b})
	b.send(t, troubledCollector(end))
	why := func(at time.Time) (v struct {
		Agents   int
		Findings []diagnose.Finding
		Checks   []diagnose.Check
	},
	) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), nixlring, "why", "--prometheus", b.url, "--at", strconv.FormatInt(at.Unix(), 10), "--for", "5m", "-o", "json")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, _ := cmd.Output() // its exit code says that there are problems
		if err := json.Unmarshal(out, &v); err != nil {
			t.Fatalf("%v: %s %s", err, out, errs.String())
		}
		return v
	}
	if v := why(end.Add(90*time.Second - fleets.Found)); v.Agents == 0 {
		t.Error("agents are found only after some minutes")
	}

	begin := time.Now()
	b.evaluateRules(t, end)
	t.Logf("the rules took %v for %d agents", time.Since(begin).Round(10*time.Millisecond), agents)
	found, named := make(map[string][]diagnose.Finding), make(map[string]bool)
	v := why(end.Add(30 * time.Second)) // the last evaluation may be late
	for _, f := range v.Findings {
		cluster := ""
		if len(f.Agents) > 0 {
			cluster = f.Agents[0].Cluster
		}
		found[cluster], named[string(f.Kind)] = append(found[cluster], f), true
	}
	for i := range all {
		f := &all[i]
		if len(f.Alerts) == 0 {
			for _, wrong := range f.Misjudged(found[f.Name]) {
				t.Errorf("%s: %s", f.Name, wrong)
			}
		}
		for _, a := range f.Alerts {
			if !slices.ContainsFunc(found[f.Name], func(got diagnose.Finding) bool {
				said := string(got.Kind) == a.Name || slices.ContainsFunc(f.Want, func(w fleets.Want) bool { return w.Kind == got.Kind })
				return said && slices.ContainsFunc(got.Agents, func(id diagnose.Identity) bool {
					return slices.Contains([]string{id.Name, id.Host, id.Pod, id.Service}, a.Value)
				})
			}) {
				t.Errorf("%s: %s of %s isn't found: %v", f.Name, a.Name, a.Value, found[f.Name])
			}
		}
	}
	for _, name := range []string{
		"NIXLSlower", "NIXLAgentStalled", "NIXLJobStalled", "NIXLSmallerTransfers", "NIXLMemoryGrows", "NIXLAgentCrashLoop", "NIXLAgentMissing", "NIXLCollectorGone",
		"NIXLCollectorCrashLoop", "NIXLRingsRefused", "NIXLCheckpointsFail",
	} {
		if !named[name] {
			t.Errorf("%s isn't named, only %v", name, slices.Sorted(maps.Keys(named)))
		}
	}
	if last := v.Checks[len(v.Checks)-1]; !strings.HasPrefix(last.What, "18 evaluated") {
		t.Errorf("%+v, want all alerts", last)
	}
}

// troubledCollector returns the metrics of a Collector that refuses rings, and that can't store checkpoints.
func troubledCollector(end time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	collector := reports(md, map[string]string{"service.name": "otelcol-nixl", "service.instance.id": "troubled"})
	rings := collector.metric("otelcol_receiver_nixl_shm_rings", "{ring}").SetEmptyGauge().DataPoints()
	failures := collector.metric("otelcol_receiver_nixl_shm_checkpoint_failures", "{failure}").SetEmptySum()
	failures.SetIsMonotonic(true)
	failures.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for ago := fleets.Found; ago >= 0; ago -= fleets.Every {
		refused, failed := rings.AppendEmpty(), failures.DataPoints().AppendEmpty()
		refused.SetIntValue(2)
		refused.Attributes().PutStr("state", "refused")
		refused.Attributes().PutStr("reason", "invalid")
		failed.SetIntValue(int64((fleets.Found - ago) / fleets.Every))
		for _, p := range []pmetric.NumberDataPoint{refused, failed} {
			p.SetTimestamp(pcommon.NewTimestampFromTime(end.Add(-ago)))
		}
	}
	return md
}

// evaluateRules makes Prometheus evaluate the recording rules as of the past: for some times, because the rules compare with the past,
// and for each of the last minutes.
func (b backend) evaluateRules(t *testing.T, end time.Time) {
	t.Helper()
	text, err := os.ReadFile(file(t, "dashboards", "rules.yaml"))
	must.OK(t, err)
	path := filepath.Join(t.TempDir(), "rules.yaml")
	must.OK(t, os.WriteFile(b.config, fmt.Appendf(nil, "global: {evaluation_interval: 100ms}\nrule_files: [%s]\n%s", path, promotion(t)), 0o600))
	// What was recorded some minutes before must be found even if that evaluation was late, so a minute is slightly longer.
	const minute, each, rarely = time.Minute + 2*time.Second, 14, 5
	for n := int(fleets.Found / minute); n >= 0; n-- {
		if n > each && n%rarely != 0 {
			continue
		}
		at := end.Add(-time.Duration(n) * minute)
		past := strings.ReplaceAll(string(text), "    interval: 2m\n", "")
		past = strings.ReplaceAll(past, "  - name: ", fmt.Sprintf("  - query_offset: %dms\n    name: ", time.Since(at).Milliseconds()))
		must.OK(t, os.WriteFile(path, []byte(past), 0o600))
		_, err := b.call(t, http.MethodPost, "/-/reload", nil)
		must.OK(t, err)
		reloaded := time.Now()
		must.Eventually(t, func() string { return b.notEvaluated(t, reloaded) })
	}
}

// notEvaluated names the groups of rules that haven't been evaluated since a time.
func (b backend) notEvaluated(t *testing.T, since time.Time) string {
	t.Helper()
	text, err := b.get(t, "/api/v1/rules", url.Values{"type": {"record"}})
	if err != nil {
		return err.Error()
	}
	var answer struct {
		Data struct {
			Groups []struct {
				Name           string
				LastEvaluation time.Time
			}
		}
	}
	must.OK(t, json.Unmarshal(text, &answer))
	var open []string
	for _, g := range answer.Data.Groups {
		if !g.LastEvaluation.After(since) {
			open = append(open, g.Name)
		}
	}
	return strings.Join(open, ", ")
}
