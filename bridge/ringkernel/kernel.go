// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
)

// Kernel records the telemetry of one ring kernel. [Runtime.Register] creates it.
//
// All methods are safe for concurrent use. A nil *Kernel is valid and does nothing.
// Recording never blocks and ignores cancellation.
type Kernel struct {
	// Goroutines that receive, process and send messages don't share cache lines. The
	// sign of a counter is a flag for the method that increments it: at all of them, that
	// the kernel is retired; at received, also that the time of the last message is old.
	// With a flag of its own, each method would take half as long again, because the
	// compiler couldn't inline it.
	received  counter
	_         [56]byte
	sent      counter
	dropped   [queues]counter
	_         [40]byte
	processed counter
	latency   latencies
	_         [32]byte

	runtime *Runtime
	id      string
	number  uint64 // in the order of registration
	points  points

	left     time.Time // when it was unregistered; guarded by the Runtime's lock
	reported bool      // its counters were collected after that; guarded as well
	retired  atomic.Bool
	late     sync.Once // reports a call after that

	state       atomic.Uint32
	ended       atomic.Pointer[time.Time] // nil before it terminates
	lastMessage gauge                     // when the last message was received, in ns since the epoch
	baseline    atomic.Pointer[baseline]
	queues      [queues]queue
	errors      errorCounts
}

// counter is a number whose sign is a flag.
type counter struct{ atomic.Int64 }

func (c *counter) value() int64 { return c.Load() & math.MaxInt64 }

// flag sets the flag.
func (c *counter) flag() { c.Or(math.MinInt64) }

// unflag clears the flag and reports whether it was set.
func (c *counter) unflag() bool { return c.And(math.MaxInt64) < 0 }

func newKernel(r *Runtime, id string, number uint64) *Kernel {
	k := &Kernel{runtime: r, id: id, number: number, points: newPoints(r.attributes, id)}
	k.latency.restart()
	k.received.flag()
	k.baseline.Store(&baseline{start: time.Now()})
	return k
}

// restart resets the state and the snapshots of a kernel that is registered again.
func (k *Kernel) restart(now time.Time) {
	k.state.Store(uint32(StateCreated))
	k.ended.Store(nil)
	k.reset(now)
}

// ID returns the kernel's ID.
func (k *Kernel) ID() string {
	if k == nil {
		return ""
	}
	return k.id
}

// Received counts a message that entered the kernel's input queue, and sets the
// time of the last message. Call it where the message is put into the queue.
func (k *Kernel) Received(context.Context) {
	if k != nil && k.received.Add(1) < 0 {
		k.openWindow()
	}
}

// openWindow sets the time of the last message. It does nothing if the kernel is retired.
func (k *Kernel) openWindow() {
	if !k.off() {
		k.lastMessage.set(time.Now().UnixNano())
		k.runtime.window.open(k)
	}
}

// Sent counts a message that the kernel put into its output queue.
func (k *Kernel) Sent(context.Context) {
	if k != nil && k.sent.Add(1) < 0 {
		k.reportLate()
	}
}

// Dropped counts a message that was dropped because the queue q was full.
func (k *Kernel) Dropped(_ context.Context, q Queue) {
	if k != nil && q < queues && k.dropped[q].Add(1) < 0 {
		k.reportLate()
	}
}

// Processed counts a message that was processed successfully, and records its
// latency. A negative latency counts as 0. If ctx has a sampled span, the histogram of
// latencies gets an exemplar with the span's trace ID.
func (k *Kernel) Processed(ctx context.Context, latency time.Duration) {
	if k == nil {
		return
	}
	if k.processed.Add(1) < 0 {
		k.reportLate()
		return
	}
	latency = max(latency, 0)
	k.latency.total.Add(int64(latency))
	if int64(latency) < k.latency.shortest.Load() || int64(latency) > k.latency.longest.Load() {
		k.latency.widen(int64(latency))
	}
	k.runtime.instruments.duration.Record(ctx, latency.Seconds(), k.points.duration...)
}

// Error counts an error by its type. It does nothing if err is nil. Metrics never
// contain the text of err; snapshots return err as LastError.
func (k *Kernel) Error(_ context.Context, err error) {
	if err != nil && !k.off() {
		k.errors.add(&k.points, k.runtime.errorTypeOf(err), err)
	}
}

// retire makes all methods record nothing.
func (k *Kernel) retire() {
	k.retired.Store(true)
	for _, c := range []*counter{&k.received, &k.sent, &k.processed, &k.dropped[InputQueue], &k.dropped[OutputQueue]} {
		c.flag()
	}
}

// off reports whether the kernel records nothing, because telemetry is off or because
// it was unregistered.
func (k *Kernel) off() bool { return k == nil || k.retired.Load() && k.reportLate() }

func (k *Kernel) reportLate() bool {
	k.late.Do(func() {
		otel.Handle(fmt.Errorf("record for ring kernel %q: it is unregistered, so this and later calls record nothing; "+
			"register it again and use the new *Kernel", k.id))
	})
	return true
}

// latencies are the latencies since a reset.
type latencies struct{ total, shortest, longest atomic.Int64 } // ns

func (l *latencies) restart() {
	l.shortest.Store(math.MaxInt64)
	l.longest.Store(0)
}

// widen extends the range of latencies. Few latencies do, so it isn't part of
// Kernel.Processed.
func (l *latencies) widen(d int64) {
	for least := l.shortest.Load(); d < least; least = l.shortest.Load() {
		if l.shortest.CompareAndSwap(least, d) {
			break
		}
	}
	for most := l.longest.Load(); d > most; most = l.longest.Load() {
		if l.longest.CompareAndSwap(most, d) {
			break
		}
	}
}
