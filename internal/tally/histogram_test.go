// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/oracle"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// sizesOf and timesOf return events of one type. The package has another path for whole
// transfers, so tests use both.
func sizesOf(values ...uint64) []ringbuf.Event { return eventsOf(ringbuf.TypeRxBytes, values) }
func timesOf(values ...uint64) []ringbuf.Event { return eventsOf(ringbuf.TypeXferTime, values) }

func eventsOf(kind ringbuf.Type, values []uint64) []ringbuf.Event {
	events := make([]ringbuf.Event, len(values))
	for i, v := range values {
		events[i] = ringbuf.NewEvent(kind, v)
	}
	return events
}

func transfersOf(values ...uint64) []ringbuf.Event {
	var events []ringbuf.Event
	for _, v := range values {
		events = append(events,
			ringbuf.NewEvent(ringbuf.TypeXferPostTime, v), ringbuf.NewEvent(ringbuf.TypeXferTime, v),
			ringbuf.NewEvent(ringbuf.TypeRxBytes, v), ringbuf.NewEvent(ringbuf.TypeRxRequests, 1))
	}
	return events
}

// The values are on bounds, next to them, and in between.
func TestEveryValueIsInItsBucket(t *testing.T) {
	linear := make([]float64, 255)
	for i := range linear {
		linear[i] = float64(i) * 4
	}
	tests := []struct {
		name   string
		bounds []float64 // in microseconds, or bytes
	}{
		{"the catalog's", nil},
		{"no exact binary form", []float64{2500, 7100, 1_000_001}},
		{"a dense octave", []float64{5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10000}},
		{"as many as quickBucket supports", linear[:31]},
		{"one more", linear[:32]},
		{"the maximum number", linear},
		{"from zero", []float64{0, 1, 2, 3}},
		{"below the unit", []float64{0.1, 0.25, 0.5, 1.5}},
		{"one", []float64{1000}},
		{"large", []float64{1 << 40, 1 << 47, 1<<48 - 1, 1 << 48, 1<<48 + 1, 1 << 52, 1 << 53, 1e17, 1 << 62, 1 << 63, 1e19}},
		{"beyond all values", []float64{1000, 1e20, 1e300}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			model := oracle.New()
			config := tally.Config{}
			if tt.bounds != nil {
				model.SizeBounds, model.DurationBounds = tt.bounds, make([]float64, len(tt.bounds))
				for i, b := range tt.bounds {
					model.DurationBounds[i] = b / 1e6
				}
				config.Size.Bounds, config.Duration.Bounds = model.SizeBounds, model.DurationBounds
			}
			values := around(model.SizeBounds, 1)
			values = append(values, around(model.DurationBounds, 1e6)...)
			random := rand.New(rand.NewPCG(1, 1))
			for range 5000 {
				values = append(values, random.Uint64()>>random.IntN(64))
			}
			random.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })

			want := map[string]oracle.Distribution{
				"size":     oracle.NewDistribution(values, 1, model.SizeBounds),
				"duration": oracle.NewDistribution(values, 1e6, model.DurationBounds),
			}
			for path, events := range map[string][]ringbuf.Event{
				"single":    slices.Concat(sizesOf(values...), timesOf(values...)),
				"transfers": transfersOf(values...),
			} {
				agent := tally.NewAgent(shape(t, config))
				newRing(t, ringbuf.V3, 1024).feed(agent, events)
				got := map[string]oracle.Distribution{
					"size":     readDistribution(agent.Size(tally.Receive)),
					"duration": readDistribution(agent.Duration()),
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s (-want +got)\n%s", path, d)
				}
			}
		})
	}
}

// around returns the values on each bound and next to it, in the ring's unit.
func around(bounds []float64, perUnit float64) (values []uint64) {
	values = []uint64{0, 1, math.MaxUint64}
	for _, b := range bounds {
		if b*perUnit > 1<<63 {
			continue
		}
		v := uint64(b * perUnit)
		values = append(values, v-1, v, v+1, v+2)
	}
	return values
}

func TestBucketsOfTheCatalogIncludeTheirUpperBound(t *testing.T) {
	micros := []uint64{
		10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
		1_000_000, 5_000_000, 10_000_000,
	}
	var bytes []uint64
	for b := uint64(1 << 10); b <= 1<<34; b *= 4 {
		bytes = append(bytes, b)
	}
	r := newRing(t, ringbuf.V4, 8)
	s := shape(t, tally.Config{})
	check := func(v uint64, want int, kind ringbuf.Type, read func(*tally.Agent) *tally.Histogram) {
		agent := tally.NewAgent(s)
		r.feed(agent, []ringbuf.Event{ringbuf.NewEvent(kind, v)})
		counts := read(agent).Counts()
		if got := slices.Index(counts, 1); got != want {
			t.Errorf("type %v: %d is in bucket %d, want %d", kind, v, got, want)
		}
	}
	for i, v := range micros {
		for kind, read := range map[ringbuf.Type]func(*tally.Agent) *tally.Histogram{
			ringbuf.TypeXferTime:     (*tally.Agent).Duration,
			ringbuf.TypeXferPostTime: (*tally.Agent).PostDuration,
		} {
			check(v-1, i, kind, read)
			check(v, i, kind, read)
			check(v+1, i+1, kind, read)
		}
	}
	for i, v := range bytes {
		for d, kind := range []ringbuf.Type{ringbuf.TypeTxBytes, ringbuf.TypeRxBytes} {
			read := func(a *tally.Agent) *tally.Histogram { return a.Size(tally.Direction(d)) }
			check(v-1, i, kind, read)
			check(v, i, kind, read)
			check(v+1, i+1, kind, read)
		}
	}
}

func TestNoHistogramKeepsCountSumAndLastValue(t *testing.T) {
	none := tally.HistogramConfig{Kind: tally.NoHistogram}
	agent := tally.NewAgent(shape(t, tally.Config{Duration: none, Size: none}))
	newRing(t, ringbuf.V4, 64).feed(agent, transfersOf(5, 0, math.MaxUint64, 7))
	h := agent.Duration()
	if h.Kind() != tally.NoHistogram || h.Counts() != nil || h.Bounds() != nil || h.Buckets().Counts != nil {
		t.Errorf("it has buckets: %v %v %v", h.Counts(), h.Bounds(), h.Buckets())
	}
	if h.Count() != 4 || h.Total() != (tally.Sum{Hi: 1, Lo: 11}) || h.Last() != 7e-6 || h.Min() != 0 {
		t.Errorf("count %d, total %v, last %v, min %v", h.Count(), h.Total(), h.Last(), h.Min())
	}
}

func TestEmptyHistogramIsZero(t *testing.T) {
	for _, kind := range []tally.HistogramKind{tally.Explicit, tally.Exponential, tally.NoHistogram} {
		h := tally.NewAgent(shape(t, tally.Config{Duration: tally.HistogramConfig{Kind: kind}})).Duration()
		if got := []float64{float64(h.Count()), h.Sum(), h.Min(), h.Max(), h.Last()}; slices.Max(got) != 0 || slices.Min(got) != 0 {
			t.Errorf("%s: count, sum, min, max, last are %v, want zeros", kind, got)
		}
	}
}

func ExampleHistogram_Counts() {
	s, err := tally.NewShape(tally.Config{Size: tally.HistogramConfig{Bounds: []float64{1024, 4096}}})
	if err != nil {
		panic(err)
	}
	h := tally.NewAgent(s).Size(tally.Transmit)
	fmt.Println(h.Bounds(), h.Counts())
	// Output: [1024 4096] [0 0 0]
}
