// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/errtype"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Kernel records the telemetry of one ring kernel. [Runtime.Register] creates it.
//
// All methods are safe for concurrent use. A nil *Kernel is valid and does nothing.
// Recording never blocks and ignores cancellation.
type Kernel struct {
	// Goroutines that receive, process and send messages don't share cache lines.
	received  atomic.Int64
	stale     atomic.Bool // lastMessage is old
	_         [52]byte
	sent      atomic.Int64
	dropped   [queues]atomic.Int64
	_         [40]byte
	processed atomic.Int64

	// Latencies in ns. The shortest and the longest one since a reset only change under mu.
	latency, shortest, longest atomic.Int64
	_                          [32]byte

	id     string
	series *series

	lastMessage atomic.Int64 // when the last message was received, in ns since the epoch; 0 if unknown
	expiry      *time.Timer  // sets stale
	queues      [queues]queue

	unregistered bool // guarded by the series' mu

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

func newKernel(s *series, id string) *Kernel {
	k := &Kernel{id: id, series: s}
	k.expiry = time.AfterFunc(clockInterval, func() { k.stale.Store(true) })
	k.reset(time.Now())
	return k
}

// Received counts a message that entered the kernel's input queue, and sets the
// time of the last message. Call it where the message is put into the queue.
func (k *Kernel) Received(context.Context) {
	if k == nil {
		return
	}
	k.received.Add(1)
	if k.stale.Load() {
		k.readClock()
	}
}

// readClock sets the time of the last message.
func (k *Kernel) readClock() {
	if k.stale.CompareAndSwap(true, false) { // no other goroutine was first
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
	k.series.duration.Record(ctx, latency.Seconds(), k.series.record...)
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
	k.series.errors.Add(ctx, 1, k.series.point, metric.WithAttributeSet(attribute.NewSet(name)))
}
