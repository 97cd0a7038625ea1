// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"math"
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

// series are the series of an agent that reports through a MeterProvider: the SDK's
// instruments, the attribute sets of its points, and the values that its callback observes.
// Agents with the same name and MeterProvider share their series in the SDK.
type series struct {
	// Counters and histograms are synchronous, because the SDK keeps their values when an
	// agent is closed and created again.
	io, requests, errors, dropped    metric.Int64Counter
	memoryBytes                      [memoryOperations]metric.Int64Counter
	size, duration, post, throughput metric.Float64Histogram

	// Gauges and up-down counters are observable, because their series must end, and
	// because storing a last value is cheaper than recording it.
	up, usage                        metric.Int64ObservableUpDownCounter
	lastSizeGauge, lastMemoryGauge   metric.Int64ObservableGauge
	lastDurationGauge, lastPostGauge metric.Float64ObservableGauge

	agent      scope.Point // without further attributes
	direction  [directions]scope.Point
	operation  [memoryOperations]scope.Point
	errorTypes [statuses]scope.Point
	zeros      sync.Once

	// The last value of each kind, or -1.
	lastSize           [directions]atomic.Int64
	lastPost, lastTime atomic.Int64 // µs
	lastMemory         [memoryOperations]atomic.Int64

	balance     atomic.Int64 // bytes registered minus bytes deregistered
	usageBroken atomic.Bool  // more memory was deregistered than registered
}

// statuses is the number of NIXL's error statuses (nixl_status_t, NIXL_ERR_…).
const statuses = ringbuf.TypeErrNoTelemetry - ringbuf.TypeErrNotPosted + 1

func newSeries(agent string, m scope.Meter) *series {
	s := &series{
		io: m.Counter(semconv.TransferIO), requests: m.Counter(semconv.TransferRequests),
		errors: m.Counter(semconv.Errors), dropped: m.Counter(semconv.TelemetryEventsDropped),
		memoryBytes: [...]metric.Int64Counter{m.Counter(semconv.MemoryRegistered), m.Counter(semconv.MemoryDeregistered)},
		size:        m.Histogram(semconv.TransferSize), duration: m.Histogram(semconv.TransferDuration),
		post: m.Histogram(semconv.TransferPostDuration), throughput: m.Histogram(semconv.TransferThroughput),
		up: m.ObservableUpDownCounter(semconv.AgentUp), usage: m.ObservableUpDownCounter(semconv.MemoryUsage),
		lastSizeGauge: m.ObservableGauge(semconv.TransferLastSize), lastMemoryGauge: m.ObservableGauge(semconv.MemoryLastSize),
		lastDurationGauge: m.ObservableFloatGauge(semconv.TransferLastDuration), lastPostGauge: m.ObservableFloatGauge(semconv.TransferLastPostDuration),
	}
	name := attribute.String(semconv.AgentName, text.Valid(agent))
	s.agent = scope.NewPoint(name)
	s.lastTime.Store(-1)
	for d, direction := range [directions]string{semconv.Transmit, semconv.Receive} {
		s.direction[d] = scope.NewPoint(name, attribute.String(semconv.Direction, direction))
		s.lastSize[d].Store(-1)
	}
	for op, operation := range [memoryOperations]string{semconv.Register, semconv.Deregister} {
		s.operation[op] = scope.NewPoint(name, attribute.String(semconv.MemoryOperation, operation))
		s.lastMemory[op].Store(-1)
	}
	for i := range s.errorTypes {
		kind := ringbuf.TypeErrNotPosted + ringbuf.Type(i)
		s.errorTypes[i] = scope.NewPoint(name, attribute.String(semconv.ErrorType, tally.ErrorName(kind)))
	}
	return s
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
	if s.balance.Add(bytes) < 0 {
		s.usageBroken.Store(true)
	}
}

func (s *series) observe(o metric.Observer) {
	s.addZeros()
	o.ObserveInt64(s.up, 1, s.agent.Observe...)
	for d := range s.lastSize {
		if v := s.lastSize[d].Load(); v >= 0 {
			o.ObserveInt64(s.lastSizeGauge, v, s.direction[d].Observe...)
		}
	}
	if v := s.lastTime.Load(); v >= 0 {
		o.ObserveFloat64(s.lastDurationGauge, seconds(v), s.agent.Observe...)
		o.ObserveFloat64(s.lastPostGauge, seconds(s.lastPost.Load()), s.agent.Observe...)
	}
	used := false
	for op := range s.lastMemory {
		if v := s.lastMemory[op].Load(); v >= 0 {
			o.ObserveInt64(s.lastMemoryGauge, v, s.operation[op].Observe...)
			used = true
		}
	}
	if usage := s.balance.Load(); used && usage >= 0 && !s.usageBroken.Load() {
		o.ObserveInt64(s.usage, usage, s.agent.Observe...)
	}
}

// seconds divides, as the receiver does, so that both report the same value.
func seconds(micros int64) float64 { return float64(micros) / 1e6 }
