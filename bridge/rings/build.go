// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package rings

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// builder converts the totals of agents to the SDK's data model. It shares no code
// with the receiver, which uses generated code for the Collector's data model.
// test/parity compares the results.
type builder struct {
	labels *labels
	now    time.Time // when the collection started
	points points

	attributes *attributes // of the current agent's points
	start, at  time.Time
}

func newBuilder(l *labels, now time.Time) *builder {
	return &builder{labels: l, now: now, points: newPoints()}
}

// agent adds the points of one agent. They share memory with the snapshot, so its
// collection must not be released.
func (b *builder) agent(s *drain.Snapshot) {
	b.attributes, b.start, b.at = b.labels.of(s.Agent), s.Start, b.now
	if !b.at.After(b.start) {
		// The ring was opened during this collection, or the clock was set back.
		// Backends reject a point that is older than its start, and the Collector's
		// cumulativetodelta processor drops a first point at its start.
		b.at = b.start.Add(1)
	}
	t := s.Totals
	b.transfers(t)
	b.memory(t)
	b.errors(t)
	b.events(t)
	b.health(t, s.Layout)
	b.up(s.Up)
}

func (b *builder) transfers(t *tally.Totals) {
	for d, name := range [...]string{tally.Transmit: semconv.Transmit, tally.Receive: semconv.Receive} {
		direction := attribute.String(semconv.Direction, name)
		if size := t.Size(tally.Direction(d)); size.Count() > 0 {
			b.int64(semconv.TransferIO, size.Total().Int64(), direction)
			b.int64(semconv.TransferLastSize, size.LastInt64(), direction)
			b.histogram(semconv.TransferSize, size, direction)
		}
		if throughput := t.Throughput(tally.Direction(d)); throughput.Count() > 0 {
			b.histogram(semconv.TransferThroughput, throughput, direction)
		}
		if requests := t.Requests(tally.Direction(d)); requests.Events > 0 {
			b.int64(semconv.TransferRequests, requests.Sum.Int64(), direction)
		}
	}
	if h := t.Duration(); h.Count() > 0 {
		b.float64(semconv.TransferLastDuration, h.Last())
		b.histograms(semconv.TransferDuration, t.Durations())
	}
	if h := t.PostDuration(); h.Count() > 0 {
		b.float64(semconv.TransferLastPostDuration, h.Last())
		b.histograms(semconv.TransferPostDuration, t.PostDurations())
	}
}

func (b *builder) memory(t *tally.Totals) {
	registered, deregistered := t.Registered(), t.Deregistered()
	if registered.Events > 0 {
		b.int64(semconv.MemoryRegistered, registered.Sum.Int64())
		b.int64(semconv.MemoryLastSize, registered.Last(), attribute.String(semconv.MemoryOperation, semconv.Register))
	}
	if deregistered.Events > 0 {
		b.int64(semconv.MemoryDeregistered, deregistered.Sum.Int64())
		b.int64(semconv.MemoryLastSize, deregistered.Last(), attribute.String(semconv.MemoryOperation, semconv.Deregister))
	}
	if usage, known := t.MemoryUsage(); known && registered.Events+deregistered.Events > 0 {
		b.int64(semconv.MemoryUsage, usage)
	}
}

// errors adds the counts of errors. They start at 0, so that an alert can fire on the
// first one.
func (b *builder) errors(t *tally.Totals) {
	for kind := ringbuf.TypeErrNotPosted; kind.IsError(); kind++ {
		status := agent.Status(kind - ringbuf.TypeErrNotPosted)
		b.int64(semconv.Errors, t.Errors(kind).Sum.Int64(), attribute.String(semconv.ErrorType, status.String()))
	}
	if other := t.OtherErrors(); other != (tally.Sum{}) {
		b.int64(semconv.Errors, other.Int64(), attribute.String(semconv.ErrorType, semconv.ErrorOther))
	}
}

func (b *builder) events(t *tally.Totals) {
	t.Events(func(category, name string, events uint64) {
		b.count(semconv.Events, events,
			attribute.String(semconv.EventCategory, category), attribute.String(semconv.EventName, name))
	})
	for i := range t.Series() {
		if s := &t.Series()[i]; s.Valued {
			category, name := attribute.String(semconv.EventCategory, s.Category), attribute.String(semconv.EventName, s.Name)
			b.int64(semconv.EventValue, s.Sum.Int64(), category, name)
			b.int64(semconv.EventLastValue, s.Last(), category, name)
		}
	}
	overflow := attribute.Bool(semconv.MetricOverflow, true)
	plain, valued := t.Overflow()
	if events := plain.Events + valued.Events; events > 0 {
		b.count(semconv.Events, events, overflow)
	}
	if valued.Events > 0 {
		b.int64(semconv.EventValue, valued.Sum.Int64(), overflow)
	}
}

// up adds whether the agent is running, unless this is unknown.
func (b *builder) up(up drain.Up) {
	switch up {
	case drain.UpYes:
		b.int64(semconv.AgentUp, 1)
	case drain.UpNo:
		b.int64(semconv.AgentUp, 0)
	case drain.UpUnknown:
	}
}

// health adds the metrics of the ring. Counts of losses start at 0, like those of
// errors.
func (b *builder) health(t *tally.Totals, layout ringbuf.Layout) {
	b.int64(semconv.TelemetryEventsDropped, t.Dropped().Sum.Int64())
	b.int64(semconv.RingCapacity, int64(t.Capacity()))
	b.float64(semconv.RingUtilization, t.Utilization())
	b.count(semconv.RingSaturations, t.Saturations())
	b.count(semconv.RingRestarts, t.Restarts())
	b.count(semconv.RingLossyRestarts, t.LossyRestarts())
	b.count(semconv.RingForeignReads, t.ForeignReads())
	if layout >= ringbuf.V4 || t.TornGroups() > 0 {
		b.count(semconv.RingTornGroups, t.TornGroups())
	}
}

func (b *builder) count(m semconv.Metric, n uint64, more ...attribute.KeyValue) {
	b.int64(m, int64(n), more...)
}

func (b *builder) int64(m semconv.Metric, v int64, more ...attribute.KeyValue) {
	b.points.ints[m.Name] = append(b.points.ints[m.Name], metricdata.DataPoint[int64]{
		Attributes: b.attributes.set(more...), StartTime: b.start, Time: b.at, Value: v,
	})
}

func (b *builder) float64(m semconv.Metric, v float64, more ...attribute.KeyValue) {
	b.points.floats[m.Name] = append(b.points.floats[m.Name], metricdata.DataPoint[float64]{
		Attributes: b.attributes.set(more...), StartTime: b.start, Time: b.at, Value: v,
	})
}
