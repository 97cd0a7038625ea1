// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"reflect"
	"slices"
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
	disabled []string // names of metrics; few, so that finding one is faster than in a map
}

func newBuilder(cfg *Config, mb *metadata.MetricsBuilder) *builder {
	b := &builder{MetricsBuilder: mb}
	for metric, value := range reflect.ValueOf(cfg.Metrics).Fields() {
		if !value.FieldByName("Enabled").Bool() {
			b.disabled = append(b.disabled, metric.Tag.Get("mapstructure"))
		}
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
	p := &points{disabled: b.disabled, metrics: metrics, start: start, ts: max(taken, start+pcommon.Timestamp(time.Millisecond))}
	a.Totals.Points(p.add)
	if !a.Store { // a store, which has neither events nor a ring
		if !slices.Contains(b.disabled, semconv.Events.Name) { // off by default, and they are many points
			a.Totals.EventPoints(p.add)
		}
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
	disabled  []string // names of metrics
	metrics   pmetric.MetricSlice
	start, ts pcommon.Timestamp

	of     *semconv.Metric // of the last point
	metric pmetric.Metric  // that of, unless it is disabled
}

// add adds a point, unless its metric is disabled.
func (p *points) add(one *tally.Point) {
	if p.of != one.Metric {
		p.of, p.metric = one.Metric, pmetric.Metric{}
		if !slices.Contains(p.disabled, p.of.Name) {
			p.metric = p.find(one)
		}
	}
	if p.metric == (pmetric.Metric{}) {
		return
	}
	switch p.metric.Type() {
	case pmetric.MetricTypeSum:
		p.number(p.metric.Sum().DataPoints().AppendEmpty(), one)
	case pmetric.MetricTypeGauge:
		p.number(p.metric.Gauge().DataPoints().AppendEmpty(), one)
	case pmetric.MetricTypeExponentialHistogram:
		dp, buckets := p.metric.ExponentialHistogram().DataPoints().AppendEmpty(), one.Histogram.Buckets()
		summarize(p, dp, one)
		dp.SetScale(buckets.Scale)
		dp.SetZeroCount(buckets.Zero)
		dp.Positive().SetOffset(buckets.Offset)
		dp.Positive().BucketCounts().FromRaw(buckets.Counts)
	default:
		dp := p.metric.Histogram().DataPoints().AppendEmpty()
		summarize(p, dp, one)
		dp.BucketCounts().FromRaw(one.Histogram.Counts())
		dp.ExplicitBounds().FromRaw(one.Histogram.Bounds())
	}
}

// find returns the metric of a point.
func (p *points) find(one *tally.Point) pmetric.Metric {
	for i := range p.metrics.Len() {
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
		metric.SetEmptyGauge().DataPoints().EnsureCapacity(usual)
	case kind != semconv.Histogram:
		sum := metric.SetEmptySum()
		sum.SetAggregationTemporality(cumulative)
		sum.SetIsMonotonic(kind == semconv.Counter)
		sum.DataPoints().EnsureCapacity(usual)
	case one.Histogram.Kind() == tally.Exponential:
		metric.SetEmptyExponentialHistogram().SetAggregationTemporality(cumulative)
	default:
		metric.SetEmptyHistogram().SetAggregationTemporality(cumulative)
	}
	return metric
}

// usual is the number of points that most metrics have at most: one for each direction.
const usual = 2

func (p *points) number(dp pmetric.NumberDataPoint, one *tally.Point) {
	dp.SetStartTimestamp(p.start)
	dp.SetTimestamp(p.ts)
	if one.Metric.Number == semconv.Float64 {
		dp.SetDoubleValue(one.Float)
	} else {
		dp.SetIntValue(one.Int)
	}
	putPointAttributes(dp.Attributes(), one)
}

// histogramPoint is a point of a histogram of any kind.
type histogramPoint interface {
	SetStartTimestamp(ts pcommon.Timestamp)
	SetTimestamp(ts pcommon.Timestamp)
	SetCount(v uint64)
	SetSum(v float64)
	SetMin(v float64)
	SetMax(v float64)
	Attributes() pcommon.Map
}

func summarize[P histogramPoint](p *points, dp P, one *tally.Point) {
	h := one.Histogram
	dp.SetStartTimestamp(p.start)
	dp.SetTimestamp(p.ts)
	dp.SetCount(h.Count())
	dp.SetSum(h.Sum())
	if h.HasRange() {
		dp.SetMin(h.Min())
		dp.SetMax(h.Max())
	}
	putPointAttributes(dp.Attributes(), one)
}

func putPointAttributes(to pcommon.Map, one *tally.Point) {
	to.EnsureCapacity(len(one.Attributes))
	for _, kv := range one.Attributes {
		if kv.Value.Type() == attribute.BOOL {
			to.PutBool(string(kv.Key), kv.Value.AsBool())
		} else {
			to.PutStr(string(kv.Key), kv.Value.AsString())
		}
	}
}
