// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"testing"
	"time"
)

// flush is an agent that pushes its staged events into a ring once per interval.
type flush struct {
	interval time.Duration
	burst    int
}

// run drains the agent's ring as scheduled by pace, and returns the number of events that
// were dropped because the ring was full, and the number of drains.
func (f flush) run(configured time.Duration, capacity int, wait, length time.Duration) (dropped, drains int) {
	start := time.Unix(1_700_000_000, 0)
	p := newPace(configured, start)
	now, nextFlush, end := start, start.Add(wait), start.Add(wait+length)
	inRing := 0
	for now.Before(end) {
		for !nextFlush.After(now) {
			fits := min(f.burst, capacity-1-inRing)
			inRing += fits
			dropped += f.burst - fits
			nextFlush = nextFlush.Add(f.interval)
		}
		p.drained(now, inRing, capacity)
		drains++
		inRing = 0
		now = now.Add(p.next(capacity, unknownWait(configured, 1)))
	}
	return dropped, drains
}

func TestFastAgentLosesNothingUnderASlowConfiguration(t *testing.T) {
	for _, f := range []flush{{time.Millisecond, 16}, {time.Millisecond, 400}, {time.Millisecond, 800}, {2 * time.Millisecond, 1000}, {10 * time.Millisecond, 2000}} {
		for _, wait := range []time.Duration{0, 300 * time.Microsecond, time.Second} {
			if dropped, _ := f.run(100*time.Millisecond, 4096, wait, 10*time.Second); dropped > 0 {
				t.Errorf("%d events per %v, first after %v: %d dropped", f.burst, f.interval, wait, dropped)
			}
		}
	}
}

func TestAgentsAtTheConfiguredIntervalAreDrainedRarely(t *testing.T) {
	for burst, most := range map[int]int{4: 25, 500: 25, 4095: 100} {
		const seconds = 20
		dropped, drains := flush{100 * time.Millisecond, burst}.run(100*time.Millisecond, 4096, 10*time.Millisecond, seconds*time.Second)
		learning := 400 // a drain every millisecond for twice the run interval, with a margin
		if dropped > 0 || drains > seconds*most+learning {
			t.Errorf("bursts of %d: %d dropped, %d drains in %d s, want at most %d a second", burst, dropped, drains, seconds, most)
		}
	}
}

func TestAgentThatBecomesFasterIsLearnedAgain(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	p := newPace(100*time.Millisecond, now)
	feed := func(interval time.Duration, burst int, length time.Duration) {
		next := now
		for end := now.Add(length); now.Before(end); now = now.Add(p.next(4096, unknownInterval)) {
			n := 0
			for ; !next.After(now); next = next.Add(interval) {
				n += burst
			}
			p.drained(now, n, 4096)
		}
	}
	feed(100*time.Millisecond, 100, 2*time.Second)
	if slow := p.next(4096, unknownInterval); slow < 40*time.Millisecond {
		t.Errorf("an agent that flushes every 100 ms is drained every %v", slow)
	}
	feed(time.Millisecond, 100, time.Second)
	if fast := p.next(4096, unknownInterval); fast > 20*time.Millisecond {
		t.Errorf("an agent that flushes 100 events every millisecond is drained every %v", fast)
	}
}

// The scheduler interrupts the first flush of an agent, so it looks like two bursts 3 ms
// apart.
func TestIntervalLearnedFromAnInterruptedFlushIsCorrected(t *testing.T) {
	const interval, capacity = 100 * time.Millisecond, 4096
	start := time.Unix(1_700_000_000, 0)
	p := newPace(interval, start)
	end := start.Add(10 * time.Second)
	type push struct {
		at     time.Time
		events int
	}
	pushes := []push{{start.Add(10 * time.Millisecond), 2000}, {start.Add(13 * time.Millisecond), 2000}}
	for at := start.Add(interval); at.Before(end); at = at.Add(interval) {
		pushes = append(pushes, push{at, 4000})
	}
	drains, inRing := 0, 0
	for now := start; now.Before(end); now = now.Add(p.next(capacity, unknownWait(interval, 1))) {
		for len(pushes) > 0 && !pushes[0].at.After(now) {
			inRing += pushes[0].events
			pushes = pushes[1:]
		}
		if inRing >= capacity {
			t.Fatalf("%d events at once", inRing)
		}
		p.drained(now, inRing, capacity)
		inRing = 0
		if now.After(start.Add(5 * time.Second)) {
			drains++
		}
	}
	if drains > 5*60 {
		t.Errorf("%d drains in 5 s", drains)
	}
}

func TestAgentThatWritesNothingCausesFewDrains(t *testing.T) {
	for _, configured := range []time.Duration{100 * time.Millisecond, time.Minute} {
		_, drains := flush{time.Hour, 1}.run(configured, 4096, time.Hour, 0)
		if perSecond := float64(drains) / time.Hour.Seconds(); perSecond > 20.5 || perSecond < 19 {
			t.Errorf("%.1f drains per second at a run interval of %v, want 20", perSecond, configured)
		}
	}
}
