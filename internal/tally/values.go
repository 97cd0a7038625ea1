// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math"
	"slices"

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
	// Others are the values of types that aren't in the catalog, beginning with type
	// [ringbuf.Types].
	Others []Other
}

// Other is the sum and the newest value of an event type.
type Other struct {
	Sum  Sum
	Last uint64
}

// Distribution is a histogram that another program has counted.
type Distribution struct {
	Counts []uint64 // per bucket, one more than bounds
	Sum    Sum
}

// DistributionTypes is the number of types up to the last one that has a distribution.
const DistributionTypes = int(ringbuf.TypeXferPostTime) + 1

// Distribution returns the distribution of a type, or nil if the type has only a sum.
func (v *Values) Distribution(t int) *Distribution {
	switch ringbuf.Type(t) {
	case ringbuf.TypeXferTime:
		return &v.Duration
	case ringbuf.TypeXferPostTime:
		return &v.Post
	default:
		return nil
	}
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
	for i, o := range w.Others {
		if i == len(v.Others) {
			v.Others = append(v.Others, Other{})
		}
		v.Others[i].Sum.plus(o.Sum)
		if o != (Other{}) {
			v.Others[i].Last = o.Last
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

// Sub subtracts an earlier reading of the same process.
func (v *Values) Sub(w *Values) {
	for t := range v.Sums {
		v.Sums[t].reduce(w.Sums[t])
	}
	for i, o := range w.Others[:min(len(w.Others), len(v.Others))] {
		v.Others[i].Sum.reduce(o.Sum)
	}
	v.Duration.reduce(&w.Duration)
	v.Post.reduce(&w.Post)
}

// Set makes v a copy of w, and reuses the memory of v.
func (v *Values) Set(w *Values) {
	v.Sums, v.Last = w.Sums, w.Last
	v.Others = append(v.Others[:0], w.Others...)
	v.Duration.set(&w.Duration)
	v.Post.set(&w.Post)
}

// Raise makes no counter of v less than in w, an earlier reading of the same process.
// Readings aren't atomic, so a counter may be larger in the earlier one.
func (v *Values) Raise(w *Values) {
	for t := range v.Sums {
		v.Sums[t].Raise(w.Sums[t])
	}
	for i, o := range w.Others[:min(len(w.Others), len(v.Others))] {
		v.Others[i].Sum.Raise(o.Sum)
	}
	v.Duration.raise(&w.Duration)
	v.Post.raise(&w.Post)
}

// distribution returns the distribution of a type. The number of events of a type with only a sum is unknown.
func (v *Values) distribution(t ringbuf.Type) Distribution {
	if d := v.Distribution(int(t)); d != nil {
		return *d
	}
	if v.occurred(int(t)) {
		return Distribution{Counts: oneEvent, Sum: v.Sums[t]}
	}
	return Distribution{}
}

var oneEvent = []uint64{1}

// occurred reports whether there was an event of a type.
func (v *Values) occurred(t int) bool {
	sum := v.Sums[t]
	if d := v.Distribution(t); d != nil {
		sum = d.Sum
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

func (d *Distribution) reduce(e *Distribution) {
	for i, n := range e.Counts[:min(len(e.Counts), len(d.Counts))] {
		d.Counts[i] -= min(n, d.Counts[i])
	}
	d.Sum.reduce(e.Sum)
}

func (d *Distribution) raise(e *Distribution) {
	for i, n := range e.Counts[:min(len(e.Counts), len(d.Counts))] {
		d.Counts[i] = max(d.Counts[i], n)
	}
	d.Sum.Raise(e.Sum)
}

// ImportShape returns the shape of totals that another program has counted, with
// histograms of times or without. The bounds are in microseconds. It returns an error if
// they aren't finite, positive and increasing.
func ImportShape(bounds []float64, histograms bool) (*Shape, error) {
	duration := HistogramConfig{Kind: NoHistogram}
	if histograms && len(bounds) > 0 {
		duration.Kind = Explicit
	}
	for _, bound := range bounds {
		duration.Bounds = append(duration.Bounds, bound/microsPerSecond)
	}
	none := HistogramConfig{Kind: NoHistogram}
	return NewShape(Config{Duration: duration, Size: none, Throughput: none})
}

// HasDurations reports whether totals of this shape have histograms of times.
func (s *Shape) HasDurations() bool { return s.duration.kind != NoHistogram }

// Import converts values that another program has counted to totals with this shape. If
// the shape's bounds of durations are explicit, they must equal those of the values. v
// includes before, the values of processes that have exited and whose memory was
// released. Import returns the totals in into, which must be an earlier result, unless it
// is nil.
func (s *Shape) Import(v, before *Values, into *Totals) *Totals {
	t := into
	if t == nil {
		t = new(Totals)
	}
	t.shape = s
	for kind := range t.counters {
		t.counters[kind] = Total{}
		if v.occurred(kind) {
			// The number of events is unknown.
			t.counters[kind] = Total{Events: 1, Sum: v.Sums[kind], last: v.Last[kind]}
		}
	}
	for _, one := range t.list() {
		if one.of == computed {
			one.load(one.scale, Distribution{}, 0)
		} else {
			one.load(one.scale, v.distribution(one.of), v.Last[one.of])
		}
	}
	t.memory = memory{
		registeredBefore:   before.Sums[ringbuf.TypeMemoryRegistered],
		deregisteredBefore: before.Sums[ringbuf.TypeMemoryDeregistered],
	}
	t.memory.known = t.balance() >= 0
	t.series = importOthers(v.Others)
	return t
}

// emptySeries are the series of imported totals without other types. Nothing writes to
// them.
var emptySeries = make([]Series, reserved)

// importOthers returns the series of the types that aren't in the catalog and have
// occurred. Their number of events is unknown, so their values are reported.
func importOthers(others []Other) []Series {
	list := emptySeries
	for i, o := range others {
		if o == (Other{}) {
			continue
		}
		name := ringbuf.V4.TypeName(ringbuf.Type(ringbuf.Types + i))
		list = append(slices.Clip(list), Series{
			Category: CategoryName(noCategory), Name: name, Valued: true, number: noCategory, Sum: o.Sum, last: o.Last,
		})
	}
	return list
}

// load sets a histogram to a distribution. Without bounds, it has a single bucket.
func (h *Histogram) load(s *scale, d Distribution, last uint64) {
	h.scale, h.min = s, math.MaxUint64
	switch {
	case s.buckets <= len(h.buckets):
		h.many = nil
	case s.buckets != len(h.many):
		h.many = make([]uint64, s.buckets)
	}
	h.sum, h.last = d.Sum, last
	counts := h.counts()
	n := copy(counts, d.Counts)
	clear(counts[n:])
	for _, more := range d.Counts[n:] {
		counts[n-1] += more
	}
}
