// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

const (
	sizeTransmitted = "nixl.transfer.size{nixl.transfer.direction=transmit}"
	throughput      = "nixl.transfer.throughput{nixl.transfer.direction=transmit}"
	durations       = "nixl.transfer.duration"
	postDurations   = "nixl.transfer.post.duration"
)

// reported returns what the receiver reports of transfers. Each value is the size of
// a transfer in bytes, and its duration and post duration in microseconds.
func reported(t *testing.T, change func(*Config), values ...uint64) *agent {
	t.Helper()
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V4, 1024)
	for _, v := range values {
		push(t, w, write(v, v, v)...)
	}
	return one(t, newHarness(t, dir, change).start().next())
}

func TestHistogramsHaveTheConfiguredBounds(t *testing.T) {
	a := reported(t, func(c *Config) {
		c.Histograms.Duration.Bounds = []float64{0, 1e-3, 0.0025}
		c.Histograms.Size.Bounds = []float64{100, 2500}
		c.Histograms.Throughput.Bounds = []float64{999_999, 1e6}
	}, 0, 1, 100, 101, 1000, 1001, 2500, 2501)
	const sum = 1 + 100 + 101 + 1000 + 1001 + 2500 + 2501
	seconds := distribution{
		Count: 8, Sum: float64(sum) / 1e6, Min: 0, Max: 2501e-6,
		Bounds: []float64{0, 1e-3, 0.0025}, Counts: []uint64{1, 4, 2, 1},
	}
	for point, want := range map[string]distribution{
		sizeTransmitted: {Count: 8, Sum: sum, Min: 0, Max: 2501, Bounds: []float64{100, 2500}, Counts: []uint64{3, 4, 1}},
		durations:       seconds,
		postDurations:   seconds,
		throughput:      {Count: 8, Sum: 7e6, Min: 0, Max: 1e6, Bounds: []float64{999_999, 1e6}, Counts: []uint64{1, 7, 0}},
	} {
		if d := cmp.Diff(any(want), a.points[point]); d != "" {
			t.Errorf("%s (-want +got)\n%s", point, d)
		}
	}
}

func TestExponentialHistogramsAreReported(t *testing.T) {
	values := []uint64{0, 0, 1, 3, 17, 123, 1000, 4095, 65537, 1e6 + 1, 123456789}
	const buckets = 160
	exponential := HistogramConfig{Kind: tally.Exponential}
	a := reported(t, func(c *Config) {
		c.Histograms = HistogramsConfig{exponential, exponential, exponential}
	}, values...)
	// Size and duration are the same number, so each throughput is 1 MB/s, or 0.
	if h, ok := a.points[throughput].(distribution); !ok || h.Count != 11 || h.Zero != 2 || h.Sum != 9e6 || len(h.Counts) != 1 || h.Max != 1e6 {
		t.Errorf("throughput is %+v", a.points[throughput])
	}
	for point, unit := range map[string]float64{sizeTransmitted: 1, durations: 1e6, postDurations: 1e6} {
		got, ok := a.points[point].(distribution)
		if !ok {
			t.Errorf("%s is %v", point, a.points[point])
			continue
		}
		if len(got.Counts) > buckets || len(got.Counts) < buckets/2 {
			t.Errorf("%s has %d buckets, want %d to %d", point, len(got.Counts), buckets/2, buckets)
		}
		base := math.Exp2(math.Exp2(-float64(got.Scale)))
		want := distribution{
			Count: uint64(len(values)), Zero: 2, Min: 0, Max: 123456789 / unit,
			Scale: got.Scale, Offset: got.Offset, Counts: make([]uint64, len(got.Counts)),
		}
		for _, v := range values {
			want.Sum += float64(v)
			if v > 0 {
				bucket := int(math.Ceil(math.Log(float64(v)/unit)/math.Log(base))) - 1 - int(got.Offset)
				want.Counts[bucket]++
			}
		}
		want.Sum /= unit
		if d := cmp.Diff(want, got, nearly); d != "" {
			t.Errorf("%s (-want +got)\n%s", point, d)
		}
	}
}

func TestTotalsAndLastValuesAreReportedWithoutHistograms(t *testing.T) {
	a := reported(t, func(c *Config) {
		c.Histograms.Duration.Kind, c.Histograms.Size.Kind = tally.NoHistogram, tally.NoHistogram
		c.Histograms.Throughput.Kind = tally.NoHistogram
	}, 5, 7)
	for point, value := range a.points {
		if _, ok := value.(distribution); ok {
			t.Errorf("%s is a histogram", point)
		}
	}
	for point, want := range map[string]any{
		transmitted:                        int64(12),
		"nixl.transfer.last.duration":      7e-6,
		"nixl.transfer.last.post_duration": 7e-6,

		"nixl.transfer.last.size{nixl.transfer.direction=transmit}": int64(7),
	} {
		if a.points[point] != want {
			t.Errorf("%s is %v, want %v", point, a.points[point], want)
		}
	}
}

func TestEachKindOfHistogramIsConfiguredSeparately(t *testing.T) {
	metrics := reported(t, func(c *Config) {
		c.Histograms.Size.Kind, c.Histograms.Throughput.Kind = tally.NoHistogram, tally.NoHistogram
	}, 5).metrics()
	if metrics["nixl.transfer.size"] || metrics["nixl.transfer.throughput"] || !metrics[durations] || !metrics[postDurations] {
		t.Errorf("metrics %v", metrics)
	}
}
