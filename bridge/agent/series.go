// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/scope"
	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// boards hold the series of the agents of each MeterProvider.
var boards = scope.Boards[instruments, series]{Key: semconv.AgentName, Instruments: newInstruments, Create: newSeries, Observe: (*series).observe}

// instruments are the SDK's instruments. Counters and histograms are synchronous. Gauges and
// up-down counters are observable, because storing a last value is cheaper than recording it.
type instruments struct {
	io, requests, errors, dropped    metric.Int64Counter
	memoryBytes                      [memoryOperations]metric.Int64Counter
	size, duration, post, throughput metric.Float64Histogram

	up, usageCounter                 metric.Int64ObservableUpDownCounter
	lastSizeGauge, lastMemoryGauge   metric.Int64ObservableGauge
	lastDurationGauge, lastPostGauge metric.Float64ObservableGauge

	eventValue     metric.Int64Counter
	lastEventGauge metric.Int64ObservableGauge
}

func newInstruments(m scope.Meter) (instruments, []metric.Observable) {
	in := instruments{
		io: m.Counter(semconv.TransferIO), requests: m.Counter(semconv.TransferRequests),
		errors: m.Counter(semconv.Errors), dropped: m.Counter(semconv.TelemetryEventsDropped),
		memoryBytes: [...]metric.Int64Counter{m.Counter(semconv.MemoryRegistered), m.Counter(semconv.MemoryDeregistered)},
		size:        m.Histogram(semconv.TransferSize), duration: m.Histogram(semconv.TransferDuration),
		post: m.Histogram(semconv.TransferPostDuration), throughput: m.Histogram(semconv.TransferThroughput),
		up: m.ObservableUpDownCounter(semconv.AgentUp), usageCounter: m.ObservableUpDownCounter(semconv.MemoryUsage),
		lastSizeGauge: m.ObservableGauge(semconv.TransferLastSize), lastMemoryGauge: m.ObservableGauge(semconv.MemoryLastSize),
		lastDurationGauge: m.ObservableFloatGauge(semconv.TransferLastDuration), lastPostGauge: m.ObservableFloatGauge(semconv.TransferLastPostDuration),
		eventValue: m.Counter(semconv.EventValue), lastEventGauge: m.ObservableGauge(semconv.EventLastValue),
	}
	return in, []metric.Observable{in.up, in.usageCounter, in.lastSizeGauge, in.lastMemoryGauge, in.lastDurationGauge, in.lastPostGauge, in.lastEventGauge}
}

// series are the series of the agents with one name at a MeterProvider: the attribute sets of
// their points, and the values that the callback observes.
type series struct {
	*instruments

	identity   attribute.KeyValue
	agent      scope.Point // without further attributes
	direction  [directions]scope.Point
	operation  [memoryOperations]scope.Point
	errorTypes [statuses]scope.Point
	zeros      sync.Once

	// The last value of each kind, or -1.
	lastSize           [directions]atomic.Int64
	lastPost, lastTime atomic.Int64 // µs
	lastMemory         [memoryOperations]atomic.Int64

	mu    sync.Mutex
	open  int64 // number of agents
	usage memoryUsage

	events map[eventKey]*eventSeries
	named  []*eventSeries // in the order of creation, without that of the overflow
}

// eventKey identifies events. The zero value stands for those beyond the limit.
type eventKey struct {
	category ringbuf.Category
	name     ringbuf.Name
}

type eventSeries struct {
	point scope.Point
	last  atomic.Int64
}

// eventLimit is the number of events with series of their own; the receiver has the same.
const eventLimit = 200

// memoryUsage is what the agents that are open have registered or, if all are closed, what
// the last ones had.
type memoryUsage struct {
	bytes   int64
	known   bool // an event was recorded
	unknown bool // more memory was deregistered than registered
}

// statuses is the number of NIXL's error statuses (nixl_status_t, NIXL_ERR_…).
const statuses = ringbuf.TypeErrNoTelemetry - ringbuf.TypeErrNotPosted + 1

func newSeries(in *instruments, agent attribute.KeyValue) *series {
	s := &series{instruments: in, identity: agent, events: make(map[eventKey]*eventSeries), agent: scope.NewPoint(agent)}
	s.lastTime.Store(-1)
	for d, direction := range [directions]string{semconv.Transmit, semconv.Receive} {
		s.direction[d] = scope.NewPoint(agent, attribute.String(semconv.Direction, direction))
		s.lastSize[d].Store(-1)
	}
	for op, operation := range [memoryOperations]string{semconv.Register, semconv.Deregister} {
		s.operation[op] = scope.NewPoint(agent, attribute.String(semconv.MemoryOperation, operation))
		s.lastMemory[op].Store(-1)
	}
	for i := range s.errorTypes {
		kind := ringbuf.TypeErrNotPosted + ringbuf.Type(i)
		s.errorTypes[i] = scope.NewPoint(agent, attribute.String(semconv.ErrorType, tally.ErrorName(kind)))
	}
	return s
}

