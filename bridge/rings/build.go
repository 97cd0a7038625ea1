// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package rings

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/identity"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// builder converts the totals of agents to the SDK's data model.
type builder struct {
	host      string // for service.instance.id
	ambiguous bool   // a name can occur in several directories
	allEvents bool   // report nixl.events

	now  time.Time                         // when the collection started
	data map[string]metricdata.Aggregation // by metric

	attributes []attribute.KeyValue // of the current agent's points
	start, at  time.Time
}

// agent adds the points of one agent. They share memory with the snapshot.
func (b *builder) agent(s *engine.Snapshot) {
	b.attributes, b.start, b.at = []attribute.KeyValue{attribute.String(semconv.AgentName, text.Valid(s.Agent.Name))}, s.Start, b.now
	if b.ambiguous || s.Store { // several processes of an agent have stores
		b.attributes = append(b.attributes, attribute.String(semconv.ServiceInstanceID, identity.InstanceID(b.host, s.Agent.ID)))
	}
	if !s.End.IsZero() { // the clock was set back, and the agent's next totals begin at zero
		b.at = s.End
	}
	if first := b.start.Add(time.Millisecond); b.at.Before(first) {
		// The ring was opened during this collection. Backends reject a point that is
		// older than its start, and the Collector's processor cumulative_to_delta drops a
		// first point at its start.
		b.at = first
	}
	s.Totals.Points(b.point)
	if !s.Store {
		s.Totals.EventPoints(b.point)
		s.Totals.RingPoints(s.Layout, b.point)
	}
	switch s.Up {
	case engine.UpYes:
		b.point(&tally.Point{Metric: &semconv.AgentUp, Int: 1})
	case engine.UpNo:
		b.point(&tally.Point{Metric: &semconv.AgentUp})
	case engine.UpUnknown:
	}
}

func (b *builder) point(p *tally.Point) {
	if p.Metric == &semconv.Events && !b.allEvents {
		return
	}
	name, set := p.Metric.Name, attribute.NewSet(slices.Concat(p.Attributes, b.attributes)...)
	switch m := p.Metric; {
	case m.Kind == semconv.Histogram:
		h, extrema := p.Histogram, metricdata.NewExtrema[float64]
		data, _ := b.data[name].(metricdata.Histogram[float64])
		data.Temporality = metricdata.CumulativeTemporality
		data.DataPoints = append(data.DataPoints, metricdata.HistogramDataPoint[float64]{
			Attributes: set, StartTime: b.start, Time: b.at,
			Count: h.Count(), Sum: h.Sum(), Min: extrema(h.Min()), Max: extrema(h.Max()),
			Bounds: h.Bounds(), BucketCounts: h.Counts(),
		})
		b.data[name] = data
	case m.Kind != semconv.Gauge: // the catalog has no floating-point sums
		data, _ := b.data[name].(metricdata.Sum[int64])
		data.Temporality, data.IsMonotonic = metricdata.CumulativeTemporality, m.Kind == semconv.Counter
		data.DataPoints = append(data.DataPoints, metricdata.DataPoint[int64]{Attributes: set, StartTime: b.start, Time: b.at, Value: p.Int})
		b.data[name] = data
	case m.Number == semconv.Int64:
		data, _ := b.data[name].(metricdata.Gauge[int64])
		data.DataPoints = append(data.DataPoints, metricdata.DataPoint[int64]{Attributes: set, StartTime: b.start, Time: b.at, Value: p.Int})
		b.data[name] = data
	default:
		data, _ := b.data[name].(metricdata.Gauge[float64])
		data.DataPoints = append(data.DataPoints, metricdata.DataPoint[float64]{Attributes: set, StartTime: b.start, Time: b.at, Value: p.Float})
		b.data[name] = data
	}
}

// metrics returns the metrics that have points, in the order of the catalog.
func (b *builder) metrics() []metricdata.Metrics {
	var all []metricdata.Metrics
	for _, m := range semconv.NIXL() {
		if data := b.data[m.Name]; data != nil {
			all = append(all, metricdata.Metrics{Name: m.Name, Description: m.Description, Unit: m.Unit, Data: data})
		}
	}
	return all
}
