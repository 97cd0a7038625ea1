// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// taking returns a transfer with a transfer time in milliseconds.
func taking(ms int) Transfer { return Transfer{Took: time.Duration(ms) * time.Millisecond} }

func listed(s *slowest, now time.Time) (ms []int64) {
	for _, t := range s.list(now) {
		ms = append(ms, t.Took.Milliseconds())
	}
	return ms
}

func TestSlowestTransfersAreKeptForAMinute(t *testing.T) {
	var s slowest
	s.add(begin, taking(500))
	for i := range 20 {
		s.add(begin.Add(30*time.Second), taking(i))
	}
	want := []int64{500, 19, 18, 17, 16, 15, 14, 13, 12, 11}
	if diff := cmp.Diff(want, listed(&s, begin.Add(59*time.Second))); diff != "" {
		t.Error(diff)
	}
	s.add(begin.Add(61*time.Second), taking(1000))
	want = []int64{1000, 19, 18, 17, 16, 15, 14, 13, 12, 11}
	if diff := cmp.Diff(want, listed(&s, begin.Add(61*time.Second))); diff != "" {
		t.Error(diff)
	}
	if got := listed(&s, begin.Add(3*time.Minute)); len(got) != 0 {
		t.Errorf("two minutes later: %v", got)
	}
}

func TestNumberOfKeptTransfersIsLimited(t *testing.T) {
	var s slowest
	for i := range 100_000 {
		s.add(begin.Add(time.Duration(i)*10*time.Millisecond), taking(i%777))
	}
	n := 0
	for _, part := range s.slices {
		n += len(part.list)
	}
	if most := slowestKept * int(SlowestFor/sliceOf+1); n > most || n < most/2 {
		t.Errorf("%d transfers are kept, want at most %d", n, most)
	}
}
