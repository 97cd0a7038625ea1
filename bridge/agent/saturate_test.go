// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"math"
	"sync"
	"testing"
)

func TestSaturatingSumStopsAtTheMaximum(t *testing.T) {
	for _, c := range []struct {
		start  int64
		values []int64
		want   int64
	}{
		{0, nil, 0},
		{0, []int64{1, largeValue - 1, largeValue, largeValue + 1}, 1 + 3*largeValue},
		{mostSum - 2, []int64{1}, mostSum - 1},
		{mostSum - 2, []int64{1, 1, 1}, mostSum},
		{math.MaxInt64 - 1, []int64{1, 1, 1, 1}, mostSum},
		{math.MaxInt64, []int64{largeValue, 1, largeValue, math.MaxInt64, math.MaxInt64}, mostSum},
		{1, []int64{math.MaxInt64, math.MaxInt64, math.MaxInt64}, mostSum},
	} {
		var s saturating
		s.word.Store(c.start)
		last := s.load()
		for _, v := range c.values {
			s.add(v)
			if got := s.load(); got < last {
				t.Errorf("%d and %v: the sum decreased from %d to %d", c.start, c.values, last, got)
			} else {
				last = got
			}
		}
		if last != c.want {
			t.Errorf("%d and %v: %d, want %d", c.start, c.values, last, c.want)
		}
	}
}

func TestSaturatingConcurrentSafe(t *testing.T) {
	for _, v := range []int64{math.MaxInt64, 1 << 61, largeValue - 1} {
		var s saturating
		s.word.Store(math.MaxInt64 - largeValue)
		var adding sync.WaitGroup
		for range 8 {
			adding.Go(func() {
				for range 100 {
					s.add(v)
				}
			})
		}
		adding.Wait()
		if got := s.load(); got != mostSum {
			t.Errorf("800 times %d: %d, want %d", v, got, int64(mostSum))
		}
	}
}
