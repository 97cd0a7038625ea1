// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dashboards

import (
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/diagnose/fleets"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
)

// alertOf maps each kind of finding to its alert.
var alertOf = map[diagnose.Kind]string{
	diagnose.Straggler:        "NIXLStraggler",
	diagnose.Slower:           "NIXLAgentSlower",
	diagnose.JobSlower:        "NIXLJobSlower",
	diagnose.Stalled:          "NIXLAgentStalled",
	diagnose.JobStalled:       "NIXLJobStalled",
	diagnose.PostBound:        "NIXLPostTimeHigh",
	diagnose.SmallBehindLarge: "NIXLSmallBehindLarge",
	diagnose.Failing:          "NIXLErrors",
	diagnose.EventsLost:       "NIXLEventsLost",
	diagnose.EventsTaken:      "NIXLEventsTaken",
	diagnose.NearlyFull:       "NIXLRingNearlyFull",
	diagnose.Gone:             "NIXLAgentGone",
}

// The tests of package diagnose check that it finds the same in these fleets.
func TestAlertsSayTheSameAsPackageDiagnose(t *testing.T) {
	for _, f := range slices.Concat(fleets.Incidents(), fleets.Healthy()) {
		for _, kind := range []string{explicit, exponential} {
			if kind == exponential && len(f.Members) > 100 {
				continue // the text of so many native histograms is too large
			}
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
}

// unitTest returns a test of promtool: the series of a fleet, and the alerts that must fire.
func unitTest(t *testing.T, f *fleets.Fleet, kind string) []byte {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "rule_files: [%q, %q]\nevaluation_interval: 1m\ntests:\n- interval: %s\n  input_series:\n",
		file(t, "dashboards", "rules.yaml"), file(t, "dashboards", "alerts.yaml"), fleets.Every)
	list := newSeries(f, kind)
	for _, name := range slices.Sorted(maps.Keys(list)) {
		fmt.Fprintf(&b, "  - {series: '%s', values: '%s'}\n", name, strings.Join(list[name], " "))
	}
	// A healthy fleet must have had no alert at any time.
	alerts := `ALERTS{alertstate="firing"}`
	if len(f.Want) == 0 {
		alerts = fmt.Sprintf("count_over_time(%s[%s])", alerts, f.Length)
	}
	fmt.Fprintf(&b, "  promql_expr_test:\n  - expr: count by (alertname, nixl_agent_name) (%s)\n    eval_time: %s\n    exp_samples:\n", alerts, f.Length)
	for _, w := range f.Want {
		labels := fmt.Sprintf("alertname=%q", alertOf[w.Kind])
		if w.Agent != "" {
			labels += fmt.Sprintf(", nixl_agent_name=%q", w.Agent)
		}
		fmt.Fprintf(&b, "    - {labels: '{%s}', value: 1}\n", labels)
	}
	return []byte(b.String())
}

// newSeries returns the values of each series of a fleet, one per sample.
func newSeries(f *fleets.Fleet, kind string) map[string][]string {
	list := make(map[string][]string)
	buckets := len(f.Members) <= 100
	samples := f.Samples()
	for i := range samples {
		for n := range samples[i].Agents {
			r := &samples[i].Agents[n]
			labels := labelsOf(r.Agent)
			add := func(name, more string, v any) {
				key := name + "{" + labels + more + "}"
				for len(list[key]) < i {
					list[key] = append(list[key], "_")
				}
				list[key] = append(list[key], fmt.Sprint(v))
			}
			addCounters(r, add)
			if kind == exponential {
				add("nixl_transfer_duration_seconds", "", native(r.Times, r.Busy.Seconds()))
				add("nixl_transfer_size_bytes", "", native(r.Sizes, float64(r.Bytes)))
				add("nixl_transfer_post_duration_seconds", "", native(diagnose.Histogram{Bounds: []float64{1}, Counts: []uint64{r.Requests, 0}}, r.Post.Seconds()))
				continue
			}
			for name, h := range map[string]diagnose.Histogram{"nixl_transfer_duration_seconds": r.Times, "nixl_transfer_size_bytes": r.Sizes} {
				if buckets {
					addBuckets(name, h, add)
				}
			}
			add("nixl_transfer_duration_seconds_sum", "", r.Busy.Seconds())
			add("nixl_transfer_duration_seconds_count", "", r.Requests)
			add("nixl_transfer_size_bytes_sum", "", r.Bytes)
			add("nixl_transfer_size_bytes_count", "", r.Requests)
			add("nixl_transfer_post_duration_seconds_sum", "", r.Post.Seconds())
			add("nixl_transfer_post_duration_seconds_count", "", r.Requests)
		}
	}
	return list
}

func labelsOf(a diagnose.Agent) string {
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

func addCounters(r *diagnose.Reading, add func(name, more string, v any)) {
	add("nixl_agent_up", "", int(r.Up)-int(diagnose.No))
	add("nixl_telemetry_ring_capacity", "", 4096)
	add("nixl_telemetry_ring_utilization_ratio", "", r.Fill)
	add("nixl_telemetry_ring_saturations_total", "", r.Saturations)
	add("nixl_telemetry_events_dropped_total", "", r.Dropped)
	add("nixl_telemetry_ring_torn_groups_total", "", r.Torn)
	add("nixl_telemetry_ring_foreign_reads_total", "", r.Foreign)
	add("nixl_transfer_io_bytes_total", "", r.Bytes)
	add("nixl_transfer_requests_total", "", r.Requests)
	// Every status is reported from 0 on.
	for _, kind := range []string{"backend", diagnose.Canceled} {
		add("nixl_errors_total", fmt.Sprintf(", error_type=%q", kind), r.Errors[kind])
	}
}

func addBuckets(name string, h diagnose.Histogram, add func(name, more string, v any)) {
	sum := uint64(0)
	for i, n := range h.Counts {
		bound := math.Inf(1)
		if i < len(h.Bounds) {
			bound = h.Bounds[i]
		}
		sum += n
		add(name+"_bucket", fmt.Sprintf(", le=%q", strings.TrimPrefix(fmt.Sprint(bound), "+")), sum)
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
