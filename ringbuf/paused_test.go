// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// A restarting agent is paused after each of its stores, for several passes. No pass
// reads an event of the old run twice, and after the restart the events of the new
// run are read exactly once.
func TestAgentPausedDuringRestart(t *testing.T) {
	for _, l := range []Layout{V2, V4} {
		for _, mode := range []Mode{Consume, Observe} {
			for _, at := range []int{0, 1, 7, 48, 63, 64, 71} { // committed before
				for _, uncommitted := range []int{0, 5} {
					for _, unread := range []int{0, 3} {
						if read := at + uncommitted; mode == Observe && max(read&63, (read+unread)&63) > 64-tailSlots {
							continue // an observer can't know
						}
						for paused := range len(restart(l)) + 1 {
							for _, commits := range []bool{false, true} {
								name := fmt.Sprintf("%v/%v/at %d/uncommitted %d/unread %d/%d stores/commits %t", l, mode, at, uncommitted, unread, paused, commits)
								t.Run(name, func(t *testing.T) { pausedRestart(t, l, mode, at, uncommitted, unread, paused, commits) })
							}
						}
					}
				}
			}
		}
	}
}

func pausedRestart(t *testing.T, l Layout, mode Mode, at, uncommitted, unread, paused int, commits bool) {
	p, w := plainRing(t, l, 64)
	c := p.reader(t, Consume)
	r := c
	if mode == Observe {
		r = p.reader(t, Observe)
	}
	next := uint64(1)
	advance := func(n int) { // in steps, so that the reader detects each push
		for ; n > 0; n-- {
			fill(t, w, next, next+1)
			next++
			drain(t, c)
			if r != c {
				drain(t, r)
			}
		}
	}
	advance(at)
	fill(t, w, next, next+uint64(uncommitted))
	next += uint64(uncommitted)
	_, err := values(r)
	must.OK(t, err)
	fill(t, w, next, next+uint64(unread))
	legal := span(next, next+uint64(unread))
	p.stands = true

	steps := restart(l)
	var got []uint64
	pass := func() error {
		events, err := values(r)
		got = append(got, events...)
		if err != nil && !errors.Is(err, ErrRestarted) {
			t.Fatal(err)
		}
		if err == nil && commits {
			if err = r.Commit(); err != nil && !errors.Is(err, ErrRestarted) {
				t.Fatal(err)
			}
		}
		return err
	}
	for _, do := range steps[:paused] {
		do(p)
	}
	restarted := false
	for range 5 {
		restarted = restarted || pass() != nil
	}
	if !slices.Equal(got, legal[:min(len(got), len(legal))]) {
		t.Fatalf("paused after %d stores: read %d, but only %d of the old run were unread", paused, got, legal)
	}
	used := r.Position() != 0 || r.Uncommitted() != 0
	for _, do := range steps[paused:] {
		do(p)
	}
	w, err = NewWriter(p.mem, p, l, 64) // the same header once more
	must.OK(t, err)
	newRun := span(1000, 1011)
	fill(t, w, 1000, 1011)
	got = nil
	if restarted = restarted || pass() != nil; restarted {
		r = p.reader(t, mode)
		got = nil
		must.OK(t, pass())
	}
	if !restarted && used {
		t.Error("the restart was not detected")
	}
	if !slices.Equal(got, newRun) {
		t.Errorf("paused after %d stores: read %d of the new run, want %d", paused, got, newRun)
	}
}

// A restarting agent makes its next store at once, unless it is paused. So the reader waits until
// the header has stayed the same for a moment, or has changed.
func TestRingThatWrapsToZeroIsReadAfterAMoment(t *testing.T) {
	for _, burst := range []uint64{1, 14, 63} {
		for _, opens := range []bool{false, true} {
			for _, changes := range []bool{false, true} {
				if burst == 63 && changes {
					continue // the agent of a full ring can't change the header
				}
				p, w := plainRing(t, V4, 64)
				r := p.reader(t, Consume)
				at := 64 - burst
				fill(t, w, 0, at)
				drain(t, r)
				fill(t, w, at, 64)
				if opens {
					r = p.reader(t, Consume)
				}
				p.stands = true
				end := uint64(64)
				for range 3 {
					if got := drain(t, r); len(got) != 0 || r.Idle() {
						t.Errorf("burst of %d: read %d, idle %v", burst, got, r.Idle())
					}
					p.now = p.now.Add(settleTime / 4)
				}
				if changes {
					fill(t, w, 64, 65)
					end++
				} else {
					p.now = p.now.Add(settleTime / 4)
				}
				if got := drain(t, r); !slices.Equal(got, span(at, end)) {
					t.Errorf("burst of %d, new reader %v, header changes %v: read %d", burst, opens, changes, got)
				}
			}
		}
	}
}

