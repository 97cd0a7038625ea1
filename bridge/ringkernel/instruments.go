// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/scope"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// boards hold the series of the kernels of each MeterProvider.
var boards = scope.Boards[instruments, series]{Key: semconv.KernelID, Instruments: newInstruments, Create: newSeries, Observe: (*series).observe}

// instruments are the SDK's instruments. Most are observable, because an addition to an
// atomic number is much cheaper than one to a counter of the SDK.
type instruments struct {
	received, sent, processed, dropped         metric.Int64ObservableCounter
	queueSize, queueCapacity, status           metric.Int64ObservableUpDownCounter
	uptime, lastMessage, throughput, errorRate metric.Float64ObservableGauge
	duration                                   metric.Float64Histogram
	errors                                     metric.Int64Counter // errors are rare
}

func newInstruments(m scope.Meter) (instruments, []metric.Observable) {
	in := instruments{
		received: m.ObservableCounter(semconv.KernelMessagesReceived), sent: m.ObservableCounter(semconv.KernelMessagesSent),
		processed: m.ObservableCounter(semconv.KernelMessagesProcessed), dropped: m.ObservableCounter(semconv.KernelMessagesDropped),
		queueSize: m.ObservableUpDownCounter(semconv.KernelQueueSize), queueCapacity: m.ObservableUpDownCounter(semconv.KernelQueueCapacity),
		status: m.ObservableUpDownCounter(semconv.KernelStatus),
		uptime: m.ObservableFloatGauge(semconv.KernelUptime), lastMessage: m.ObservableFloatGauge(semconv.KernelLastMessageTime),
		throughput: m.ObservableFloatGauge(semconv.KernelThroughput), errorRate: m.ObservableFloatGauge(semconv.KernelErrorRate),
		duration: m.Histogram(semconv.KernelMessageDuration), errors: m.Counter(semconv.KernelErrors),
	}
	return in, []metric.Observable{
		in.received, in.sent, in.processed, in.dropped, in.queueSize, in.queueCapacity, in.status,
		in.uptime, in.lastMessage, in.throughput, in.errorRate,
	}
}

// series are the series of the kernels with one ID at a MeterProvider.
type series struct {
	*instruments

	// Created once, because that takes longer than the rest of the work for a point.
	point    metric.MeasurementOption
	record   []metric.RecordOption // contains only point; such a slice isn't allocated for each call
	overflow bool                  // of different kernels

	mu      sync.Mutex // guards what follows; not held while a queue function runs
	kernels []*Kernel  // registered ones or, if there are none, the one that was unregistered last
	past    Telemetry  // the counts of the other ones
}

func newSeries(in *instruments, id attribute.KeyValue) *series {
	point := metric.WithAttributeSet(attribute.NewSet(id))
	return &series{instruments: in, point: point, record: []metric.RecordOption{point}, overflow: id.Key == semconv.MetricOverflow}
}

// join adds a kernel.
func (s *series) join(k *Kernel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave()
	s.kernels = append(slices.Clip(s.kernels), k)
}

// leave moves the counts of unregistered kernels to those of the past. The caller holds mu.
func (s *series) leave() {
	for _, k := range s.kernels {
		if k.unregistered {
			t := k.counts()
			s.past.add(&t)
		}
	}
	s.kernels = slices.DeleteFunc(slices.Clone(s.kernels), func(k *Kernel) bool { return k.unregistered })
}

// part removes a kernel that is no longer registered, unless it is the last one: then its final
// state is reported.
func (s *series) part(k *Kernel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.unregistered = true
	if len(s.kernels) > 1 || s.overflow {
		s.leave()
	}
}

// observe reports the kernels. Their counts ignore resets, because a counter must not decrease.
func (s *series) observe(o metric.Observer) {
	now := time.Now()
	s.mu.Lock()
	kernels, total := s.kernels, s.past
	for _, k := range kernels {
		t := k.counts()
		total.add(&t)
	}
	s.mu.Unlock()
	o.ObserveInt64(s.received, total.MessagesReceived, s.point)
	o.ObserveInt64(s.sent, total.MessagesSent, s.point)
	o.ObserveInt64(s.processed, total.MessagesProcessed, s.point)
	o.ObserveInt64(s.dropped, total.InputDropped, s.point, queueOption[InputQueue])
	o.ObserveInt64(s.dropped, total.OutputDropped, s.point, queueOption[OutputQueue])
	for _, k := range kernels {
		k.observe(o, now)
	}
}

// observe reports what a kernel is at the moment. The SDK adds the values of several
// kernels; of a gauge, it takes the last one.
func (k *Kernel) observe(o metric.Observer, now time.Time) {
	in, point, t := k.series, k.series.point, k.sinceReset(now)
	for q := range k.queues {
		if size, capacity, ok := k.queues[q].read(); ok {
			o.ObserveInt64(in.queueSize, size, point, queueOption[q])
			o.ObserveInt64(in.queueCapacity, capacity, point, queueOption[q])
		}
	}
	for s := range State(states) {
		var is int64
		if t.State == s {
			is = 1
		}
		o.ObserveInt64(in.status, is, point, stateOption[s])
	}
	if in.overflow {
		return // a gauge of different kernels has no meaning
	}
	o.ObserveFloat64(in.uptime, t.Uptime().Seconds(), point)
	o.ObserveFloat64(in.throughput, t.Throughput(), point)
	o.ObserveFloat64(in.errorRate, t.ErrorRate(), point)
	if !t.LastMessageTime.IsZero() {
		o.ObserveFloat64(in.lastMessage, float64(t.LastMessageTime.UnixNano())/1e9, point)
	}
}

// These options are added to those of a kernel. Sets of their own for each kernel would
// double its memory.
var (
	queueOption = options(queueNames[:], semconv.QueueName)
	stateOption = options(stateNames[:], semconv.KernelState)
)

func options(values []string, key string) []metric.ObserveOption {
	all := make([]metric.ObserveOption, len(values))
	for i, v := range values {
		all[i] = metric.WithAttributeSet(attribute.NewSet(attribute.String(key, v)))
	}
	return all
}
