// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math"
	"math/bits"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Watch says which transfers are slow, and takes them and errors as they are
// counted. Its functions may be nil, must not block, and must not use the agent.
type Watch struct {
	Slow     Slow
	Transfer func(Transfer) // of each slow transfer whose events were all read
	Error    func(Error)    // of each error event
}

// Slow says which transfers are slow: those that meet any of the conditions. A
// condition whose limit is 0 is off.
type Slow struct {
	// Duration is a time that slow transfers exceed.
	Duration time.Duration
	// MinThroughput, in bytes per second, is one that slow transfers of at least
	// MinSize bytes don't reach.
	MinThroughput, MinSize uint64
	// P99Factor makes those transfers slow that take more than so many times the
	// 99th percentile of the agent's earlier transfers, which must be [P99Transfers]
	// at least.
	P99Factor float64
}

// P99Transfers is how many transfers of an agent must be counted before its 99th
// percentile makes others slow.
const P99Transfers = 1000

// Cause is why a transfer is slow.
type Cause uint8

// The causes. If there are several, a transfer has the first.
const (
	SlowDuration Cause = iota + 1
	SlowThroughput
	SlowP99
)

// Transfer is a transfer that was slow.
type Transfer struct {
	Layout         ringbuf.Layout
	Micros         uint64 // when the agent recorded it, since the epoch; 0 if the layout has no times
	Direction      Direction
	Bytes          uint64
	Duration, Post uint64 // µs
	Cause          Cause
	P99            uint64 // µs, of the agent; for the cause SlowP99
}

// Throughput is the transfer's bytes per second.
func (t *Transfer) Throughput() uint64 { return semconv.Throughput(t.Bytes, t.Duration) }

// Error is an operation that ended in an error.
type Error struct {
	Layout ringbuf.Layout
	Micros uint64       // as in [Transfer]
	Type   ringbuf.Type // of the status; no error for a status that isn't in the catalog
}

// otherError stands for the types of errors that aren't in the catalog.
const otherError ringbuf.Type = math.MaxUint32

// watch applies a [Watch] to the events that are being counted.
type watch struct {
	Watch
	limit   uint64 // µs: slow transfers exceed it
	longest uint64 // µs: those of SlowDuration
	p99     uint64 // µs
	size    uint64 // of transfers whose throughput matters; more than any if it doesn't

	layout ringbuf.Layout
	timed  []ringbuf.TimedEvent // the events that are being counted, if they have times
	at     int                  // the event among these that is being counted
}

// Watch has slow transfers and errors reported from now on.
func (a *Agent) Watch(w Watch) {
	if w.Transfer == nil {
		w.Transfer = func(Transfer) {}
		w.Slow = Slow{}
	}
	if w.Error == nil {
		w.Error = func(Error) {}
	}
	a.watch = &watch{Watch: w, longest: math.MaxUint64, size: math.MaxUint64}
	if w.Slow.Duration > 0 {
		a.watch.longest = uint64(w.Slow.Duration.Microseconds())
	}
	if w.Slow.MinThroughput > 0 {
		a.watch.size = w.Slow.MinSize
	}
}

// timesOnly reports whether times alone make transfers slow.
func (w *watch) timesOnly() bool { return w.size == math.MaxUint64 }

// begin prepares for a batch: times are those of the agent's transfers before it.
func (w *watch) begin(l ringbuf.Layout, times *Histogram) {
	w.layout, w.timed, w.at = l, nil, 0
	w.limit = w.longest
	if w.Slow.P99Factor == 0 {
		return
	}
	if p99, ok := times.quantile(0.99, P99Transfers); ok {
		w.p99 = uint64(math.Ceil(p99 * microsPerSecond))
		w.limit = min(w.limit, uint64(min(w.Slow.P99Factor*p99*microsPerSecond, math.MaxInt64)))
	}
}

// times says that the events of a ring with times are counted next.
func (w *watch) times(events []ringbuf.TimedEvent) {
	if w != nil {
		w.timed, w.at = events, 0
	}
}

// micros is the time of the event at an index, or 0.
func (w *watch) micros(at int) uint64 {
	if at >= len(w.timed) {
		return 0
	}
	return w.timed[at].TimestampMicros
}

// transfers finds the slow ones of a run, whose first event is at at.
func (w *watch) transfers(groups []group, at int) {
	limit, size, least := w.limit, w.size, w.Slow.MinThroughput
	for i := range groups {
		g := &groups[i]
		if took, bytes := g[1].Value, g[2].Value; took > limit || bytes >= size && below(bytes, took, least) {
			d := Direction((g[2].Type - ringbuf.TypeTxBytes) & 1)
			w.transfer(at+groupSize*i+groupSize-1, d, bytes, took, g[0].Value)
		}
	}
}

// transfer reports a transfer if it is slow. Its last event is at at.
func (w *watch) transfer(at int, d Direction, bytes, took, post uint64) {
	t := Transfer{Layout: w.layout, Direction: d, Bytes: bytes, Duration: took, Post: post}
	switch {
	case took > w.longest:
		t.Cause = SlowDuration
	case bytes >= w.size && below(bytes, took, w.Slow.MinThroughput):
		t.Cause = SlowThroughput
	case took > w.limit:
		t.Cause, t.P99 = SlowP99, w.p99
	default:
		return
	}
	t.Micros = w.micros(at)
	w.Transfer(t)
}

// below reports whether a throughput, as [semconv.Throughput], is less than least.
// Unlike that, it doesn't divide.
func below(bytes, micros, least uint64) bool {
	hi, lo := bits.Mul64(bytes, microsPerSecond)
	leastHi, leastLo := bits.Mul64(least, max(micros, 1))
	return hi < leastHi || hi == leastHi && lo < leastLo
}

func (w *watch) failed(t ringbuf.Type) {
	w.Error(Error{Layout: w.layout, Micros: w.micros(w.at), Type: t})
}
