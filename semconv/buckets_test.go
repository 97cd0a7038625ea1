// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// Bounds must be the floats that time.Duration.Seconds returns, so that a duration
// that equals a bound belongs to its bucket.
func TestSplitInferenceDurationBoundsEqualDurations(t *testing.T) {
	bounds := semconv.PacketDuration.Bounds
	if bounds[0] != time.Microsecond.Seconds() || bounds[len(bounds)-1] != time.Minute.Seconds() {
		t.Errorf("bounds range from %v to %v", bounds[0], bounds[len(bounds)-1])
	}
	for decade := time.Microsecond; decade < time.Minute; decade *= 10 {
		for _, d := range []time.Duration{decade, 2 * decade, 5 * decade} {
			if d < time.Minute && !slices.Contains(bounds, d.Seconds()) {
				t.Errorf("%v is not a bound", d)
			}
		}
	}
	for i, bound := range bounds[1:] {
		if ratio := bound / bounds[i]; ratio <= 1 || ratio > 1.285 {
			t.Errorf("bound %v is %v times the one before it", bound, ratio)
		}
	}
}

// The bounds that follow a rule, with two digits.
func TestBoundsHaveRegularSteps(t *testing.T) {
	decades := func(first, last float64, steps ...float64) (all []string) {
		for decade := first; ; decade *= 10 {
			for _, step := range steps {
				all = append(all, fmt.Sprintf("%.2g", step*decade))
				if step*decade > 0.99*last {
					return all
				}
			}
		}
	}
	for name, c := range map[string]struct {
		bounds []float64
		want   []string
	}{
		"of NIXL's exporter": {semconv.TransferDuration.Bounds, slices.DeleteFunc(decades(10e-6, 10, 1, 2.5, 5), func(s string) bool { return s == "2.5" })},
		"of ring kernels":    {semconv.KernelMessageDuration.Bounds, decades(100e-9, 10, 1, 2, 5)},
	} {
		var got []string
		for _, b := range c.bounds {
			got = append(got, fmt.Sprintf("%.2g", b))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("durations %s are %v, want %v", name, got, c.want)
		}
	}
	for i, size := range semconv.TransferSize.Bounds {
		if size != float64(int64(1)<<(10+2*i)) {
			t.Errorf("size %d is %v, want four times the last one, from 1 KiB", i, size)
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
