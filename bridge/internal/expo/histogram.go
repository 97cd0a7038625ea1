// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package expo

import "sync/atomic"

// Histogram counts durations. Its zero value is empty and ready. All methods
// are safe for concurrent use, and none waits for another.
type Histogram struct {
	sum     atomic.Int64 // ns
	zeros   atomic.Uint64
	newest  extremes // since the last Restart
	past    extremes // before it
	buckets [octaves]atomic.Pointer[octave]
}

// octave holds the buckets between two powers of two.
type octave struct {
	buckets [perOctave]atomic.Uint64
	// lower counts what is in the bucket of the octave's step and not above the
	// step. It follows its bucket: Sum.Add reads it before the bucket, so that
	// it never finds more in it.
	lower atomic.Uint64
}

// Record counts a duration of ns nanoseconds. What is less than 0 counts as 0.
func (h *Histogram) Record(ns int64) {
	ns = max(ns, 0)
	h.newest.add(ns)
	h.sum.Add(ns)
	// The count comes last, and Sum.Add reads it first: what is counted is in
	// the sum and between the extremes.
	if ns == 0 {
		h.zeros.Add(1)
		return
	}
	i, bucket := locate(ns)
	o := h.buckets[i&(octaves-1)].Load()
	if o == nil {
		o = h.grow(i)
	}
	o.buckets[bucket&(perOctave-1)].Add(1)
	if step := &steps[i&(octaves-1)]; bucket == step.bucket && ns <= step.ns {
		o.lower.Add(1)
	}
}

// grow makes octave i. Of two goroutines that do it at once the first wins.
func (h *Histogram) grow(i int) *octave {
	h.buckets[i].CompareAndSwap(nil, new(octave))
	return h.buckets[i].Load()
}

// Count is the number of durations recorded.
func (h *Histogram) Count() uint64 {
	n := h.zeros.Load()
	for i := range h.buckets {
		if o := h.buckets[i].Load(); o != nil {
			for j := range o.buckets {
				n += o.buckets[j].Load()
			}
		}
	}
	return n
}

// Nanoseconds is the sum of the durations recorded.
func (h *Histogram) Nanoseconds() int64 { return h.sum.Load() }

// Newest is the shortest and the longest duration since the last Restart, in
// nanoseconds; ok is false when there was none.
func (h *Histogram) Newest() (least, most int64, ok bool) { return h.newest.load() }

// Restart starts the extremes that Newest gives anew. Those of a [Sum], as
// everything else in it, go on.
func (h *Histogram) Restart() { h.newest.moveInto(&h.past) }
