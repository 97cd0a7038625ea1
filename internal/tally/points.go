// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Point is the value of one series. The kind and the number type of its metric define
// which field has the value.
type Point struct {
	Metric     *semconv.Metric // one of the variables of package semconv
	Attributes []attribute.KeyValue

	Int       int64
	Float     float64
	Histogram *Histogram // has values
}

// points calls a function with points.
type points struct {
	yield func(*Point)
	point Point
}

// Points calls yield with the points of the totals, which are valid until it returns.
// Points, [Totals.RingPoints] and [Totals.EventPoints] are the only place that defines
// which total becomes which metric.
//
// A series is absent until its first event, except for errors and losses: these start at
// 0, so that an alert can fire on the first one.
func (t *Totals) Points(yield func(*Point)) {
	p := points{yield: yield}
	for d, direction := range directions {
		if size := &t.sizes[d]; size.Count() > 0 {
			p.int(&semconv.TransferIO, size.Total().Int64(), direction...)
			p.int(&semconv.TransferLastSize, size.LastInt64(), direction...)
			p.histogram(&semconv.TransferSize, size, direction...)
		}
		p.histogram(&semconv.TransferThroughput, &t.throughput[d], direction...)
		if requests := t.Requests(Direction(d)); requests.Events > 0 {
			p.int(&semconv.TransferRequests, requests.Sum.Int64(), direction...)
		}
	}
	if t.duration.Count() > 0 {
		p.float(&semconv.TransferLastDuration, t.duration.Last())
	}
	if t.post.Count() > 0 {
		p.float(&semconv.TransferLastPostDuration, t.post.Last())
	}
	p.histogram(&semconv.TransferDuration, &t.duration)
	p.histogram(&semconv.TransferPostDuration, &t.post)
	t.memoryPoints(&p)
	for kind := ringbuf.TypeErrNotPosted; kind.IsError(); kind++ {
		p.int(&semconv.Errors, t.Errors(kind).Sum.Int64(), errorTypes[kind]...)
	}
	if other := t.OtherErrors(); other != (Sum{}) {
		p.int(&semconv.Errors, other.Int64(), attribute.String(semconv.ErrorType, semconv.ErrorOther))
	}
	p.int(&semconv.TelemetryEventsDropped, t.Dropped().Sum.Int64())
	t.seriesPoints(&p)
}

// seriesPoints adds the values of events that have no metric of their own, and the number of events that aren't known.
func (t *Totals) seriesPoints(p *points) {
	for i := range t.Series() {
		s := &t.Series()[i]
		category, name := attribute.String(semconv.EventCategory, s.Category()), attribute.String(semconv.EventName, s.Name)
		switch {
		case s.Valued:
			p.int(&semconv.EventValue, s.Sum.Int64(), category, name)
			p.int(&semconv.EventLastValue, s.Last(), category, name)
		case s.Unknown():
			p.int(&semconv.TelemetryEventsUnknown, int64(s.Events), name)
		}
	}
	unknown, valued := t.Overflow()
	if valued.Events > 0 {
		p.int(&semconv.EventValue, valued.Sum.Int64(), attribute.Bool(semconv.MetricOverflow, true))
	}
	if unknown.Events > 0 {
		p.int(&semconv.TelemetryEventsUnknown, int64(unknown.Events), attribute.Bool(semconv.MetricOverflow, true))
	}
}

func (t *Totals) memoryPoints(p *points) {
	registered, deregistered := t.Registered(), t.Deregistered()
	if registered.Events > 0 {
		p.int(&semconv.MemoryRegistered, registered.Sum.Int64())
		p.int(&semconv.MemoryLastSize, registered.Last(), registering...)
	}
	if deregistered.Events > 0 {
		p.int(&semconv.MemoryDeregistered, deregistered.Sum.Int64())
		p.int(&semconv.MemoryLastSize, deregistered.Last(), deregistering...)
	}
	if usage, known := t.MemoryUsage(); known && registered.Events+deregistered.Events > 0 {
		p.int(&semconv.MemoryUsage, usage)
	}
}

