// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"sync/atomic"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// These benchmarks measure the cost of draining in ns per event, and for comparison
// the cost of copying the same bytes. Between drains, they refill the ring by moving
// positions, so the agent's work isn't measured.

func BenchmarkDrainV4(b *testing.B) {
	for _, mode := range modes() {
		b.Run(mode.String(), func(b *testing.B) {
			var counts [32]uint64
			var sums [32]uint64
			benchmarkDrain(b, V4, mode, func(batch Batch) {
				for _, e := range batch.Typed() {
					counts[e.Type&31]++
					sums[e.Type&31] += e.Value
				}
			})
			if counts[0] == 0 {
				b.Error("nothing was counted")
			}
		})
	}
}

func BenchmarkDrainV1(b *testing.B) {
	for _, mode := range modes() {
		b.Run(mode.String(), func(b *testing.B) {
			// V1 has names instead of types. Indexing by the first byte replaces the lookup.
			var counts, sums [256]uint64
			benchmarkDrain(b, V1, mode, func(batch Batch) {
				events := batch.Timed()
				for i := range events {
					e := &events[i]
					counts[e.Name[0]]++
					sums[e.Name[0]] += e.Value
				}
			})
			if counts['e'] == 0 {
				b.Error("nothing was counted")
			}
		})
	}
}

func benchmarkDrain(b *testing.B, l Layout, mode Mode, fn func(Batch)) {
	b.Helper()
	const capacity = 4096
	w := newRing(b, l, capacity)
	r := open(b, w.Path(), Consume)
	advance(b, w, r, capacity) // reading slots that were never written needs extra checks
	if mode == Observe {
		r = open(b, w.Path(), mode)
	}
	refill(w, r)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Read(0, fn); err != nil {
			b.Fatal(err)
		}
		must.OK(b, r.Commit())
		refill(w, r)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(capacity-1), "ns/event")
}

// refill fills the ring again.
func refill(w *Writer, r *Reader) {
	if r.mode == Observe {
		w.slots[len(w.slots)-8]++ // shows an observer that the agent has written up to the end
		atomic.StoreUint64(w.read, r.next)
	}
	atomic.StoreUint64(w.write, (atomic.LoadUint64(w.read)-1)&r.mask)
}

// BenchmarkIdle drains an idle ring, and for comparison does only the one load that
// every drain needs.
func BenchmarkIdle(b *testing.B) {
	w := newRing(b, V4, 4096)
	r := open(b, w.Path(), Consume)
	b.Run("read", func(b *testing.B) {
		fn := func(Batch) {}
		for b.Loop() {
			if _, err := r.Read(0, fn); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("idle", func(b *testing.B) {
		for b.Loop() {
			if !r.Idle() {
				b.Fatal("not idle")
			}
		}
	})
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			if atomic.LoadUint64(r.write) != 0 {
				b.Fatal("not idle")
			}
		}
	})
}

// BenchmarkPassOfOneEvent measures the fixed cost of a pass.
func BenchmarkPassOfOneEvent(b *testing.B) {
	w := newRing(b, V4, 4096)
	r := open(b, w.Path(), Consume)
	advance(b, w, r, 4096) // see benchmarkDrain
	fn := func(Batch) {}
	for b.Loop() {
		atomic.StoreUint64(w.write, (r.next+1)&r.mask)
		if _, err := r.Read(0, fn); err != nil {
			b.Fatal(err)
		}
		must.OK(b, r.Commit())
	}
}