// opened adds an agent. The first one has registered no memory.
func (s *series) opened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open++; s.open == 1 {
		s.usage = memoryUsage{}
	}
}

// closed removes an agent. The last values stay.
func (s *series) closed() {
	s.addZeros()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

// addZeros starts the errors and the drops at 0, so that an alert can fire on the first
// one. It runs at the first collection or when the agent is closed, because the global
// MeterProvider may be set after the agent is created.
func (s *series) addZeros() {
	s.zeros.Do(func() {
		for i := range s.errorTypes {
			s.errors.Add(context.Background(), 0, s.errorTypes[i].Add...)
		}
		s.drop(context.Background(), 0)
	})
}

// drop counts dropped events. It does nothing for an agent with a ring, which reports them.
func (s *series) drop(ctx context.Context, events uint64) {
	if s != nil {
		s.dropped.Add(ctx, int64(min(events, math.MaxInt64)), s.agent.Add...)
	}
}

func (s *series) transfer(ctx context.Context, d Direction, t transfer) {
	direction := &s.direction[d]
	s.io.Add(ctx, t.bytes, direction.Add...)
	s.requests.Add(ctx, 1, direction.Add...)
	s.size.Record(ctx, float64(t.bytes), direction.Record...)
	s.throughput.Record(ctx, float64(semconv.Throughput(uint64(t.bytes), uint64(t.total))), direction.Record...)
	s.duration.Record(ctx, seconds(t.total), s.agent.Record...)
	s.post.Record(ctx, seconds(t.post), s.agent.Record...)
	s.lastSize[d].Store(t.bytes)
	s.lastPost.Store(t.post)
	s.lastTime.Store(t.total)
}

func (s *series) memory(ctx context.Context, op memoryOperation, bytes int64) {
	s.memoryBytes[op].Add(ctx, bytes, s.agent.Add...)
	s.lastMemory[op].Store(bytes)
	if op == deregister {
		bytes = -bytes
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usage.bytes += bytes
	s.usage.known, s.usage.unknown = true, s.usage.unknown || s.usage.bytes < 0
}

// event counts an event that has no metric of its own.
func (s *series) event(ctx context.Context, e *ringbuf.Event) {
	to, value := s.eventSeries(e), int64(min(e.Value, math.MaxInt64))
	to.last.Store(value)
	s.eventValue.Add(ctx, value, to.point.Add...)
}

func (s *series) eventSeries(e *ringbuf.Event) *eventSeries {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := eventKey{e.Category, e.Name}
	if s.events[key] == nil && len(s.named) == eventLimit {
		key = eventKey{}
	}
	to := s.events[key]
	switch {
	case to != nil:
		return to
	case key == eventKey{}:
		to = &eventSeries{point: scope.NewPoint(s.identity, attribute.Bool(semconv.MetricOverflow, true))}
	default:
		to = &eventSeries{point: scope.NewPoint(s.identity, attribute.String(semconv.EventCategory, strings.ToLower(e.Category.String())),
			attribute.String(semconv.EventName, text.Valid(e.Name.String())))}
		s.named = append(s.named, to)
	}
	s.events[key] = to
	return to
}

func (s *series) observe(o metric.Observer) {
	s.addZeros()
	s.mu.Lock()
	open, usage, events := s.open, s.usage, s.named
	s.mu.Unlock()
	o.ObserveInt64(s.up, open, s.agent.Observe...)
	for _, e := range events {
		o.ObserveInt64(s.lastEventGauge, e.last.Load(), e.point.Observe...)
	}
	for d := range s.lastSize {
		if v := s.lastSize[d].Load(); v >= 0 {
			o.ObserveInt64(s.lastSizeGauge, v, s.direction[d].Observe...)
		}
	}
	if v := s.lastTime.Load(); v >= 0 {
		o.ObserveFloat64(s.lastDurationGauge, seconds(v), s.agent.Observe...)
		o.ObserveFloat64(s.lastPostGauge, seconds(s.lastPost.Load()), s.agent.Observe...)
	}
	for op := range s.lastMemory {
		if v := s.lastMemory[op].Load(); v >= 0 {
			o.ObserveInt64(s.lastMemoryGauge, v, s.operation[op].Observe...)
		}
	}
	if usage.known && !usage.unknown {
		o.ObserveInt64(s.usageCounter, usage.bytes, s.agent.Observe...)
	}
}

// seconds divides, as the receiver does, so that both report the same value.
func seconds(micros int64) float64 { return float64(micros) / 1e6 }