// RingPoints calls yield with the points that describe a ring. Like errors, losses are
// reported from 0 on.
func (t *Totals) RingPoints(layout ringbuf.Layout, yield func(*Point)) {
	p := points{yield: yield}
	p.int(&semconv.RingCapacity, int64(t.Capacity()))
	p.float(&semconv.RingUtilization, t.Utilization())
	p.int(&semconv.RingSaturations, int64(t.Saturations()))
	p.int(&semconv.RingRestarts, int64(t.Restarts()))
	p.int(&semconv.RingForeignReads, int64(t.ForeignReads()))
	if layout >= ringbuf.V4 || t.TornGroups() > 0 {
		p.int(&semconv.RingTornGroups, int64(t.TornGroups()))
	}
}

// EventPoints calls yield with the points that count events by name. Stores have none.
func (t *Totals) EventPoints(yield func(*Point)) {
	p := points{yield: yield}
	plain, valued := t.Overflow()
	t.Events(func(category, name string, events uint64) {
		p.int(&semconv.Events, int64(events), attribute.String(semconv.EventCategory, category), attribute.String(semconv.EventName, name))
	})
	if events := plain.Events + valued.Events; events > 0 {
		p.int(&semconv.Events, int64(events), attribute.Bool(semconv.MetricOverflow, true))
	}
}

// add calls yield. It doesn't copy the attributes: most are those of all agents.
func (p *points) add(one Point) {
	p.point = one
	p.yield(&p.point)
}

func (p *points) int(m *semconv.Metric, v int64, attributes ...attribute.KeyValue) {
	p.add(Point{Metric: m, Int: v, Attributes: attributes})
}

func (p *points) float(m *semconv.Metric, v float64) { p.add(Point{Metric: m, Float: v}) }

// histogram adds a histogram, unless it has no values.
func (p *points) histogram(m *semconv.Metric, h *Histogram, attributes ...attribute.KeyValue) {
	if h.Count() > 0 && h.Kind() != NoHistogram {
		p.add(Point{Metric: m, Histogram: h, Attributes: attributes})
	}
}

// The attributes of points of all agents.
var (
	directions    = [...][]attribute.KeyValue{single(semconv.Direction, semconv.Transmit), single(semconv.Direction, semconv.Receive)}
	registering   = single(semconv.MemoryOperation, semconv.Register)
	deregistering = single(semconv.MemoryOperation, semconv.Deregister)
	errorTypes    = func() (list [ringbuf.Types][]attribute.KeyValue) {
		for kind, name := range errorNames {
			list[kind] = single(semconv.ErrorType, name)
		}
		return list
	}()
)

func single(key attribute.Key, value string) []attribute.KeyValue {
	return []attribute.KeyValue{key.String(value)}
}

// ErrorName returns the value of error.type for the type of an error event.
func ErrorName(kind ringbuf.Type) string { return errorNames[kind] }

var errorNames = [ringbuf.Types]string{
	ringbuf.TypeErrNotPosted:        semconv.ErrorNotPosted,
	ringbuf.TypeErrInvalidParam:     semconv.ErrorInvalidParam,
	ringbuf.TypeErrBackend:          semconv.ErrorBackend,
	ringbuf.TypeErrNotFound:         semconv.ErrorNotFound,
	ringbuf.TypeErrMismatch:         semconv.ErrorMismatch,
	ringbuf.TypeErrNotAllowed:       semconv.ErrorNotAllowed,
	ringbuf.TypeErrRepostActive:     semconv.ErrorRepostActive,
	ringbuf.TypeErrUnknown:          semconv.ErrorUnknown,
	ringbuf.TypeErrNotSupported:     semconv.ErrorNotSupported,
	ringbuf.TypeErrRemoteDisconnect: semconv.ErrorRemoteDisconnect,
	ringbuf.TypeErrCanceled:         semconv.ErrorCanceled,
	ringbuf.TypeErrNoTelemetry:      semconv.ErrorNoTelemetry,
}
