// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package expo

import "sync/atomic"

// Histogram counts durations. The zero value is an empty histogram. All methods are
// lock-free and safe for concurrent use.
type Histogram struct {
	sum     atomic.Int64 // ns
	zeros   atomic.Uint64
	newest  extremes // since the last Restart
	past    extremes // before the last Restart
	buckets [octaves]atomic.Pointer[octave]
}

// octave holds the buckets between two powers of two.
type octave struct {
	buckets [perOctave]atomic.Uint64
	// lower counts the durations in the bucket of the octave's step that don't
	// exceed the step. Record updates it after the bucket and Sum.Add reads it before
	// the bucket, so Sum.Add never reads more in lower than in the bucket.
	lower atomic.Uint64
}

// Record counts a duration of ns nanoseconds. Negative durations count as 0.
func (h *Histogram) Record(ns int64) {
	ns = max(ns, 0)
	h.newest.add(ns)
	h.sum.Add(ns)
	// The count is updated last, and Sum.Add reads it first, so the sum and the
	// extremes include every counted duration.
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

// grow allocates octave i, unless another goroutine has done so.
func (h *Histogram) grow(i int) *octave {
	h.buckets[i].CompareAndSwap(nil, new(octave))
	return h.buckets[i].Load()
}

// Count returns the number of recorded durations.
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

// Nanoseconds returns the sum of the recorded durations.
func (h *Histogram) Nanoseconds() int64 { return h.sum.Load() }

// Extremes returns the shortest and the longest duration since the last Restart, in
// nanoseconds. It returns ok = false if there was none.
func (h *Histogram) Extremes() (least, most int64, ok bool) { return h.newest.load() }

// Restart resets the result of [Histogram.Extremes]. It doesn't affect a [Sum].
func (h *Histogram) Restart() { h.newest.moveInto(&h.past) }
