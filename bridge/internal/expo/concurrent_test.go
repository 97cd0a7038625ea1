// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package expo

import (
	"math/rand/v2"
	"sync"
	"testing"
)

// During concurrent writes, every reading is consistent: the count equals the sum of
// the buckets, no count decreases, the scale never increases, and the buckets are
// between min and max. Afterwards, no value is missing.
func TestReadingsAreConsistentDuringConcurrentWrites(t *testing.T) {
	const (
		writers = 4
		each    = 20_000
	)
	var (
		h    Histogram
		wg   sync.WaitGroup
		stop = make(chan struct{})
	)
	for w := range writers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 9))
			for range each {
				h.Record(r.Int64N(1 << r.IntN(50)))
			}
		})
	}
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() { watch(t, &h, stop) })
	}
	wg.Wait()
	close(stop)
	readers.Wait()
	if got := h.Count(); got != writers*each {
		t.Errorf("Count() = %d, want %d", got, writers*each)
	}
}

func watch(t *testing.T, h *Histogram, stop <-chan struct{}) {
	last := Point{Scale: MaxScale}
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		if i%16 == 0 {
			h.Restart()
		}
		var s Sum
		s.Add(h)
		p := s.Point()
		checkSuccessor(t, last, p)
		last = p
	}
}

func checkSuccessor(t *testing.T, last, p Point) {
	t.Helper()
	n := p.Zeros
	for _, c := range p.Counts {
		n += c
	}
	if n != p.Count {
		t.Errorf("the count is %d, the sum of the buckets %d", p.Count, n)
	}
	if p.Count < last.Count || p.Sum < last.Sum || p.Scale > last.Scale || p.Max < last.Max {
		t.Errorf("%+v came after %+v", p, last)
	}
	if last.Count > 0 && p.Min > last.Min {
		t.Errorf("min rose from %v to %v", last.Min, p.Min)
	}
	if len(p.Counts) == 0 {
		return
	}
	if len(p.Counts) > MaxSize {
		t.Errorf("%d buckets, want %d at most", len(p.Counts), MaxSize)
	}
	// Min may be below the first bucket and max above the last one, because Record
	// updates them before the count.
	lowest, highest := bounds(p)
	if p.Min > lowest || p.Max < highest {
		t.Errorf("buckets from %v to %v, but min %v and max %v", lowest, highest, p.Min, p.Max)
	}
}
