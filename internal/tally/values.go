// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Values are totals that another program has counted, by event type: totals of one
// process, or sums over several. They don't include the number of events, except for
// transfers.
type Values struct {
	// Sums are sums of values. The sums of transfer times and post times are in the
	// distributions instead.
	Sums [ringbuf.Types]Sum
	// Last are the newest values.
	Last [ringbuf.Types]uint64
	// Duration and Post are the distributions of transfer times and post times,
	// in microseconds.
	Duration, Post Distribution
}

// Distribution is a histogram that another program has counted.
type Distribution struct {
	Counts []uint64 // per bucket, one more than bounds
	Sum    Sum
}

// Add adds the values of a process that is newer than all others in v. The histograms
// must have the same bounds, unless v has none.
func (v *Values) Add(w *Values) {
	for t := range v.Sums {
		v.Sums[t].plus(w.Sums[t])
		if w.occurred(t) {
			v.Last[t] = w.Last[t]
		}
	}
	v.Duration.add(&w.Duration)
	v.Post.add(&w.Post)
}

// AddWithoutHistograms is like [Values.Add], for a process whose histograms have other
// bounds.
func (v *Values) AddWithoutHistograms(w *Values) {
	duration, post := v.Duration, v.Post
	v.Duration, v.Post = Distribution{}, Distribution{}
	v.Add(w)
	v.Duration, v.Post = duration, post
}

// Set makes v a copy of w, and reuses the memory of v.
func (v *Values) Set(w *Values) {
	v.Sums, v.Last = w.Sums, w.Last
	v.Duration.set(&w.Duration)
	v.Post.set(&w.Post)
}

// Raise makes no counter of v less than in w, an earlier reading of the same process.
// Readings aren't atomic, so a counter may be larger in the earlier one.
func (v *Values) Raise(w *Values) {
	for t := range v.Sums {
		v.Sums[t].Raise(w.Sums[t])
	}
	v.Duration.raise(&w.Duration)
	v.Post.raise(&w.Post)
}

// occurred reports whether there was an event of a type.
func (v *Values) occurred(t int) bool {
	sum := v.Sums[t]
	switch ringbuf.Type(t) {
	case ringbuf.TypeXferTime:
		sum = v.Duration.Sum
	case ringbuf.TypeXferPostTime:
		sum = v.Post.Sum
	}
	return sum != Sum{} || v.Last[t] != 0
}

func (d *Distribution) add(e *Distribution) {
	d.Sum.plus(e.Sum)
	if len(d.Counts) == 0 {
		d.Counts = append(d.Counts, e.Counts...)
		return
	}
	for i, n := range e.Counts {
		d.Counts[i] += n
	}
}

func (d *Distribution) set(e *Distribution) {
	d.Counts, d.Sum = append(d.Counts[:0], e.Counts...), e.Sum
}

func (d *Distribution) raise(e *Distribution) {
	for i, n := range e.Counts[:min(len(e.Counts), len(d.Counts))] {
		d.Counts[i] = max(d.Counts[i], n)
	}
	d.Sum.Raise(e.Sum)
}

// Import converts values that another program has counted to totals with this shape. If
// the shape's bounds of durations are explicit, they must equal those of the values. v
// includes before, the values of processes that have exited and whose memory was
// released. Import returns the totals in into, which must be an earlier result, unless it
// is nil.
func (s *Shape) Import(v, before *Values, into *Totals) *Totals {
	t := into
	if t == nil {
		t = &Totals{series: emptySeries}
	}
	for kind := range t.counters {
		t.counters[kind] = Total{}
		if v.occurred(kind) {
			// The number of events is unknown.
			t.counters[kind] = Total{Events: 1, Sum: v.Sums[kind], last: v.Last[kind]}
		}
	}
	for d := range t.sizes {
		size := ringbuf.TypeTxBytes + ringbuf.Type(d)
		t.sizes[d].load(s.size, &Distribution{Counts: []uint64{t.counters[size].Events}, Sum: v.Sums[size]}, v.Last[size])
		t.throughput[d].load(s.throughput, &Distribution{}, 0)
	}
	t.duration.load(s.duration, &v.Duration, v.Last[ringbuf.TypeXferTime])
	t.post.load(s.duration, &v.Post, v.Last[ringbuf.TypeXferPostTime])
	t.memory = memory{
		registeredBefore:   before.Sums[ringbuf.TypeMemoryRegistered],
		deregisteredBefore: before.Sums[ringbuf.TypeMemoryDeregistered],
	}
	t.memory.known = t.balance() >= 0
	return t
}

// emptySeries are the series of imported totals. Nothing writes to them.
var emptySeries = make([]Series, reserved)

// load sets a histogram to a distribution. Without bounds, it has a single bucket.
func (h *Histogram) load(s *scale, d *Distribution, last uint64) {
	h.scale, h.min = s, math.MaxUint64
	switch n := s.explicit(); {
	case n <= len(h.buckets):
		h.many = nil
	case n != len(h.many):
		h.many = make([]uint64, n)
	}
	h.sum, h.last = d.Sum, last
	counts := h.counts()
	n := copy(counts, d.Counts)
	clear(counts[n:])
	for _, more := range d.Counts[n:] {
		counts[n-1] += more
	}
}
