// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// rebuilt builds the same metrics with only the calls to pdata that are necessary.
func rebuilt(from pmetric.Metrics) pmetric.Metrics {
	m := pmetric.NewMetrics()
	for _, rm := range from.ResourceMetrics().All() {
		to := m.ResourceMetrics().AppendEmpty()
		put(to.Resource().Attributes(), rm.Resource().Attributes())
		sm, list := to.ScopeMetrics().AppendEmpty(), rm.ScopeMetrics().At(0).Metrics()
		sm.Scope().SetName("scope")
		sm.Scope().SetVersion("version")
		sm.Metrics().EnsureCapacity(list.Len())
		for _, metric := range list.All() {
			rebuild(sm.Metrics().AppendEmpty(), metric)
		}
	}
	return m
}

func rebuild(m, from pmetric.Metric) {
	m.SetName(from.Name())
	m.SetDescription(from.Description())
	m.SetUnit(from.Unit())
	switch from.Type() {
	case pmetric.MetricTypeHistogram:
		h := m.SetEmptyHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for _, dp := range from.Histogram().DataPoints().All() {
			rebuildHistogram(h.DataPoints().AppendEmpty(), dp)
		}
		return
	case pmetric.MetricTypeSum:
		s := m.SetEmptySum()
		s.SetIsMonotonic(from.Sum().IsMonotonic())
		s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	default:
		m.SetEmptyGauge()
	}
	points, list := numbers(m), numbers(from)
	points.EnsureCapacity(list.Len())
	for _, from := range list.All() {
		dp := points.AppendEmpty()
		dp.SetStartTimestamp(from.StartTimestamp())
		dp.SetTimestamp(from.Timestamp())
		if from.ValueType() == pmetric.NumberDataPointValueTypeDouble {
			dp.SetDoubleValue(from.DoubleValue())
		} else {
			dp.SetIntValue(from.IntValue())
		}
		put(dp.Attributes(), from.Attributes())
	}
}

func rebuildHistogram(dp, from pmetric.HistogramDataPoint) {
	dp.SetStartTimestamp(from.StartTimestamp())
	dp.SetTimestamp(from.Timestamp())
	dp.SetCount(from.Count())
	dp.SetSum(from.Sum())
	dp.SetMin(from.Min())
	dp.SetMax(from.Max())
	from.ExplicitBounds().CopyTo(dp.ExplicitBounds())
	from.BucketCounts().CopyTo(dp.BucketCounts())
	put(dp.Attributes(), from.Attributes())
}

// numbers returns the points of a sum or gauge.
func numbers(m pmetric.Metric) pmetric.NumberDataPointSlice {
	if m.Type() == pmetric.MetricTypeSum {
		return m.Sum().DataPoints()
	}
	return m.Gauge().DataPoints()
}

func put(to, from pcommon.Map) {
	for k, v := range from.All() {
		to.PutStr(k, v.Str())
	}
}
