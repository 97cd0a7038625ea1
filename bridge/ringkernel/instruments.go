// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/scope"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// instruments are the instruments of a Runtime. Most are observable, because an addition to
// an atomic number is much cheaper than one to a counter of the SDK.
type instruments struct {
	received, sent, processed, dropped metric.Int64ObservableCounter
	queueSize, queueCapacity, status   metric.Int64ObservableUpDownCounter
	uptime, lastMessage                metric.Float64ObservableGauge
	duration                           metric.Float64Histogram
	errors                             metric.Int64Counter // errors are rare
}

// connect creates the instruments and registers their callback.
func (r *Runtime) connect(m scope.Meter) {
	in := &r.instruments
	in.received, in.sent = m.ObservableCounter(semconv.KernelMessagesReceived), m.ObservableCounter(semconv.KernelMessagesSent)
	in.processed, in.dropped = m.ObservableCounter(semconv.KernelMessagesProcessed), m.ObservableCounter(semconv.KernelMessagesDropped)
	in.errors, in.status = m.Counter(semconv.KernelErrors), m.ObservableUpDownCounter(semconv.KernelStatus)
	in.queueSize = m.ObservableUpDownCounter(semconv.KernelQueueSize)
	in.queueCapacity = m.ObservableUpDownCounter(semconv.KernelQueueCapacity)
	in.uptime, in.lastMessage = m.ObservableFloatGauge(semconv.KernelUptime), m.ObservableFloatGauge(semconv.KernelLastMessageTime)
	in.duration = m.Histogram(semconv.KernelMessageDuration)
	r.registration = m.Observe(r.observe, in.received, in.sent, in.processed, in.dropped,
		in.status, in.queueSize, in.queueCapacity, in.uptime, in.lastMessage)
}

// observe is the callback of the instruments. It never returns an error, because the
// SDK's reader would then export nothing, not even the metrics of others.
func (r *Runtime) observe(_ context.Context, o metric.Observer) error {
	now := time.Now()
	for _, k := range r.all() {
		k.observe(o, now)
	}
	return nil
}

// observe reports a kernel. Its counts ignore resets, because a counter must not decrease.
func (k *Kernel) observe(o metric.Observer, now time.Time) {
	in, point := &k.runtime.instruments, k.point
	k.mu.Lock()
	t := k.totals(now)
	k.mu.Unlock()
	o.ObserveInt64(in.received, t.MessagesReceived, point)
	o.ObserveInt64(in.sent, t.MessagesSent, point)
	o.ObserveInt64(in.processed, t.MessagesProcessed, point)
	for q := range k.queues {
		o.ObserveInt64(in.dropped, k.dropped[q].Load(), point, queueOption[q])
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
	o.ObserveFloat64(in.uptime, t.Uptime().Seconds(), point)
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
