// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// counted returns an agent that has counted events.
func counted(t *testing.T, config tally.Config, events ...ringbuf.Event) *tally.Agent {
	t.Helper()
	shape, err := tally.NewShape(config)
	must.OK(t, err)
	a := tally.NewAgent(shape)
	path := filepath.Join(t.TempDir(), "ring")
	w, err := ringbuf.Create(path, ringbuf.V4, 1<<16)
	must.OK(t, err)
	defer w.Close()
	for _, e := range events {
		must.OK(t, w.Push(e))
	}
	r, err := ringbuf.OpenReader(path, ringbuf.Observe)
	must.OK(t, err)
	defer r.Close()
	_, err = r.Read(1<<16, a.Add)
	must.OK(t, err)
	return a
}

func transfer(d tally.Direction, bytes, took, post uint64) []ringbuf.Event {
	return []ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeXferPostTime, post), ringbuf.NewEvent(ringbuf.TypeXferTime, took),
		ringbuf.NewEvent(ringbuf.TypeTxBytes+ringbuf.Type(d), bytes), ringbuf.NewEvent(ringbuf.TypeTxRequests+ringbuf.Type(d), 1),
	}
}

// Whatever the scales of the directions and the range of the values, each value is in its bucket.
func TestExplicitBucketsContainTheValues(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var events []ringbuf.Event
		var sizes []float64
		for range rnd.IntN(400) {
			size := rnd.Uint64N(1 << (1 + rnd.IntN(40)))
			d := tally.Direction(0)
			if size > 1<<10 {
				d = tally.Receive
			}
			sizes = append(sizes, float64(size))
			events = append(events, transfer(d, size, 1, 1)...)
		}
		a := counted(t, tally.Config{Size: tally.HistogramConfig{Kind: tally.Exponential, MaxSize: 20}}, events...)
		h := newTotals(a.Look()).Sizes
		bounds, counts := h.Explicit()
		want := make([]uint64, len(bounds)+1)
		for _, size := range sizes {
			at, _ := slices.BinarySearch(bounds, size*(1-1e-12))
			want[at]++
		}
		if d := cmp.Diff(want, counts); d != "" {
			t.Errorf("seed %d: (-want +got)\n%s", seed, d)
		}
	}
}

// A reader subtracts states of a histogram, so the counts in wide buckets must not decrease.
func TestLaterBucketsUniteEarlierOnes(t *testing.T) {
	var before []float64
	var events []ringbuf.Event
	for i := range uint64(40) {
		events = append(events, transfer(tally.Transmit, 3<<i%1_000_003, 1, 1)...)
		a := counted(t, tally.Config{Size: tally.HistogramConfig{Kind: tally.Exponential, MaxSize: 10}}, events...)
		sizes := newTotals(a.Look()).Sizes
		bounds, _ := sizes.Explicit()
		for _, b := range bounds[1:] {
			if len(before) > 0 && b > before[1] && b < before[len(before)-1] && !slices.ContainsFunc(before, func(c float64) bool { return b > c*(1-1e-12) && b < c*(1+1e-12) }) {
				t.Fatalf("after %d events, bound %v is inside a bucket of %v", i, b, before)
			}
		}
		before = bounds
	}
}
