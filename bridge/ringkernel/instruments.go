// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/scope"
	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// instruments are the instruments of a Runtime. The MeterProvider adds up everything
// but the histogram's values from what [Runtime.observe] reports.
type instruments struct {
	received, sent, processed, dropped, errors metric.Int64ObservableCounter
	queueSize, queueCapacity, status           metric.Int64ObservableUpDownCounter
	uptime, lastMessage                        metric.Float64ObservableGauge
	duration                                   metric.Float64Histogram
}

// connect creates the instruments and registers their callback.
func (r *Runtime) connect(provider metric.MeterProvider) {
	m := scope.NewMeter(provider)
	in := &r.instruments
	in.received, in.sent = m.ObservableCounter(semconv.KernelMessagesReceived), m.ObservableCounter(semconv.KernelMessagesSent)
	in.processed, in.dropped = m.ObservableCounter(semconv.KernelMessagesProcessed), m.ObservableCounter(semconv.KernelMessagesDropped)
	in.errors, in.status = m.ObservableCounter(semconv.KernelErrors), m.ObservableUpDownCounter(semconv.KernelStatus)
	in.queueSize = m.ObservableUpDownCounter(semconv.KernelQueueSize)
	in.queueCapacity = m.ObservableUpDownCounter(semconv.KernelQueueCapacity)
	in.uptime, in.lastMessage = m.ObservableFloatGauge(semconv.KernelUptime), m.ObservableFloatGauge(semconv.KernelLastMessageTime)
	in.duration = m.Histogram(semconv.KernelMessageDuration)
	r.registration = m.Observe(r.observe, in.received, in.sent, in.processed, in.dropped, in.errors,
		in.status, in.queueSize, in.queueCapacity, in.uptime, in.lastMessage)
	if err := m.Err(); err != nil { // the Runtime goes on without them
		otel.Handle(fmt.Errorf("report metrics of ring kernels: %w", err))
	}
}

// observe is the callback of the instruments. It never returns an error, because the
// SDK's reader would then export nothing, not even the metrics of others.
func (r *Runtime) observe(_ context.Context, o metric.Observer) error {
	now := time.Now()
	for _, k := range r.collect() {
		k.observeCounters(o)
		if k.registered.Load() {
			k.observeGauges(o, now)
		}
	}
	return nil
}

// observeCounters reports the counts since the kernel was created. It ignores resets,
// because a counter must not decrease.
func (k *Kernel) observeCounters(o metric.Observer) {
	in, p := &k.runtime.instruments, &k.points
	o.ObserveInt64(in.received, k.received.count(), p.kernel...)
	o.ObserveInt64(in.sent, k.sent.Load(), p.kernel...)
	o.ObserveInt64(in.processed, k.processed.Load(), p.kernel...)
	for q := range k.dropped {
		o.ObserveInt64(in.dropped, k.dropped[q].Load(), p.kernel[0], queueOption[q])
	}
	for _, e := range k.errors.counts() {
		o.ObserveInt64(in.errors, e.n, e.point...)
	}
}

// observeGauges reports the metrics that only registered kernels have.
func (k *Kernel) observeGauges(o metric.Observer, now time.Time) {
	in, p := &k.runtime.instruments, &k.points
	state := State(k.state.Load())
	for s := range State(states) {
		var is int64
		if state == s {
			is = 1
		}
		o.ObserveInt64(in.status, is, p.kernel[0], stateOption[s])
	}
	for q, current := 0, k.queues.Load(); q < queues; q++ {
		size, capacity := current[q].read()
		if size.known {
			o.ObserveInt64(in.queueSize, size.value, p.kernel[0], queueOption[q])
		}
		if capacity.known {
			o.ObserveInt64(in.queueCapacity, capacity.value, p.kernel[0], queueOption[q])
		}
	}
	o.ObserveFloat64(in.uptime, k.uptime(now).Seconds(), p.kernel...)
	if last := k.lastMessage.load(); last.known {
		o.ObserveFloat64(in.lastMessage, float64(last.value)/1e9, p.kernel...)
	}
}

// points select a kernel's data points. They are created once, because creating an
// attribute set takes longer than the rest of the work for a point.
type points struct {
	kernel   []metric.ObserveOption
	duration []metric.RecordOption
}

func newPoints(common []attribute.KeyValue, id string) points {
	kernel := metric.WithAttributeSet(attribute.NewSet(append(slices.Clip(common), attribute.String(semconv.KernelID, text.Valid(id)))...))
	return points{[]metric.ObserveOption{kernel}, []metric.RecordOption{kernel}}
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
