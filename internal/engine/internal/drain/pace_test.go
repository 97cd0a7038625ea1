// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"testing"
	"time"
)

// An agent flushes a burst of events per interval, after a pause. Its ring has 4,096 slots, and the
// configured run interval is 100 ms.
func TestRingIsDrainedAsOftenAsItsAgentRequires(t *testing.T) {
	const capacity, length = 4096, 20 * time.Second
	cfg := Config{RunInterval: 100 * time.Millisecond}
	for _, tc := range []struct {
		interval time.Duration
		burst    int
		dropped  int     // at most, when the agent begins to write after a pause
		drains   float64 // per second, at most
	}{
		{time.Hour, 1, 0, 41},
		{100 * time.Millisecond, 4, 0, 41},
		{100 * time.Millisecond, 500, 0, 41},
		{100 * time.Millisecond, 4095, 0, 60},
		{time.Millisecond, 16, 0, 60},
		{time.Millisecond, 400, 50 * 400, 500},
		{time.Millisecond, 800, 50 * 800, 1000},
		{10 * time.Millisecond, 2000, 4 * 2000, 500},
	} {
		for _, pause := range []time.Duration{0, 300 * time.Microsecond, time.Second} {
			t.Run(fmt.Sprintf("%d events per %v after %v", tc.burst, tc.interval, pause), func(t *testing.T) {
				now := time.Unix(1_700_000_000, 0)
				flush, end := now.Add(pause), now.Add(pause+length)
				dropped, drains, inRing := 0, 0, 0
				for wait := firstWait; now.Before(end); now = now.Add(wait) {
					for ; !flush.After(now); flush = flush.Add(tc.interval) {
						fits := min(tc.burst, capacity-1-inRing)
						inRing += fits
						dropped += tc.burst - fits
					}
					wait = nextWait(wait, inRing, capacity, cfg.longestWait())
					inRing = 0
					drains++
				}
				if perSecond := float64(drains) / (pause + length).Seconds(); dropped > tc.dropped || perSecond > tc.drains {
					t.Errorf("%d events are dropped, want at most %d; %.1f drains per second, want at most %v", dropped, tc.dropped, perSecond, tc.drains)
				}
			})
		}
	}
}

// A consumer has less time, because it must also store and commit a flush before the next one.
func TestObserverWaitsAtMostHalfOfTheRunInterval(t *testing.T) {
	for observe, want := range map[bool]time.Duration{true: 50 * time.Millisecond, false: 25 * time.Millisecond} {
		if got := (&Config{Observe: observe, RunInterval: 100 * time.Millisecond}).longestWait(); got != want {
			t.Errorf("observer %v: %v, want %v", observe, got, want)
		}
	}
}

func TestWaitFollowsWhatADrainFinds(t *testing.T) {
	const wait, longest = 10 * time.Millisecond, 25 * time.Millisecond
	for events, want := range map[int]time.Duration{0: 2 * wait, 511: 2 * wait, 512: wait, 1024: wait, 1025: wait / 4} {
		if got := nextWait(wait, events, 4096, longest); got != want {
			t.Errorf("%d events: %v, want %v", events, got, want)
		}
	}
	for before, want := range map[time.Duration]time.Duration{longest: longest, leastWait: leastWait} {
		if got := nextWait(before, map[bool]int{true: 4095}[before == leastWait], 4096, longest); got != want {
			t.Errorf("%v after %v, want %v", got, before, want)
		}
	}
}
