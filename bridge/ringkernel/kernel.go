// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/errtype"
	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Kernel records the telemetry of one ring kernel. [Runtime.Register] creates it.
//
// All methods are safe for concurrent use. A nil *Kernel is valid and does nothing.
// Recording never blocks and ignores cancellation.
type Kernel struct {
	// Goroutines that receive, process and send messages don't share cache lines.
	received  arrivals
	_         [56]byte
	sent      atomic.Int64
	dropped   [queues]atomic.Int64
	_         [40]byte
	processed atomic.Int64

	// Latencies in ns. The shortest and the longest one since a reset only change under mu.
	latency, shortest, longest atomic.Int64
	_                          [32]byte

	runtime *Runtime
	id      string

	// Created once, because that takes longer than the rest of the work for a point.
	point  metric.MeasurementOption
	record []metric.RecordOption // contains only point; such a slice isn't allocated for each call

	lastMessage atomic.Int64 // when the last message was received, in ns since the epoch; 0 if unknown
	expiry      *time.Timer  // marks lastMessage as old
	queues      [queues]queue

	mu        sync.Mutex // guards what follows; not held while other code runs
	state     State
	ended     time.Time // zero before it terminates
	errors    int64
	lastError error
	baseline  Telemetry // the counts at the last reset
}

// clockInterval is how often a kernel reads the clock at most: reading it takes several times
// as long as counting a message.
const clockInterval = 10 * time.Millisecond

// arrivals is a number of messages. While it is negative, the time of the last message is
// old. With a flag of its own, Received would take half as long again, because the compiler
// couldn't inline it.
type arrivals struct{ atomic.Int64 }

func (a *arrivals) count() int64 { return a.Load() & math.MaxInt64 }

// expire makes the next message read the clock.
func (a *arrivals) expire() { a.Or(math.MinInt64) }

func newKernel(r *Runtime, id string) *Kernel {
	point := metric.WithAttributeSet(attribute.NewSet(attribute.String(semconv.KernelID, text.Valid(id))))
	k := &Kernel{runtime: r, id: id, point: point, record: []metric.RecordOption{point}}
	k.expiry = time.AfterFunc(clockInterval, k.received.expire)
	k.reset(time.Now())
	return k
}

// Received counts a message that entered the kernel's input queue, and sets the
// time of the last message. Call it where the message is put into the queue.
func (k *Kernel) Received(context.Context) {
	if k != nil && k.received.Add(1) < 0 {
		k.readClock()
	}
}

// readClock sets the time of the last message.
func (k *Kernel) readClock() {
	if k.received.And(math.MaxInt64) < 0 { // no other goroutine was first
		k.lastMessage.Store(time.Now().UnixNano())
		k.expiry.Reset(clockInterval)
	}
}

// Sent counts a message that the kernel put into its output queue.
func (k *Kernel) Sent(context.Context) {
	if k != nil {
		k.sent.Add(1)
	}
}

// Dropped counts a message that was dropped because the queue q was full.
func (k *Kernel) Dropped(_ context.Context, q Queue) {
	if k != nil && q < queues {
		k.dropped[q].Add(1)
	}
}

// Processed counts a message that was processed successfully, and records its
// latency. A negative latency counts as 0. If ctx has a sampled span, the histogram of
// latencies gets an exemplar with the span's trace ID.
func (k *Kernel) Processed(ctx context.Context, latency time.Duration) {
	if k == nil {
		return
	}
	latency = max(latency, 0)
	k.processed.Add(1)
	k.latency.Add(int64(latency))
	if int64(latency) < k.shortest.Load() || int64(latency) > k.longest.Load() { // rare
		k.mu.Lock()
		k.shortest.Store(min(k.shortest.Load(), int64(latency)))
		k.longest.Store(max(k.longest.Load(), int64(latency)))
		k.mu.Unlock()
	}
	k.runtime.instruments.duration.Record(ctx, latency.Seconds(), k.record...)
}

// Error counts an error by its type. It does nothing if err is nil. Metrics never
// contain the text of err; snapshots return err as LastError.
func (k *Kernel) Error(ctx context.Context, err error) {
	if k == nil || err == nil {
		return
	}
	k.mu.Lock()
	k.errors++
	k.lastError = err
	k.mu.Unlock()
	name := attribute.String(semconv.ErrorType, errtype.Of(err))
	k.runtime.instruments.errors.Add(ctx, 1, k.point, metric.WithAttributeSet(attribute.NewSet(name)))
}