// A wait that began before the header changed doesn't count.
func TestEachAmbiguousHeaderLastsForAMoment(t *testing.T) {
	p, w := plainRing(t, V4, 8)
	r := p.reader(t, Consume)
	fill(t, w, 0, 5)
	drain(t, r)
	p.stands = true
	for from := uint64(5); from < 29; from += 8 {
		fill(t, w, from, from+3)
		if got := drain(t, r); len(got) != 0 {
			t.Errorf("read %d at position 0", got)
		}
		fill(t, w, from+3, from+4)
		if got := drain(t, r); !slices.Equal(got, span(from, from+4)) {
			t.Errorf("read %d after the header has changed", got)
		}
		fill(t, w, from+4, from+8)
		drain(t, r)
		p.now = p.now.Add(settleTime)
	}
}

// Another consumer takes all events after the header was ambiguous. The header is ambiguous again when
// the agent restarts.
func TestWaitBeginsAgainAfterAForeignRead(t *testing.T) {
	p, w := plainRing(t, V4, 8)
	r := p.reader(t, Consume)
	fill(t, w, 0, 5)
	drain(t, r)
	p.stands = true
	fill(t, w, 5, 8)
	drain(t, r)
	fill(t, w, 8, 10)
	binary.LittleEndian.PutUint64(p.mem[8:], 2)
	if _, err := values(r); !errors.Is(err, ErrForeignRead) {
		t.Errorf("error %v, want %v", err, ErrForeignRead)
	}
	p.now = p.now.Add(settleTime)
	restartTo(p, 1)
	if got, err := values(r); len(got) != 0 || err != nil {
		t.Errorf("read %d of the earlier run (%v)", got, err)
	}
}

// An observer knows from the slots whether the agent has wrapped. One that has just opened the ring
// can't know.
func TestObserverReadsAWrappedRingAtOnce(t *testing.T) {
	for _, opens := range []bool{false, true} {
		p, w := plainRing(t, V4, 64)
		c, o := p.reader(t, Consume), p.reader(t, Observe)
		p.stands = true
		fill(t, w, 1, 41)
		drain(t, c)
		drain(t, o)
		fill(t, w, 41, 65)
		if opens {
			o = p.reader(t, Observe)
		}
		if got := drain(t, o); !slices.Equal(got, span(41, 65)) {
			t.Errorf("new observer %v: read %d", opens, got)
		}
	}
}

// The slots that an observer has read last were overwritten. If its position is behind a read
// position that isn't 0, the ring's consumer may have let the agent continue for a whole lap.
func TestObserverDistinguishesALapFromARestart(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		p, w := plainRing(t, V4, 64)
		c, o := p.reader(t, Consume), p.reader(t, Observe)
		fill(t, w, 1, 21)
		drain(t, c)
		drain(t, o)
		want := ErrLapped
		if restarts {
			restartTo(p, len(restart(V4)))
			want = ErrRestarted
		} else {
			fill(t, w, 21, 61)
			drain(t, c)
		}
		fill(t, w, 100, 130)
		if got, err := values(o); len(got) != 0 || !errors.Is(err, want) {
			t.Errorf("restarts %v: read %d, error %v", restarts, got, err)
		}
		if restarts {
			continue
		}
		fill(t, w, 130, 140)
		if got := drain(t, o); !slices.Equal(got, span(130, 140)) {
			t.Errorf("read %d after a lap", got)
		}
	}
}

// restartTo performs the first steps of a restart on a ring.
func restartTo(p *plain, steps int) {
	for _, do := range restart(V4)[:steps] {
		do(p)
	}
}

// NIXL writes four events per transfer, and the last one is always the same. So the
// last slot of a ring is the same in each lap.
func TestObserverFollowsLapsThatEndAlike(t *testing.T) {
	for _, perLook := range []int{1, 3, 7} { // transfers
		p, w := plainRing(t, V4, 64)
		c, r := p.reader(t, Consume), p.reader(t, Observe)
		var want, got []uint64
		next := uint64(100)
		for range 100 {
			for range perLook {
				for _, e := range []Event{
					NewEvent(TypeXferPostTime, next), NewEvent(TypeXferTime, next+1), NewEvent(TypeTxBytes, next+2), NewEvent(TypeTxRequests, 1),
				} {
					must.OK(t, w.Push(e))
					want = append(want, e.Value)
				}
				next += 3
			}
			got = append(got, drain(t, r)...)
			drain(t, c)
		}
		if n := len(got); n < len(want)-1 || !slices.Equal(got, want[:n]) {
			t.Errorf("%d transfers per look: read %d events, want %d", perLook, n, len(want))
		}
	}
}
