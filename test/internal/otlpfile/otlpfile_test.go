// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package otlpfile_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// collection returns one collection of an agent's metrics.
func collection(add func(pmetric.MetricSlice)) pmetric.Metrics {
	m := pmetric.NewMetrics()
	rm := m.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("nixl.agent.name", "agent")
	add(rm.ScopeMetrics().AppendEmpty().Metrics())
	return m
}

// counted returns a collection with a counter and a histogram of the same n.
func counted(temporality pmetric.AggregationTemporality, start, at pcommon.Timestamp, n int64) pmetric.Metrics {
	return collection(func(ms pmetric.MetricSlice) {
		metric := ms.AppendEmpty()
		metric.SetName("count")
		sum := metric.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(temporality)
		dp := sum.DataPoints().AppendEmpty()
		dp.SetStartTimestamp(start)
		dp.SetTimestamp(at)
		dp.SetIntValue(n)
		dp.Attributes().PutStr("b", "2")
		dp.Attributes().PutInt("a", 1)

		metric = ms.AppendEmpty()
		metric.SetName("size")
		h := metric.SetEmptyHistogram()
		h.SetAggregationTemporality(temporality)
		hp := h.DataPoints().AppendEmpty()
		hp.SetStartTimestamp(start)
		hp.SetTimestamp(at)
		hp.SetCount(uint64(n))
		hp.SetSum(float64(n))
		hp.SetMin(float64(start))
		hp.SetMax(float64(at))
		hp.BucketCounts().FromRaw([]uint64{0, uint64(n)})
	})
}

func gauge(at pcommon.Timestamp, v float64) pmetric.Metrics {
	return collection(func(ms pmetric.MetricSlice) {
		metric := ms.AppendEmpty()
		metric.SetName("level")
		dp := metric.SetEmptyGauge().DataPoints().AppendEmpty()
		dp.SetTimestamp(at)
		dp.SetDoubleValue(v)
	})
}

const (
	cumulative = pmetric.AggregationTemporalityCumulative
	delta      = pmetric.AggregationTemporalityDelta
)

// withPID adds an attribute to the resources.
func withPID(m pmetric.Metrics, value string) pmetric.Metrics {
	for _, rm := range m.ResourceMetrics().All() {
		rm.Resource().Attributes().PutStr("pid", value)
	}
	return m
}

func TestSumAddsUpRunsAndRejectsContradictions(t *testing.T) {
	for name, tc := range map[string]struct {
		list []pmetric.Metrics
		want otlpfile.Series
		err  string
	}{
		"last value of each run, added": {
			list: []pmetric.Metrics{
				counted(cumulative, 1, 2, 10), counted(cumulative, 1, 3, 12), counted(cumulative, 5, 6, 100),
			},
			want: otlpfile.Series{
				"count{a=1,b=2}": {Int: 112},
				"size":           {Count: 112, Sum: 112, Min: 1, Max: 6, Buckets: []uint64{0, 112}},
			},
		},
		// A backend that has never seen these attributes takes all of the total for new.
		"total under other attributes, counted again": {
			list: []pmetric.Metrics{withPID(counted(cumulative, 1, 2, 10), "1"), withPID(counted(cumulative, 1, 3, 15), "2")},
			want: otlpfile.Series{
				"count{a=1,b=2}": {Int: 25},
				"size":           {Count: 25, Sum: 25, Min: 1, Max: 3, Buckets: []uint64{0, 25}},
			},
		},
		"newest value of a gauge under any attributes": {
			list: []pmetric.Metrics{withPID(gauge(2, 7), "2"), withPID(gauge(1, 8), "1")},
			want: otlpfile.Series{"level": {Float: 7}},
		},
		"all deltas, added": {
			list: []pmetric.Metrics{counted(delta, 1, 2, 10), counted(delta, 2, 3, 12)},
			want: otlpfile.Series{
				"count{a=1,b=2}": {Int: 22},
				"size":           {Count: 22, Sum: 22, Min: 1, Max: 3, Buckets: []uint64{0, 22}},
			},
		},
		"last value of a gauge": {
			list: []pmetric.Metrics{gauge(1, 7), gauge(2, 0.5)},
			want: otlpfile.Series{"level": {Float: 0.5}},
		},
		"counter decreases": {
			list: []pmetric.Metrics{counted(cumulative, 1, 2, 10), counted(cumulative, 1, 3, 9)},
			err:  "a counter decreased",
		},
		"points out of order": {
			list: []pmetric.Metrics{gauge(2, 1), gauge(1, 2)},
			err:  "a point at",
		},
		"delta received twice": {
			list: []pmetric.Metrics{counted(delta, 1, 2, 10), counted(delta, 1, 2, 10)},
			err:  "a point at",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := otlpfile.Sum(tc.list)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want one that contains %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Error(err)
			}
			if d := cmp.Diff(otlpfile.Totals{"agent": tc.want}, got); d != "" {
				t.Errorf("totals (-want +got):\n%s", d)
			}
		})
	}
}

