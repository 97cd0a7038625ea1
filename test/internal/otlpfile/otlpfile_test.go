// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package otlpfile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

const (
	cumulative = pmetric.AggregationTemporalityCumulative
	delta      = pmetric.AggregationTemporalityDelta
)

// point is a point of a counter and of a histogram with the same n, or of a gauge if it has no temporality.
type point struct {
	temporality pmetric.AggregationTemporality
	start, at   pcommon.Timestamp
	n           int64
	pid         string // an attribute of the resource
}

func (p point) metrics() pmetric.Metrics {
	m := pmetric.NewMetrics()
	rm := m.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("nixl.agent.name", "agent")
	rm.Resource().Attributes().PutStr("pid", p.pid)
	list := rm.ScopeMetrics().AppendEmpty().Metrics()
	metric := list.AppendEmpty()
	if p.temporality == 0 {
		metric.SetName("level")
		dp := metric.SetEmptyGauge().DataPoints().AppendEmpty()
		dp.SetTimestamp(p.at)
		dp.SetDoubleValue(float64(p.n))
		return m
	}
	metric.SetName("count")
	sum := metric.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(p.temporality)
	dp := sum.DataPoints().AppendEmpty()
	dp.SetStartTimestamp(p.start)
	dp.SetTimestamp(p.at)
	dp.SetIntValue(p.n)
	dp.Attributes().PutStr("b", "2")
	dp.Attributes().PutInt("a", 1)

	metric = list.AppendEmpty()
	metric.SetName("size")
	h := metric.SetEmptyHistogram()
	h.SetAggregationTemporality(p.temporality)
	hp := h.DataPoints().AppendEmpty()
	hp.SetStartTimestamp(p.start)
	hp.SetTimestamp(p.at)
	hp.SetCount(uint64(p.n))
	hp.SetSum(float64(p.n))
	hp.SetMin(float64(p.start))
	hp.SetMax(float64(p.at))
	hp.BucketCounts().FromRaw([]uint64{0, uint64(p.n)})
	return m
}

// The tests of the built Collector would pass with whatever these sums fail to notice.
func TestSumsAddUpRunsAndRejectContradictions(t *testing.T) {
	counted := func(n int64, least, most float64) otlpfile.Series {
		return otlpfile.Series{
			"count{a=1,b=2}": {Int: n},
			"size":           {Count: uint64(n), Sum: float64(n), Min: least, Max: most, Buckets: []uint64{0, uint64(n)}},
		}
	}
	level := func(v float64) otlpfile.Series { return otlpfile.Series{"level": {Float: v}} }
	for name, c := range map[string]struct {
		points       []point
		want         otlpfile.Series
		err          string
		wantAnyOrder otlpfile.Series // if points may arrive late or twice; as otherwise if neither this nor the error is set
		errAnyOrder  string
	}{
		"last value of each run, added": {points: []point{{cumulative, 1, 2, 10, ""}, {cumulative, 1, 3, 12, ""}, {cumulative, 5, 6, 100, ""}}, want: counted(112, 1, 6)},
		// A backend that has never seen these attributes takes all of the total for new.
		"total under other attributes, counted again": {points: []point{{cumulative, 1, 2, 10, "1"}, {cumulative, 1, 3, 15, "2"}}, want: counted(25, 1, 3)},
		"newest value of a gauge, of any attributes":  {points: []point{{0, 0, 1, 5, "2"}, {0, 0, 2, 7, "2"}, {0, 0, 1, 8, "1"}}, want: level(7)},
		"all deltas, added":                           {points: []point{{delta, 1, 2, 10, ""}, {delta, 2, 3, 12, ""}}, want: counted(22, 1, 3)},
		"counter decreases": {
			points: []point{{cumulative, 1, 2, 10, ""}, {cumulative, 1, 3, 9, ""}}, err: "a counter decreased", errAnyOrder: "a counter decreased",
		},
		"gauge out of order":    {points: []point{{0, 0, 2, 1, ""}, {0, 0, 1, 2, ""}}, err: "a point at", wantAnyOrder: level(1)},
		"counter out of order":  {points: []point{{cumulative, 1, 3, 12, ""}, {cumulative, 1, 2, 10, ""}}, err: "a point at", wantAnyOrder: counted(12, 1, 3)},
		"counter twice":         {points: []point{{cumulative, 1, 3, 12, ""}, {cumulative, 1, 3, 12, ""}}, err: "a point at", wantAnyOrder: counted(12, 1, 3)},
		"two values at a time":  {points: []point{{cumulative, 1, 3, 12, ""}, {cumulative, 1, 3, 13, ""}}, err: "a point at", errAnyOrder: "two points at"},
		"earlier and higher":    {points: []point{{cumulative, 1, 3, 12, ""}, {cumulative, 1, 2, 13, ""}}, err: "a point at", errAnyOrder: "a counter decreased"},
		"delta twice":           {points: []point{{delta, 1, 2, 10, ""}, {delta, 1, 2, 10, ""}}, err: "a point at", errAnyOrder: "a point at"},
		"start after the point": {points: []point{{cumulative, 3, 2, 10, ""}}, err: "later start time", errAnyOrder: "later start time"},
	} {
		for kind, sums := range map[string]*otlpfile.Sums{"in order": otlpfile.NewSums(), "in any order": otlpfile.NewSumsAnyOrder()} {
			want, fails := c.want, c.err
			if kind == "in any order" && (c.errAnyOrder != "" || c.wantAnyOrder != nil) {
				want, fails = c.wantAnyOrder, c.errAnyOrder
			}
			for _, p := range c.points {
				sums.Add(p.metrics())
			}
			got, err := sums.Totals()
			if fails != "" {
				if err == nil || !strings.Contains(err.Error(), fails) {
					t.Errorf("%s, %s: error %v, want one that contains %q", name, kind, err, fails)
				}
			} else if d := cmp.Diff(otlpfile.Totals{"agent": want}, got); d != "" || err != nil {
				t.Errorf("%s, %s: error %v, totals (-want +got):\n%s", name, kind, err, d)
			}
		}
	}
}
