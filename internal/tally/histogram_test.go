// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
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
			config := Config{}
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
				agent := NewAgent(shapeOf(t, config))
				feed(t, agent, ringbuf.V3, events)
				got := map[string]oracle.Distribution{
					"size":     readDistribution(agent.Size(Receive)),
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

func TestNoHistogramKeepsCountSumAndLastValue(t *testing.T) {
	none := HistogramConfig{Kind: NoHistogram}
	agent := NewAgent(shapeOf(t, Config{Duration: none, Size: none}))
	feed(t, agent, ringbuf.V4, transfersOf(5, 0, math.MaxUint64, 7))
	h := agent.Duration()
	type content struct {
		Kind      HistogramKind
		Bounds    []float64
		Counts    []uint64
		Buckets   Buckets
		Count     uint64
		Total     Sum
		Min, Last float64
	}
	want := content{Kind: NoHistogram, Count: 4, Total: Sum{Hi: 1, Lo: 11}, Last: 7e-6}
	got := content{h.Kind(), h.Bounds(), h.Counts(), h.Buckets(), h.Count(), h.Total(), h.Min(), h.Last()}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestEmptyHistogramIsZero(t *testing.T) {
	for _, kind := range []HistogramKind{Explicit, Exponential, NoHistogram} {
		h := NewAgent(shapeOf(t, Config{Duration: HistogramConfig{Kind: kind}})).Duration()
		if got := []float64{float64(h.Count()), h.Sum(), h.Min(), h.Max(), h.Last()}; slices.Max(got) != 0 || slices.Min(got) != 0 {
			t.Errorf("%s: count, sum, min, max, last are %v, want zeros", kind, got)
		}
	}
}