// After a restart, a queue may deliver points late or twice.
func TestSumAnyOrderAcceptsLateAndRepeatedPoints(t *testing.T) {
	list := []pmetric.Metrics{
		counted(cumulative, 1, 3, 12), counted(cumulative, 1, 2, 10), counted(cumulative, 1, 3, 12), gauge(3, 1), gauge(1, 9),
	}
	want := otlpfile.Totals{"agent": {
		"count{a=1,b=2}": {Int: 12},
		"size":           {Count: 12, Sum: 12, Min: 1, Max: 3, Buckets: []uint64{0, 12}},
		"level":          {Float: 1},
	}}
	got, err := otlpfile.SumAnyOrder(list)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("error %v, totals (-want +got):\n%s", err, d)
	}
	for name, bad := range map[string][]pmetric.Metrics{
		"late point with a higher value": {counted(cumulative, 1, 3, 12), counted(cumulative, 1, 2, 13)},
		"delta received twice":           {counted(delta, 1, 2, 10), counted(delta, 1, 2, 10)},
	} {
		if _, err := otlpfile.SumAnyOrder(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Resources whose attributes differ belong to different series.
func TestResourcesAreNotAddedUp(t *testing.T) {
	sums := otlpfile.NewSums()
	for _, m := range []pmetric.Metrics{withPID(counted(cumulative, 1, 2, 10), "1"), withPID(counted(cumulative, 5, 6, 3), "2"), withPID(counted(cumulative, 7, 8, 4), "2")} {
		sums.Add(m)
	}
	list, err := sums.Resources()
	if err != nil {
		t.Error(err)
	}
	slices.SortFunc(list, func(a, b otlpfile.Resource) int { return strings.Compare(a.Attributes["pid"], b.Attributes["pid"]) })
	want := []otlpfile.Resource{
		{
			Attributes: map[string]string{"nixl.agent.name": "agent", "pid": "1"}, Starts: []pcommon.Timestamp{1},
			Series: otlpfile.Series{"count{a=1,b=2}": {Int: 10}, "size": {Count: 10, Sum: 10, Min: 1, Max: 2, Buckets: []uint64{0, 10}}},
		},
		{
			Attributes: map[string]string{"nixl.agent.name": "agent", "pid": "2"}, Starts: []pcommon.Timestamp{5, 7},
			Series: otlpfile.Series{"count{a=1,b=2}": {Int: 7}, "size": {Count: 7, Sum: 7, Min: 5, Max: 8, Buckets: []uint64{0, 7}}},
		},
	}
	if d := cmp.Diff(want, list); d != "" {
		t.Errorf("resources (-want +got):\n%s", d)
	}
}

func TestStartTimesTimesAndCumulativeMetricsAreListed(t *testing.T) {
	list := []pmetric.Metrics{counted(cumulative, 5, 6, 1), gauge(2, 1), counted(cumulative, 1, 3, 1)}
	if d := cmp.Diff(map[string][]pcommon.Timestamp{"agent": {1, 5}}, otlpfile.Starts(list)); d != "" {
		t.Errorf("start times (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[pcommon.Timestamp]bool{2: true, 3: true, 6: true}, otlpfile.Times(list)); d != "" {
		t.Errorf("times (-want +got):\n%s", d)
	}
	names := otlpfile.Cumulative(append(list, counted(delta, 1, 2, 1)))
	if d := cmp.Diff(map[string]bool{"count": true, "size": true}, names); d != "" {
		t.Errorf("cumulative metrics (-want +got):\n%s", d)
	}
}

// A test reads the file while the Collector writes to it.
func TestFileIsReadAsItGrowsEachLineOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.json")
	file := otlpfile.NewFile(path)
	totals, err := file.Totals()
	if err != nil || len(totals) != 0 {
		t.Errorf("before the file exists: totals %v, error %v", totals, err)
	}
	var text string
	for _, m := range []pmetric.Metrics{gauge(1, 7), gauge(2, 8)} {
		line, err := new(pmetric.JSONMarshaler).MarshalMetrics(m)
		must.OK(t, err)
		text += string(line) + "\n"
	}
	half := len(text)*3/4 + 1 // in the middle of the second line
	for _, step := range []struct {
		text        string
		collections int
		level       float64
	}{{text[:half], 1, 7}, {text, 2, 8}} {
		must.OK(t, os.WriteFile(path, []byte(step.text), 0o600))
		totals, err := file.Totals()
		if d := cmp.Diff(otlpfile.Totals{"agent": {"level": {Float: step.level}}}, totals); d != "" || err != nil {
			t.Errorf("error %v, totals (-want +got):\n%s", err, d)
		}
		if list, err := file.Collections(); len(list) != step.collections || err != nil {
			t.Errorf("%d collections, error %v, want %d", len(list), err, step.collections)
		}
	}
	must.OK(t, os.WriteFile(path, []byte(text+"{\n"), 0o600))
	if _, err = file.Totals(); err == nil || !strings.Contains(err.Error(), "metrics.json:3:") {
		t.Errorf("error %v for a line that isn't JSON", err)
	}
}
