// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// plain is a batch as a list. Building the batch from it takes only the calls to pdata
// that are necessary.
type plain []plainAgent

type plainAgent struct {
	attributes []string // key, value, key, value
	metrics    []plainMetric
}

type plainMetric struct {
	name, description, unit string
	kind                    pmetric.MetricType
	monotonic               bool
	points                  []plainPoint
}

type plainPoint struct {
	number     pmetric.NumberDataPoint
	histogram  pmetric.HistogramDataPoint
	bounds     []float64
	counts     []uint64
	attributes []string
}

func plainOf(m pmetric.Metrics) (list plain) {
	for _, rm := range m.ResourceMetrics().All() {
		a := plainAgent{attributes: pairs(rm.Resource().Attributes())}
		for _, metric := range rm.ScopeMetrics().At(0).Metrics().All() {
			a.metrics = append(a.metrics, plainMetricOf(metric))
		}
		list = append(list, a)
	}
	return list
}

func plainMetricOf(m pmetric.Metric) plainMetric {
	p := plainMetric{name: m.Name(), description: m.Description(), unit: m.Unit(), kind: m.Type()}
	switch p.kind {
	case pmetric.MetricTypeHistogram:
		for _, dp := range m.Histogram().DataPoints().All() {
			p.points = append(p.points, plainPoint{
				histogram: dp, bounds: dp.ExplicitBounds().AsRaw(), counts: dp.BucketCounts().AsRaw(), attributes: pairs(dp.Attributes()),
			})
		}
		return p
	case pmetric.MetricTypeSum:
		p.monotonic = m.Sum().IsMonotonic()
	default:
	}
	for _, dp := range numbers(m).All() {
		p.points = append(p.points, plainPoint{number: dp, attributes: pairs(dp.Attributes())})
	}
	return p
}

func numbers(m pmetric.Metric) pmetric.NumberDataPointSlice {
	if m.Type() == pmetric.MetricTypeSum {
		return m.Sum().DataPoints()
	}
	return m.Gauge().DataPoints()
}

func pairs(m pcommon.Map) (list []string) {
	for k, v := range m.All() {
		list = append(list, k, v.Str())
	}
	return list
}

func put(m pcommon.Map, pairs []string) {
	for i := 0; i < len(pairs); i += 2 {
		m.PutStr(pairs[i], pairs[i+1])
	}
}

func (list plain) build() pmetric.Metrics {
	m := pmetric.NewMetrics()
	for i := range list {
		rm := m.ResourceMetrics().AppendEmpty()
		put(rm.Resource().Attributes(), list[i].attributes)
		sm := rm.ScopeMetrics().AppendEmpty()
		sm.Scope().SetName("scope")
		sm.Scope().SetVersion("version")
		sm.Metrics().EnsureCapacity(len(list[i].metrics))
		for j := range list[i].metrics {
			list[i].metrics[j].build(sm.Metrics().AppendEmpty())
		}
	}
	return m
}

func (p *plainMetric) build(m pmetric.Metric) {
	m.SetName(p.name)
	m.SetDescription(p.description)
	m.SetUnit(p.unit)
	switch p.kind {
	case pmetric.MetricTypeHistogram:
		h := m.SetEmptyHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for i := range p.points {
			p.points[i].buildHistogram(h.DataPoints().AppendEmpty())
		}
		return
	case pmetric.MetricTypeSum:
		s := m.SetEmptySum()
		s.SetIsMonotonic(p.monotonic)
		s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	default:
		m.SetEmptyGauge()
	}
	points := numbers(m)
	points.EnsureCapacity(len(p.points))
	for i := range p.points {
		p.points[i].buildNumber(points.AppendEmpty())
	}
}

func (p *plainPoint) buildNumber(dp pmetric.NumberDataPoint) {
	dp.SetStartTimestamp(p.number.StartTimestamp())
	dp.SetTimestamp(p.number.Timestamp())
	if p.number.ValueType() == pmetric.NumberDataPointValueTypeDouble {
		dp.SetDoubleValue(p.number.DoubleValue())
	} else {
		dp.SetIntValue(p.number.IntValue())
	}
	put(dp.Attributes(), p.attributes)
}

func (p *plainPoint) buildHistogram(dp pmetric.HistogramDataPoint) {
	dp.SetStartTimestamp(p.histogram.StartTimestamp())
	dp.SetTimestamp(p.histogram.Timestamp())
	dp.SetCount(p.histogram.Count())
	dp.SetSum(p.histogram.Sum())
	dp.SetMin(p.histogram.Min())
	dp.SetMax(p.histogram.Max())
	dp.ExplicitBounds().FromRaw(p.bounds)
	dp.BucketCounts().FromRaw(p.counts)
	put(dp.Attributes(), p.attributes)
}
