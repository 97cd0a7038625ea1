// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dashboards

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/diagnose/fleets"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
)

// Each incident must raise at least a warning in time, and name whom it is about, but nobody else. Healthy
// fleets must not raise a critical alert, and few may raise a warning.
func TestAlertsNameEachIncidentAndNoHealthyFleet(t *testing.T) {
	warns := 0
	for i, f := range slices.Concat(fleets.Incidents(), fleets.Healthy()) {
		if f.Warns {
			warns++
		}
		// Only the tools say it; or promtool would need a minute, for the same rules.
		if len(f.Want) > 0 && len(f.Alerts) == 0 || len(f.Members) > 100 {
			continue
		}
		kinds := []string{explicit}
		// promtool takes longest for exponential histograms, and only rules about speed and size read histograms.
		if len(f.Members) <= 16 && (aboutSpeed(f.Alerts) || len(f.Alerts) == 0 && i%3 == 0) {
			kinds = append(kinds, exponential)
		}
		for _, kind := range kinds {
			t.Run(f.Name+", "+kind, func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "test.yaml")
				must.OK(t, os.WriteFile(path, unitTest(t, &f, kind), 0o600))
				out, err := exec.CommandContext(t.Context(), built.Path(t, "PROMTOOL"), "test", "rules", path).CombinedOutput()
				if err != nil {
					t.Errorf("promtool: %v\n%s", err, out)
				}
			})
		}
	}
	if warns > 2 {
		t.Errorf("%d healthy fleets raise warnings", warns)
	}
}

// aboutSpeed reports whether an incident is found by the speed or the size of transfers.
func aboutSpeed(alerts []fleets.Alert) bool {
	names := []string{"NIXLStraggler", "NIXLAgentSlower", "NIXLJobSlower", "NIXLSmallerTransfers"}
	return slices.ContainsFunc(alerts, func(a fleets.Alert) bool { return slices.Contains(names, a.Name) })
}

// unitTest returns a test of promtool: the series of a fleet, and the alerts that must fire or not.
func unitTest(t *testing.T, f *fleets.Fleet, kind string) []byte {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "rule_files: [%q, %q]\nevaluation_interval: 1m\ntests:\n- interval: %s\n  input_series:\n",
		file(t, "dashboards", "rules.yaml"), file(t, "dashboards", "alerts.yaml"), fleets.Every)
	list := newSeries(f, kind)
	if f.Requests > 0 {
		list["vllm:num_requests_running{model_name=\"m\"}"] = []string{fmt.Sprintf("%gx%d", f.Requests, f.Length/fleets.Every)}
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		fmt.Fprintf(&b, "  - {series: '%s', values: '%s'}\n", name, strings.Join(list[name], " "))
	}
	b.WriteString("  promql_expr_test:\n")
	at := f.Length
	expect := func(expr, samples string) {
		fmt.Fprintf(&b, "  - {expr: '%s', eval_time: %s, exp_samples: %s}\n", expr, at, samples)
	}
	const some, none = "[{labels: '{}', value: 1}]", "[]"
	firing := func(matchers string, over time.Duration) string {
		return fmt.Sprintf(`count_over_time(ALERTS{alertstate="firing",severity=~"warning|critical"%s}[%s])`, matchers, over)
	}
	if len(f.Alerts) == 0 {
		matchers := ""
		if f.Warns {
			matchers = `,severity="critical"`
		}
		expect("count by (alertname, nixl_agent_name, severity) ("+firing(matchers, f.Length)+")", none)
		return []byte(b.String())
	}
	within := cmp.Or(f.Within, fleets.Found-fleets.Begin)
	at = fleets.Begin + within
	names := make(map[string][]string)
	for _, a := range f.Alerts {
		expect(fmt.Sprintf("group (%s)", firing(fmt.Sprintf(`,alertname=%q,%s=%q`, a.Name, a.Label, a.Value), within)), some)
		names[a.Label] = append(names[a.Label], a.Value)
	}
	if f.Critical {
		expect(fmt.Sprintf("group (%s)", firing(`,severity="critical"`, within)), some)
	}
	for label, list := range names {
		if label != "host_name" { // no Collector is to blame
			expect("count by (alertname) ("+firing(`,host_name!="",nixl_agent_name=""`, within)+")", none)
		}
		if label != "service_name" {
			expect(fmt.Sprintf("count by (alertname, %s) (%s)", label, firing(fmt.Sprintf(`,%s!="",%[1]s!~%q`, label, strings.Join(list, "|")), within)), none)
		}
	}
	return []byte(b.String())
}

