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

// key identifies a series as a backend does: by all attributes of its resource and points.
type key struct{ agent, resource, series string }

// point is the newest point of a run, or the sum of all deltas.
type point struct {
	Value
	time pcommon.Timestamp
}

// Sums adds up points as a backend does, to which any other attribute of the resource or of
// the point means another series. For a cumulative series, it adds the last points of all
// start times. For a delta series, it adds all points. For any other series, it
// takes the newest point. Points that contradict each other and points that
// follow newer ones are errors.
//
// It holds the newest points of all series, by the start times of their runs. Gauges have
// one run, which starts at 0.
type Sums struct {
	byKey     map[key]map[pcommon.Timestamp]point
	kinds     map[string]kind              // by series
	resources map[string]map[string]string // attributes, by the resource of key
	errs      []error

	anyOrder bool // points may arrive late or twice
}

// NewSums returns empty sums.
func NewSums() *Sums {
	return &Sums{
		byKey: make(map[key]map[pcommon.Timestamp]point), kinds: make(map[string]kind), resources: make(map[string]map[string]string),
	}
}

// NewSumsAnyOrder returns empty sums that accept points that arrive late or twice, as from
// a persistent queue after a restart.
func NewSumsAnyOrder() *Sums {
	p := NewSums()
	p.anyOrder = true
	return p
}

// Add adds points that follow those of earlier calls.
func (p *Sums) Add(metrics pmetric.Metrics) {
	for _, rm := range metrics.ResourceMetrics().All() {
		of := key{agent: Agent(rm.Resource()), resource: Name("", rm.Resource().Attributes())}
		if p.resources[of.resource] == nil {
			p.resources[of.resource] = make(map[string]string)
			for name, value := range rm.Resource().Attributes().All() {
				p.resources[of.resource][name] = value.AsString()
			}
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				p.metric(of, m)
			}
		}
	}
}

func (p *Sums) metric(of key, m pmetric.Metric) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		p.numbers(of, m.Name(), m.Gauge().DataPoints(), gauge, false)
	case pmetric.MetricTypeSum:
		as := gauge
		if m.Sum().IsMonotonic() {
			as = counter
		}
		p.numbers(of, m.Name(), m.Sum().DataPoints(), as, isDelta(m.Sum().AggregationTemporality()))
	case pmetric.MetricTypeHistogram:
		delta := isDelta(m.Histogram().AggregationTemporality())
		for _, dp := range m.Histogram().DataPoints().All() {
			p.put(of.with(m.Name(), dp.Attributes()), counter, delta, dp.StartTimestamp(), point{
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

// with returns the key of a series of the resource.
func (k key) with(metric string, attrs pcommon.Map) key {
	k.series = Name(metric, attrs)
	return k
}

func isDelta(t pmetric.AggregationTemporality) bool { return t == pmetric.AggregationTemporalityDelta }

func (p *Sums) numbers(of key, metric string, list pmetric.NumberDataPointSlice, as kind, delta bool) {
	for _, dp := range list.All() {
		start := dp.StartTimestamp()
		if as == gauge {
			start = 0
		}
		p.put(of.with(metric, dp.Attributes()), as, delta, start, point{
			Value: Value{Int: dp.IntValue(), Float: dp.DoubleValue()}, time: dp.Timestamp(),
		})
	}
}

// put adds a point to its run.
func (p *Sums) put(k key, as kind, delta bool, start pcommon.Timestamp, next point) {
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
	case seen && !delta && p.anyOrder && next.time == last.time && as == counter && (next.below(last.Value) || last.below(next.Value)):
		p.fail(k, "two points at %v have the values %v and %v", next.time, last.Value, next.Value)
	case seen && !delta && p.anyOrder && next.time <= last.time:
		next, last = last, next // keep the newest
	case seen && next.time <= last.time:
		p.fail(k, "a point at %v after one at %v", next.time, last.time)
	}
	switch {
	case delta:
		next.Value = last.plus(next.Value)
	case as == counter && next.below(last.Value):
		p.fail(k, "a counter decreased from %v to %v", last.Value, next.Value)
	}
	runs[start] = next
}

// fail records the first contradictions, because one fault can cause many.
func (p *Sums) fail(k key, format string, args ...any) {
	const most = 50
	if len(p.errs) < most {
		p.errs = append(p.errs, fmt.Errorf("%s: %s: %s", k.resource, k.series, fmt.Sprintf(format, args...)))
	}
}
