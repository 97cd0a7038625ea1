// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"reflect"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// builder converts totals to metrics. It has the scope and the filters of the code that mdatagen
// generates, but adds all points itself, because that code has no histograms.
type builder struct {
	*metadata.MetricsBuilder
	disabled map[string]bool // metrics, by name
}

func newBuilder(cfg *Config, mb *metadata.MetricsBuilder) *builder {
	b := &builder{mb, make(map[string]bool)}
	for metric, value := range reflect.ValueOf(cfg.Metrics).Fields() {
		b.disabled[metric.Tag.Get("mapstructure")] = !value.FieldByName("Enabled").Bool()
	}
	return b
}

// build returns the totals of agents, which were collected at or after taken. Each
// agent is a resource.
func (b *builder) build(taken time.Time, agents []engine.Snapshot) pmetric.Metrics {
	for i := range agents {
		a := &agents[i]
		b.EmitForResource(metadata.With(func(res pcommon.Resource, metrics pmetric.MetricSlice) {
			putAttributes(res, a.Stream)
			b.write(a, pcommon.NewTimestampFromTime(taken), metrics)
		}))
	}
	metrics := b.Emit()
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			sm.SetSchemaUrl(semconv.SchemaURL) // mdatagen sets that of the resource
		}
	}
	return metrics
}

// write adds the points of an agent.
func (b *builder) write(a *engine.Snapshot, taken pcommon.Timestamp, metrics pmetric.MetricSlice) {
	start := pcommon.NewTimestampFromTime(a.Start)
	if !a.End.IsZero() {
		taken = pcommon.NewTimestampFromTime(a.End)
	}
	// The ring may have been opened a moment ago, or the clock may have been set
	// back. Backends reject a point before its start, and cumulative_to_delta drops
	// a first point at its start. If a processor removes the attribute that
	// distinguishes two streams, their points must differ in a backend's milliseconds.
	p := points{b.disabled, metrics, start, max(taken, start+pcommon.Timestamp(time.Millisecond))}
	a.Totals.Points(p.add)
	if !a.Store { // a store, which has neither events nor a ring
		a.Totals.EventPoints(p.add)
		a.Totals.RingPoints(a.Layout, p.add)
	}
	switch a.Up {
	case engine.UpYes:
		p.add(&tally.Point{Metric: &semconv.AgentUp, Int: 1})
	case engine.UpNo:
		p.add(&tally.Point{Metric: &semconv.AgentUp})
	case engine.UpUnknown: // the kernel can't report it
	}
}

// valid converts a file name to valid UTF-8. OTLP rejects a whole request for one
// string that isn't.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// points adds points to the metrics of one agent.
type points struct {
	disabled  map[string]bool // metrics, by name
	metrics   pmetric.MetricSlice
	start, ts pcommon.Timestamp
}

// add adds a point, unless its metric is disabled.
func (p points) add(one *tally.Point) {
	if p.disabled[one.Metric.Name] {
		return
	}
	switch metric := p.metric(one); metric.Type() {
	case pmetric.MetricTypeSum:
		p.number(metric.Sum().DataPoints().AppendEmpty(), one)
	case pmetric.MetricTypeGauge:
		p.number(metric.Gauge().DataPoints().AppendEmpty(), one)
	case pmetric.MetricTypeExponentialHistogram:
		dp, buckets := metric.ExponentialHistogram().DataPoints().AppendEmpty(), one.Histogram.Buckets()
		summarize(p, dp, one)
		dp.SetScale(buckets.Scale)
		dp.SetZeroCount(buckets.Zero)
		dp.Positive().SetOffset(buckets.Offset)
		dp.Positive().BucketCounts().FromRaw(buckets.Counts)
	default:
		dp := metric.Histogram().DataPoints().AppendEmpty()
		summarize(p, dp, one)
		dp.BucketCounts().FromRaw(one.Histogram.Counts())
		dp.ExplicitBounds().FromRaw(one.Histogram.Bounds())
	}
}

// metric returns the metric of a point.
func (p points) metric(one *tally.Point) pmetric.Metric {
	for i := p.metrics.Len() - 1; i >= 0; i-- { // most points follow others of their metric
		if metric := p.metrics.At(i); metric.Name() == one.Metric.Name {
			return metric
		}
	}
	metric := p.metrics.AppendEmpty()
	metric.SetName(one.Metric.Name)
	metric.SetDescription(one.Metric.Description)
	metric.SetUnit(one.Metric.Unit)
	const cumulative = pmetric.AggregationTemporalityCumulative
	switch kind := one.Metric.Kind; {
	case kind == semconv.Gauge:
		metric.SetEmptyGauge()
	case kind != semconv.Histogram:
		metric.SetEmptySum().SetAggregationTemporality(cumulative)
		metric.Sum().SetIsMonotonic(kind == semconv.Counter)
	case one.Histogram.Kind() == tally.Exponential:
		metric.SetEmptyExponentialHistogram().SetAggregationTemporality(cumulative)
	default:
		metric.SetEmptyHistogram().SetAggregationTemporality(cumulative)
	}
	return metric
}

func (p points) number(dp pmetric.NumberDataPoint, one *tally.Point) {
	describe(p, dp, one)
	if one.Metric.Number == semconv.Float64 {
		dp.SetDoubleValue(one.Float)
	} else {
		dp.SetIntValue(one.Int)
	}
}

// dataPoint is a point of any metric.
type dataPoint interface {
	SetStartTimestamp(ts pcommon.Timestamp)
	SetTimestamp(ts pcommon.Timestamp)
	Attributes() pcommon.Map
}

func describe[P dataPoint](p points, dp P, one *tally.Point) {
	dp.SetStartTimestamp(p.start)
	dp.SetTimestamp(p.ts)
	for _, kv := range one.Attributes {
		if kv.Value.Type() == attribute.BOOL {
			dp.Attributes().PutBool(string(kv.Key), kv.Value.AsBool())
		} else {
			dp.Attributes().PutStr(string(kv.Key), kv.Value.AsString())
		}
	}
}

// histogramPoint is a point of a histogram of any kind.
type histogramPoint interface {
	dataPoint
	SetCount(v uint64)
	SetSum(v float64)
	SetMin(v float64)
	SetMax(v float64)
}

func summarize[P histogramPoint](p points, dp P, one *tally.Point) {
	describe(p, dp, one)
	h := one.Histogram
	dp.SetCount(h.Count())
	dp.SetSum(h.Sum())
	if h.HasRange() {
		dp.SetMin(h.Min())
		dp.SetMax(h.Max())
	}
}
