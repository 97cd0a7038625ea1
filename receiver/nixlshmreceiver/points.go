// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"iter"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// points adds the points that mdatagen can't generate to the metrics of one agent.
type points struct {
	metrics   pmetric.MetricSlice
	start, ts pcommon.Timestamp
}

func (p points) add(m semconv.Metric) pmetric.Metric {
	metric := p.metrics.AppendEmpty()
	metric.SetName(m.Name)
	metric.SetDescription(m.Description)
	metric.SetUnit(m.Unit)
	return metric
}

// histograms adds the histograms that have values.
func (p points) histograms(t *tally.Totals) {
	sizes := []series{
		{t.Size(tally.Transmit), semconv.Direction, semconv.Transmit},
		{t.Size(tally.Receive), semconv.Direction, semconv.Receive},
	}
	p.histogram(semconv.TransferSize, sizes)
	p.histogram(semconv.TransferDuration, byClass(t.Durations()))
	p.histogram(semconv.TransferPostDuration, byClass(t.PostDurations()))
	p.histogram(semconv.TransferThroughput, []series{
		{t.Throughput(tally.Transmit), semconv.Direction, semconv.Transmit},
		{t.Throughput(tally.Receive), semconv.Direction, semconv.Receive},
	})
}

// series is a histogram and its attribute, if it has one.
type series struct {
	histogram  *tally.Histogram
	key, value string
}

func byClass(histograms iter.Seq2[string, *tally.Histogram]) (list []series) {
	for class, h := range histograms {
		list = append(list, series{h, semconv.TransferSizeClass, class})
	}
	return list
}

func (s series) attributes(attrs pcommon.Map) {
	if s.value != "" {
		attrs.PutStr(s.key, s.value)
	}
}

func (p points) histogram(m semconv.Metric, list []series) {
	var metric pmetric.Metric
	added := false
	for _, s := range list {
		if s.histogram.Count() == 0 || s.histogram.Kind() == tally.NoHistogram {
			continue
		}
		if !added {
			metric, added = p.add(m), true
		}
		switch s.histogram.Kind() {
		case tally.Explicit:
			p.explicit(metric, s)
		case tally.Exponential:
			p.exponential(metric, s)
		case tally.NoHistogram:
		}
	}
}

func (p points) explicit(metric pmetric.Metric, s series) {
	h := metric.Histogram()
	if metric.Type() != pmetric.MetricTypeHistogram {
		h = metric.SetEmptyHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	s.attributes(p.fill(h.DataPoints().AppendEmpty(), s.histogram).Attributes())
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

func (p points) exponential(metric pmetric.Metric, s series) {
	h := metric.ExponentialHistogram()
	if metric.Type() != pmetric.MetricTypeExponentialHistogram {
		h = metric.SetEmptyExponentialHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	dp := h.DataPoints().AppendEmpty()
	dp.SetStartTimestamp(p.start)
	dp.SetTimestamp(p.ts)
	dp.SetCount(s.histogram.Count())
	dp.SetSum(s.histogram.Sum())
	dp.SetMin(s.histogram.Min())
	dp.SetMax(s.histogram.Max())
	buckets := s.histogram.Buckets()
	dp.SetScale(buckets.Scale)
	dp.SetZeroCount(buckets.Zero)
	dp.Positive().SetOffset(buckets.Offset)
	dp.Positive().BucketCounts().FromRaw(buckets.Counts)
	s.attributes(dp.Attributes())
}

// overflow adds the events beyond the limit on names.
func (p points) overflow(t *tally.Totals, cfg *metadata.MetricsConfig) {
	plain, valued := t.Overflow()
	if events := plain.Events + valued.Events; events > 0 && cfg.NixlEvents.Enabled {
		p.overflowPoint(semconv.Events, int64(events))
	}
	if valued.Events > 0 && cfg.NixlEventValue.Enabled {
		p.overflowPoint(semconv.EventValue, valued.Sum.Int64())
	}
}

func (p points) overflowPoint(m semconv.Metric, value int64) {
	dp := p.sum(m).Sum().DataPoints().AppendEmpty()
	dp.SetStartTimestamp(p.start)
	dp.SetTimestamp(p.ts)
	dp.SetIntValue(value)
	dp.Attributes().PutBool(semconv.MetricOverflow, true)
}

// sum returns the generated metric, or a new one if the agent has no points of it.
func (p points) sum(m semconv.Metric) pmetric.Metric {
	if metric, ok := p.find(m.Name); ok {
		return metric
	}
	metric := p.add(m)
	metric.SetEmptySum().SetIsMonotonic(true)
	metric.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	return metric
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
