// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package otlpfile

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// kind is how the points of a series combine.
type kind uint8

const (
	gauge   kind = iota // the newest point counts; also for up-down counters
	counter             // points with the same start time form a run, and the runs are added
)

type key struct{ agent, series string }

// point is the newest point of a run, or the sum of all deltas.
type point struct {
	Value
	time pcommon.Timestamp
}

// points holds the newest points of all series, by the start times of their
// runs. Gauges have one run, which starts at 0.
type points struct {
	byKey map[key]map[pcommon.Timestamp]point
	kinds map[string]kind // by series
	errs  []error

	anyOrder bool // points may arrive late or twice
}

func newPoints() *points {
	return &points{byKey: make(map[key]map[pcommon.Timestamp]point), kinds: make(map[string]kind)}
}

func (p *points) add(metrics pmetric.Metrics) {
	for _, rm := range metrics.ResourceMetrics().All() {
		agent := Agent(rm.Resource())
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				p.metric(agent, m)
			}
		}
	}
}

func (p *points) metric(agent string, m pmetric.Metric) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		p.numbers(agent, m.Name(), m.Gauge().DataPoints(), gauge, false)
	case pmetric.MetricTypeSum:
		as := gauge
		if m.Sum().IsMonotonic() {
			as = counter
		}
		p.numbers(agent, m.Name(), m.Sum().DataPoints(), as, isDelta(m.Sum().AggregationTemporality()))
	case pmetric.MetricTypeHistogram:
		delta := isDelta(m.Histogram().AggregationTemporality())
		for _, dp := range m.Histogram().DataPoints().All() {
			p.put(key{agent, Name(m.Name(), dp.Attributes())}, counter, delta, dp.StartTimestamp(), point{
				Value: Value{
					Count: dp.Count(), Sum: dp.Sum(), Min: dp.Min(), Max: dp.Max(),
					Buckets: dp.BucketCounts().AsRaw(),
				},
				time: dp.Timestamp(),
			})
		}
	default:
		p.errs = append(p.errs, fmt.Errorf("%s: unexpected metric type %v", m.Name(), m.Type()))
	}
}

func isDelta(t pmetric.AggregationTemporality) bool { return t == pmetric.AggregationTemporalityDelta }

func (p *points) numbers(agent, metric string, list pmetric.NumberDataPointSlice, as kind, delta bool) {
	for _, dp := range list.All() {
		start := dp.StartTimestamp()
		if as == gauge {
			start = 0
		}
		p.put(key{agent, Name(metric, dp.Attributes())}, as, delta, start, point{
			Value: Value{Int: dp.IntValue(), Float: dp.DoubleValue()}, time: dp.Timestamp(),
		})
	}
}

// put adds a point to its run.
func (p *points) put(k key, as kind, delta bool, start pcommon.Timestamp, next point) {
	p.kinds[k.series] = as
	if start > next.time {
		p.fail(k, "a point at %v has the later start time %v", next.time, start)
	}
	if delta {
		start = 0 // each delta has its own start time
	}
	runs := p.byKey[k]
	if runs == nil {
		runs = make(map[pcommon.Timestamp]point)
		p.byKey[k] = runs
	}
	last, seen := runs[start]
	switch {
	case seen && !delta && p.anyOrder && next.time <= last.time:
		next, last = last, next // keep the newest
	case seen && next.time <= last.time:
		p.fail(k, "a point at %v after one at %v", next.time, last.time)
	}
	switch {
	case delta:
		next.Value = last.plus(next.Value)
	case as == counter && (next.Int < last.Int || next.Count < last.Count || next.Sum < last.Sum):
		p.fail(k, "a counter decreased from %v to %v", last.Value, next.Value)
	}
	runs[start] = next
}

func (p *points) fail(k key, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s: %s: %s", k.agent, k.series, fmt.Sprintf(format, args...)))
}