// newSeries returns the values of each series of a fleet, one per sample.
func newSeries(f *fleets.Fleet, kind string) map[string][]string {
	list := make(map[string][]string)
	directions := []string{`, nixl_transfer_direction="transmit"`, `, nixl_transfer_direction="receive"`}
	for i, readings := range f.Readings() {
		for n := range readings {
			r := &readings[n]
			labels := labelsOf(r.Identity)
			if r.Stream > 0 {
				labels += fmt.Sprintf(", instance=%q", fmt.Sprint(r.Stream))
			}
			add := func(name, more string, v any) {
				key := name + "{" + labels + more + "}"
				for len(list[key]) < i {
					list[key] = append(list[key], "_")
				}
				list[key] = append(list[key], fmt.Sprint(v))
			}
			addCounters(r, add)
			sum := r.Both()
			for n, d := range r.Moved {
				add("nixl_transfer_io_bytes_total", directions[n], d.Bytes)
				add("nixl_transfer_requests_total", directions[n], d.Transfers)
				if kind == exponential {
					add("nixl_transfer_throughput_bytes_per_second", directions[n], native(r.Speeds[n], float64(d.Transfers)))
				} else {
					addBuckets("nixl_transfer_throughput_bytes_per_second", directions[n], r.Speeds[n], add)
				}
			}
			if kind == exponential {
				add("nixl_transfer_duration_seconds", "", native(r.Times, sum.Seconds))
				add("nixl_transfer_size_bytes", "", native(r.Sizes, float64(sum.Bytes)))
				add("nixl_transfer_post_duration_seconds", "", native(diagnose.Histogram{Bounds: []float64{1}, Counts: []uint64{sum.Transfers, 0}}, r.Post))
				continue
			}
			for name, h := range map[string]diagnose.Histogram{"nixl_transfer_duration_seconds": r.Times, "nixl_transfer_size_bytes": r.Sizes} {
				addBuckets(name, "", h, add)
			}
			add("nixl_transfer_duration_seconds_sum", "", sum.Seconds)
			add("nixl_transfer_duration_seconds_count", "", sum.Transfers)
			add("nixl_transfer_size_bytes_sum", "", sum.Bytes)
			add("nixl_transfer_size_bytes_count", "", sum.Transfers)
			add("nixl_transfer_post_duration_seconds_sum", "", r.Post)
			add("nixl_transfer_post_duration_seconds_count", "", sum.Transfers)
		}
	}
	return list
}

func labelsOf(a diagnose.Identity) string {
	var labels []string
	for _, l := range []struct{ name, value string }{
		{"k8s_namespace_name", a.Namespace}, {"service_name", a.Service}, {"k8s_pod_name", a.Pod}, {"host_name", a.Host}, {"nixl_agent_name", a.Name},
	} {
		if l.value != "" {
			labels = append(labels, fmt.Sprintf("%s=%q", l.name, l.value))
		}
	}
	return strings.Join(labels, ", ")
}

func addCounters(r *fleets.Reading, add func(name, more string, v any)) {
	add("nixl_agent_up", "", int(r.Up)-int(diagnose.No))
	add("nixl_telemetry_ring_capacity", "", 4096)
	add("nixl_telemetry_ring_utilization_ratio", "", r.Fill())
	add("nixl_telemetry_ring_saturations_total", "", r.Ring.Saturations)
	add("nixl_telemetry_events_dropped_total", "", r.Dropped)
	add("nixl_telemetry_ring_torn_groups_total", "", r.Ring.Torn)
	add("nixl_telemetry_ring_foreign_reads_total", "", r.Ring.Foreign)
	add("nixl_telemetry_ring_restarts_total", "", r.Ring.Restarts)
	add("nixl_memory_usage_bytes", "", *r.Memory)
	// Every status is reported from 0 on.
	for _, kind := range []string{"backend", diagnose.NotFound, diagnose.Canceled} {
		add("nixl_errors_total", fmt.Sprintf(", error_type=%q", kind), r.Errors[kind])
	}
}

func addBuckets(name, labels string, h diagnose.Histogram, add func(name, more string, v any)) {
	sum := uint64(0)
	for i, n := range h.Counts {
		bound := math.Inf(1)
		if i < len(h.Bounds) {
			bound = h.Bounds[i]
		}
		sum += n
		add(name+"_bucket", labels+fmt.Sprintf(", le=%q", strings.TrimPrefix(fmt.Sprint(bound), "+")), sum)
	}
}

// native returns a native histogram of schema 2, which has four buckets per power of two. The
// observations of an explicit bucket are in one of them.
func native(h diagnose.Histogram, sum float64) string {
	counts := make(map[int]uint64)
	total := uint64(0)
	for i, n := range h.Counts {
		if n == 0 {
			continue
		}
		middle := h.Bounds[min(i, len(h.Bounds)-1)] * 0.7
		counts[int(math.Ceil(4*math.Log2(middle)))] += n
		total += n
	}
	if total == 0 {
		return "{{schema:2}}"
	}
	first, last := slices.Min(slices.Collect(maps.Keys(counts))), slices.Max(slices.Collect(maps.Keys(counts)))
	var buckets []string
	for i := first; i <= last; i++ {
		buckets = append(buckets, fmt.Sprint(counts[i]))
	}
	return fmt.Sprintf("{{schema:2 sum:%g count:%d offset:%d buckets:[%s]}}", sum, total, first, strings.Join(buckets, " "))
}
