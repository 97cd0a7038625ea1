// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// Bounds must be the floats that time.Duration.Seconds returns, so that a duration
// that equals a bound belongs to its bucket.
func TestBoundsOfDurationsEqualDurations(t *testing.T) {
	for _, m := range []semconv.Metric{semconv.TransferDuration, semconv.KernelMessageDuration, semconv.PacketDuration} {
		for _, bound := range m.Bounds {
			if d := time.Duration(math.Round(bound * 1e9)); d.Seconds() != bound {
				t.Errorf("%s: the bound %v isn't %v", m.Name, bound, d)
			}
		}
	}
	for decade := time.Microsecond; decade < time.Minute; decade *= 10 {
		for _, d := range []time.Duration{decade, 2 * decade, 5 * decade} {
			if !slices.Contains(semconv.PacketDuration.Bounds, d.Seconds()) {
				t.Errorf("%v is not a bound of %s", d, semconv.PacketDuration.Name)
			}
		}
	}
}

// A quantile that a backend interpolates is off by at most the step between two bounds. The throughputs
// are those of links of 100 to 800 Gbit/s, at full and at half speed.
func TestStepsBetweenBoundsAreSmall(t *testing.T) {
	for _, c := range []struct {
		metric            semconv.Metric
		first, last, step float64
		bounds            int
	}{
		{semconv.PacketDuration, 1e-6, 60, 1.285, 79},
		{semconv.KernelMessageDuration, 100e-9, 10, 2.501, 25},
		{semconv.TransferSize, 1 << 10, 16 << 30, 4, 13},
		{semconv.TransferThroughput, 5e9, 105.6e9, 1.151, 23},
	} {
		bounds := slices.DeleteFunc(slices.Clone(c.metric.Bounds), func(b float64) bool { return b < c.first || b > c.last })
		if len(bounds) != c.bounds || bounds[0] != c.first || bounds[len(bounds)-1] != c.last {
			t.Errorf("%s: the bounds from %v to %v are %v, want %d", c.metric.Name, c.first, c.last, bounds, c.bounds)
		}
		for i, bound := range bounds[1:] {
			if step := bound / bounds[i]; step <= 1 || step > c.step {
				t.Errorf("%s: %v is %v times the bound before it, want at most %v", c.metric.Name, bound, step, c.step)
			}
		}
	}
}

func TestThroughputOfATransferIsRoundedDown(t *testing.T) {
	for _, c := range []struct{ bytes, micros, want uint64 }{
		{0, 5, 0},
		{1, 3, 333_333},
		{5, 0, 5_000_000},
		{5, 1, 5_000_000},
		{5, 2, 2_500_000},
		{math.MaxUint64, 1_000_000, math.MaxUint64},
		{math.MaxUint64, 1_000_001, 18446725626983924631},
		{math.MaxUint64, 999_999, math.MaxUint64},
		{1 << 63, 500_001, 18446707180295191025},
	} {
		if got := semconv.Throughput(c.bytes, c.micros); got != c.want {
			t.Errorf("%d bytes in %d µs: %d, want %d", c.bytes, c.micros, got, c.want)
		}
	}
}
