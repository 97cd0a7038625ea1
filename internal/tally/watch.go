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

// Watch defines when transfers are slow, and receives slow transfers and errors while
// they are counted. Its functions may be nil, must not block, and must not use the
// agent.
type Watch struct {
	Slow     Slow
	Transfer func(Transfer) // called for each slow transfer whose events were all read
	Error    func(Error)    // called for each error event
}

// Slow defines when transfers are slow: if they meet any of the conditions. A limit of
// 0 disables a condition.
type Slow struct {
	// Duration is the time above which a transfer is slow.
	Duration time.Duration
	// MinThroughput is the throughput in bytes per second below which a transfer of
	// at least MinSize bytes is slow.
	MinThroughput, MinSize uint64
	// P99Factor makes a transfer slow if its time exceeds the 99th percentile of the
	// agent's earlier transfers by this factor. It applies after [P99Transfers]
	// transfers.
	P99Factor float64
}

// P99Transfers is the number of an agent's transfers before [Slow.P99Factor] applies.
const P99Transfers = 1000

// Cause is the condition that makes a transfer slow.
type Cause uint8

// The causes. If several apply, the first is reported.
const (
	SlowDuration Cause = iota + 1
	SlowThroughput
	SlowP99
)

// Transfer is a transfer that was slow.
type Transfer struct {
	Layout         ringbuf.Layout
	Micros         uint64 // time of recording, since the epoch; 0 if the layout has no times
	Direction      Direction
	Bytes          uint64
	Duration, Post uint64 // µs
	Cause          Cause
	P99            uint64 // µs, the agent's 99th percentile; for the cause SlowP99
}

// Throughput returns the transfer's bytes per second.
func (t *Transfer) Throughput() uint64 { return semconv.Throughput(t.Bytes, t.Duration) }

// Error is an operation that ended in an error.
type Error struct {
	Layout ringbuf.Layout
	Micros uint64       // as in [Transfer]
	Type   ringbuf.Type // type of the status; not an error type if the status isn't in the catalog
}

// otherError is the type of errors that aren't in the catalog.
const otherError ringbuf.Type = math.MaxUint32

// watch applies a list of [Watch] to the events that are being counted.
type watch struct {
	list  []watcher
	limit uint64 // µs: the lowest limit of the list
	// timesOnly is set if only times can make transfers slow.
	timesOnly bool

	layout ringbuf.Layout
	timed  []ringbuf.TimedEvent // the events that are being counted, if they have times
	at     int                  // index of the event that is being counted
}

// watcher applies one [Watch].
type watcher struct {
	Watch
	limit   uint64 // µs: the lower limit of SlowDuration and SlowP99
	longest uint64 // µs: the limit of SlowDuration
	p99     uint64 // µs
	size    uint64 // minimum size for SlowThroughput; the largest uint64 if disabled
}

// Watch reports slow transfers and errors to each element of list from now on, and no longer
// to those of an earlier call.
func (a *Agent) Watch(list ...Watch) {
	if len(list) == 0 {
		a.watch = nil
		return
	}
	a.watch = &watch{timesOnly: true}
	for _, w := range list {
		if w.Transfer == nil {
			w.Transfer = func(Transfer) {}
			w.Slow = Slow{}
		}
		if w.Error == nil {
			w.Error = func(Error) {}
		}
		one := watcher{Watch: w, longest: math.MaxUint64, size: math.MaxUint64}
		if w.Slow.Duration > 0 {
			one.longest = uint64(w.Slow.Duration.Microseconds())
		}
		if w.Slow.MinThroughput > 0 {
			one.size = w.Slow.MinSize
			a.watch.timesOnly = false
		}
		a.watch.list = append(a.watch.list, one)
	}
}

// begin prepares for a batch. times is the distribution of the agent's earlier
// transfers.
func (w *watch) begin(l ringbuf.Layout, times *Histogram) {
	w.layout, w.timed, w.at = l, nil, 0
	w.limit = math.MaxUint64
	for i := range w.list {
		one := &w.list[i]
		one.begin(times)
		w.limit = min(w.limit, one.limit)
	}
}

func (w *watcher) begin(times *Histogram) {
	w.limit = w.longest
	if w.Slow.P99Factor == 0 {
		return
	}
	if p99, ok := times.quantile(0.99, P99Transfers); ok {
		w.p99 = uint64(math.Ceil(p99 * microsPerSecond))
		w.limit = min(w.limit, uint64(min(w.Slow.P99Factor*p99*microsPerSecond, math.MaxInt64)))
	}
}

// times sets the events with times that are counted next.
func (w *watch) times(events []ringbuf.TimedEvent) {
	if w != nil {
		w.timed, w.at = events, 0
	}
}

// micros returns the time of the event at an index, or 0.
func (w *watch) micros(at int) uint64 {
	if at >= len(w.timed) {
		return 0
	}
	return w.timed[at].TimestampMicros
}

// transfers reports the slow transfers of a run. at is the index of its first event.
func (w *watch) transfers(groups []group, at int) {
	for n := range w.list {
		one := &w.list[n]
		limit, size, least := one.limit, one.size, one.Slow.MinThroughput
		for i := range groups {
			g := &groups[i]
			if took, bytes := g[1].Value, g[2].Value; took > limit || bytes >= size && below(bytes, took, least) {
				d := Direction((g[2].Type - ringbuf.TypeTxBytes) & 1)
				w.report(one, at+groupSize*i+groupSize-1, d, bytes, took, g[0].Value)
			}
		}
	}
}

// transfer reports a transfer if it is slow. at is the index of its last event.
func (w *watch) transfer(at int, d Direction, bytes, took, post uint64) {
	for i := range w.list {
		w.report(&w.list[i], at, d, bytes, took, post)
	}
}

func (w *watch) report(to *watcher, at int, d Direction, bytes, took, post uint64) {
	t := Transfer{Layout: w.layout, Direction: d, Bytes: bytes, Duration: took, Post: post}
	switch {
	case took > to.longest:
		t.Cause = SlowDuration
	case bytes >= to.size && below(bytes, took, to.Slow.MinThroughput):
		t.Cause = SlowThroughput
	case took > to.limit:
		t.Cause, t.P99 = SlowP99, to.p99
	default:
		return
	}
	t.Micros = w.micros(at)
	to.Transfer(t)
}

// below reports whether [semconv.Throughput] of the arguments is less than least,
// without a division.
func below(bytes, micros, least uint64) bool {
	hi, lo := bits.Mul64(bytes, microsPerSecond)
	leastHi, leastLo := bits.Mul64(least, max(micros, 1))
	return hi < leastHi || hi == leastHi && lo < leastLo
}

func (w *watch) failed(t ringbuf.Type) {
	for i := range w.list {
		w.list[i].Error(Error{Layout: w.layout, Micros: w.micros(w.at), Type: t})
	}
}
