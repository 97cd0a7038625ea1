// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// points adds the points that mdatagen can't generate to the metrics of one agent.
type points struct {
	metrics   pmetric.MetricSlice
	start, ts pcommon.Timestamp
}

// add adds a point, in the order of the catalog's points.
func (p points) add(one *tally.Point) {
	metric, ok := p.find(one.Metric.Name)
	if !ok {
		metric = p.metrics.AppendEmpty()
		metric.SetName(one.Metric.Name)
		metric.SetDescription(one.Metric.Description)
		metric.SetUnit(one.Metric.Unit)
	}
	switch h := one.Histogram; {
	case h == nil:
		p.number(metric, one)
	case h.Kind() == tally.Exponential:
		p.exponential(metric, one)
	default:
		p.explicit(metric, one)
	}
}

func putPointAttributes(attrs pcommon.Map, one *tally.Point) {
	for _, kv := range one.Attributes {
		if kv.Value.Type() == attribute.BOOL {
			attrs.PutBool(string(kv.Key), kv.Value.AsBool())
		} else {
			attrs.PutStr(string(kv.Key), kv.Value.AsString())
		}
	}
}

// number adds a point of a counter.
func (p points) number(metric pmetric.Metric, one *tally.Point) {
	if metric.Type() != pmetric.MetricTypeSum {
		metric.SetEmptySum().SetIsMonotonic(true)
		metric.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	dp := metric.Sum().DataPoints().AppendEmpty()
	dp.SetStartTimestamp(p.start)
	dp.SetTimestamp(p.ts)
	dp.SetIntValue(one.Int)
	putPointAttributes(dp.Attributes(), one)
}

func (p points) explicit(metric pmetric.Metric, one *tally.Point) {
	if metric.Type() != pmetric.MetricTypeHistogram {
		metric.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	putPointAttributes(p.fill(metric.Histogram().DataPoints().AppendEmpty(), one.Histogram).Attributes(), one)
}

// fill writes a histogram with explicit bounds to a point.
func (p points) fill(dp pmetric.HistogramDataPoint, h *tally.Histogram) pmetric.HistogramDataPoint {
	dp.SetStartTimestamp(p.start)
	dp.SetTimestamp(p.ts)
	dp.SetCount(h.Count())
	dp.SetSum(h.Sum())
	if h.HasRange() {
		dp.SetMin(h.Min())
		dp.SetMax(h.Max())
	}
	dp.BucketCounts().FromRaw(h.Counts())
	dp.ExplicitBounds().FromRaw(h.Bounds())
	return dp
}

func (p points) exponential(metric pmetric.Metric, one *tally.Point) {
	if metric.Type() != pmetric.MetricTypeExponentialHistogram {
		metric.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	h, dp := one.Histogram, metric.ExponentialHistogram().DataPoints().AppendEmpty()
	dp.SetStartTimestamp(p.start)
	dp.SetTimestamp(p.ts)
	dp.SetCount(h.Count())
	dp.SetSum(h.Sum())
	dp.SetMin(h.Min())
	dp.SetMax(h.Max())
	buckets := h.Buckets()
	dp.SetScale(buckets.Scale)
	dp.SetZeroCount(buckets.Zero)
	dp.Positive().SetOffset(buckets.Offset)
	dp.Positive().BucketCounts().FromRaw(buckets.Counts)
	putPointAttributes(dp.Attributes(), one)
}

// find returns the metric with a name.
func (p points) find(name string) (pmetric.Metric, bool) {
	for i := range p.metrics.Len() {
		if metric := p.metrics.At(i); metric.Name() == name {
			return metric, true
		}
	}
	return pmetric.Metric{}, false
}
