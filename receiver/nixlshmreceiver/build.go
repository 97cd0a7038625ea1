// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
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

// builder converts totals to metrics. Sums and gauges use the code that mdatagen
// generates; the rest is in [points].
type builder struct {
	*metadata.MetricsBuilder
	cfg      *Config
	hostname string
	emission []metadata.ResourceMetricsOption // calls finish
	late     []tally.Point                    // points that finish adds

	// The agent that write converts, and the timestamps of its points.
	agent     *engine.Snapshot
	start, ts pcommon.Timestamp
}

func newBuilder(cfg *Config, mb *metadata.MetricsBuilder, hostname string) *builder {
	b := &builder{MetricsBuilder: mb, cfg: cfg, hostname: valid(hostname)}
	b.emission = []metadata.ResourceMetricsOption{metadata.With(b.finish)}
	return b
}

// build returns the totals of agents, which were collected at or after taken. Each
// agent is a resource.
func (b *builder) build(taken time.Time, agents []engine.Snapshot) pmetric.Metrics {
	for i := range agents {
		b.write(&agents[i], pcommon.NewTimestampFromTime(taken))
	}
	b.agent = nil
	metrics := b.Emit()
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			sm.SetSchemaUrl(semconv.SchemaURL) // mdatagen sets that of the resource
		}
	}
	return metrics
}

func (b *builder) write(a *engine.Snapshot, taken pcommon.Timestamp) {
	b.agent, b.start = a, pcommon.NewTimestampFromTime(a.Start)
	if !a.End.IsZero() {
		taken = pcommon.NewTimestampFromTime(a.End)
	}
	// The ring may have been opened a moment ago, or the clock may have been set
	// back. Backends reject a point before its start, and cumulative_to_delta drops
	// a first point at its start. If a processor removes the attribute that
	// distinguishes two streams, their points must differ in a backend's milliseconds.
	b.ts = max(taken, b.start+pcommon.Timestamp(time.Millisecond))
	b.StartAt(b.start)
	a.Totals.Points(b.point)
	if !a.Store { // a store, which has neither events nor a ring
		a.Totals.EventPoints(b.point)
		a.Totals.RingPoints(a.Layout, b.point)
	}
	switch a.Up {
	case engine.UpYes:
		b.RecordNixlAgentUpDataPoint(b.ts, 1)
	case engine.UpNo:
		b.RecordNixlAgentUpDataPoint(b.ts, 0)
	case engine.UpUnknown: // the kernel can't report it
	}
	b.EmitForResource(b.emission...)
	clear(b.late)
	b.late = b.late[:0]
}

// finish adds what the generated code leaves out.
func (b *builder) finish(res pcommon.Resource, metrics pmetric.MetricSlice) {
	putAttributes(res, b.agent.Stream)
	p := points{metrics, b.start, b.ts}
	for i := range b.late {
		p.add(&b.late[i])
	}
}

// point records a point. mdatagen generates neither histograms nor the attribute of
// events beyond the limit on names, so these points are added later.
func (b *builder) point(p *tally.Point) {
	overflow := len(p.Attributes) > 0 && p.Attributes[0].Key == semconv.MetricOverflow
	switch {
	case p.Metric == &semconv.Events && overflow && !b.cfg.Metrics.NixlEvents.Enabled,
		p.Metric == &semconv.EventValue && overflow && !b.cfg.Metrics.NixlEventValue.Enabled:
	case p.Histogram != nil, overflow:
		late := *p
		late.Attributes = slices.Clone(p.Attributes)
		b.late = append(b.late, late)
	default:
		recorders[p.Metric](b, p)
	}
}

// recorders are the generated functions of the metrics, except histograms.
var recorders = map[*semconv.Metric]func(*builder, *tally.Point){
	&semconv.TransferIO:               func(b *builder, p *tally.Point) { b.RecordNixlTransferIoDataPoint(b.ts, p.Int, direction(p)) },
	&semconv.TransferRequests:         func(b *builder, p *tally.Point) { b.RecordNixlTransferRequestsDataPoint(b.ts, p.Int, direction(p)) },
	&semconv.TransferLastSize:         func(b *builder, p *tally.Point) { b.RecordNixlTransferLastSizeDataPoint(b.ts, p.Int, direction(p)) },
	&semconv.TransferLastDuration:     func(b *builder, p *tally.Point) { b.RecordNixlTransferLastDurationDataPoint(b.ts, p.Float) },
	&semconv.TransferLastPostDuration: func(b *builder, p *tally.Point) { b.RecordNixlTransferLastPostDurationDataPoint(b.ts, p.Float) },
	&semconv.MemoryRegistered:         func(b *builder, p *tally.Point) { b.RecordNixlMemoryRegisteredDataPoint(b.ts, p.Int) },
	&semconv.MemoryDeregistered:       func(b *builder, p *tally.Point) { b.RecordNixlMemoryDeregisteredDataPoint(b.ts, p.Int) },
	&semconv.MemoryUsage:              func(b *builder, p *tally.Point) { b.RecordNixlMemoryUsageDataPoint(b.ts, p.Int) },
	&semconv.MemoryLastSize: func(b *builder, p *tally.Point) {
		b.RecordNixlMemoryLastSizeDataPoint(b.ts, p.Int, metadata.MapAttributeNixlMemoryOperation[text(p, 0)])
	},
	&semconv.Errors:     func(b *builder, p *tally.Point) { b.RecordNixlErrorsDataPoint(b.ts, p.Int, text(p, 0)) },
	&semconv.Events:     func(b *builder, p *tally.Point) { b.RecordNixlEventsDataPoint(b.ts, p.Int, text(p, 0), text(p, 1)) },
	&semconv.EventValue: func(b *builder, p *tally.Point) { b.RecordNixlEventValueDataPoint(b.ts, p.Int, text(p, 0), text(p, 1)) },
	&semconv.EventLastValue: func(b *builder, p *tally.Point) {
		b.RecordNixlEventLastValueDataPoint(b.ts, p.Int, text(p, 0), text(p, 1))
	},
	&semconv.TelemetryEventsDropped: func(b *builder, p *tally.Point) { b.RecordNixlTelemetryEventsDroppedDataPoint(b.ts, p.Int) },
	&semconv.RingCapacity:           func(b *builder, p *tally.Point) { b.RecordNixlTelemetryRingCapacityDataPoint(b.ts, p.Int) },
	&semconv.RingUtilization:        func(b *builder, p *tally.Point) { b.RecordNixlTelemetryRingUtilizationDataPoint(b.ts, p.Float) },
	&semconv.RingSaturations:        func(b *builder, p *tally.Point) { b.RecordNixlTelemetryRingSaturationsDataPoint(b.ts, p.Int) },
	&semconv.RingRestarts:           func(b *builder, p *tally.Point) { b.RecordNixlTelemetryRingRestartsDataPoint(b.ts, p.Int) },
	&semconv.RingForeignReads:       func(b *builder, p *tally.Point) { b.RecordNixlTelemetryRingForeignReadsDataPoint(b.ts, p.Int) },
	&semconv.RingTornGroups:         func(b *builder, p *tally.Point) { b.RecordNixlTelemetryRingTornGroupsDataPoint(b.ts, p.Int) },
}

func text(p *tally.Point, i int) string { return p.Attributes[i].Value.AsString() }

func direction(p *tally.Point) metadata.AttributeNixlTransferDirection {
	return metadata.MapAttributeNixlTransferDirection[text(p, 0)]
}

// valid converts a file name to valid UTF-8. OTLP rejects a whole request for one
// string that isn't.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

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
