// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
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
			for _, at := range []int{0, 1, 7, 50, 63, 64, 71} { // committed before
				for _, uncommitted := range []int{0, 5} {
					for _, unread := range []int{0, 3} {
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
	for _, s := range steps[:paused] {
		s.do(p)
	}
	restarted := false
	for range 5 {
		restarted = restarted || pass() != nil
	}
	if !slices.Equal(got, legal[:min(len(got), len(legal))]) {
		t.Fatalf("paused after %d stores: read %d, but only %d of the old run were unread", paused, got, legal)
	}
	used := r.Position() != 0 || r.Uncommitted() != 0
	for _, s := range steps[paused:] {
		s.do(p)
	}
	w, err = NewWriter(p.mem, p, l, 64) // the same header once more
	must.OK(t, err)
	newRun := span(1000, 1011)
	fill(t, w, 1000, 1011)
	if mode == Observe && !restarted && unread > 0 && r.Position() == 63 {
		// The reader accepts the last slot of the ring only later. For an observer,
		// the restart then looks like an agent that wrapped, so it reads that slot
		// and the new run.
		newRun, used = append(legal[:1], newRun...), false
	}
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

func TestOpenDuringRestartReadsNoStaleEvents(t *testing.T) {
	for _, l := range []Layout{V2, V4} {
		for paused := range len(restart(l)) + 1 {
			p, w := plainRing(t, l, 64)
			c := p.reader(t, Consume)
			fill(t, w, 1, 41)
			drain(t, c)
			steps := restart(l)
			for _, s := range steps[:paused] {
				s.do(p)
			}
			r, err := NewReader(p.mem, p, Consume)
			if err != nil {
				if !errors.Is(err, ErrNotReady) {
					t.Errorf("%v, %d stores: %v", l, paused, err)
				}
				continue
			}
			for _, s := range steps[paused:] {
				if got, err := values(r); len(got) != 0 {
					t.Errorf("%v, %d stores and then to %s: stale events %d (%v)", l, paused, s.name, got, err)
				}
				s.do(p)
			}
		}
	}
}

func TestWrappedRingOpensOnceItsFileIsASecondOld(t *testing.T) {
	p, w := plainRing(t, V4, 8)
	c := p.reader(t, Consume)
	fill(t, w, 1, 5)
	drain(t, c)
	fill(t, w, 5, 9)
	for _, age := range []int64{0, 999_999_999} {
		p.age = age
		if _, err := NewReader(p.mem, p, Consume); !errors.Is(err, ErrNotReady) {
			t.Errorf("age %d: %v", age, err)
		}
	}
	p.age = 1_000_000_000
	if got := drain(t, p.reader(t, Consume)); !slices.Equal(got, span(5, 9)) {
		t.Errorf("read %d", got)
	}
}

// An observer commits nothing, so it needn't wait for the ring that it opens. It waits if the
// file changes before the read, because that may be an agent that starts.
func TestObserverReadsAWrappedRingThatItOpensAtOnce(t *testing.T) {
	for _, changes := range []bool{false, true} {
		p, w := plainRing(t, V4, 8)
		c := p.reader(t, Consume)
		fill(t, w, 1, 5)
		drain(t, c)
		fill(t, w, 5, 9)
		p.touch()
		r, want := p.reader(t, Observe), span(5, 9)
		if changes {
			p.touch()
			want = nil
		}
		if got, err := values(r); !slices.Equal(got, want) || err != nil {
			t.Errorf("file changes %t: read %d, want %d (%v)", changes, got, want, err)
		}
	}
}

// If ctime has changed, the ring is read once ctime is a second old.
func TestRingThatWrapsToZeroIsRead(t *testing.T) {
	for _, mode := range []Mode{Consume, Observe} {
		for _, touched := range []bool{false, true} {
			for _, burst := range []uint64{1, 14, 63, 64 - 5} {
				p, w := plainRing(t, V4, 64)
				c := p.reader(t, Consume)
				r := c
				if mode == Observe {
					r = p.reader(t, Observe)
				}
				next := uint64(1)
				for next <= 3*64-burst {
					fill(t, w, next, next+1)
					next++
					drain(t, c)
					if r != c {
						drain(t, r)
					}
				}
				fill(t, w, next, next+burst)
				if touched {
					p.touch()
				}
				if h := headerOf(w); h.WritePos != 0 {
					t.Fatalf("write position %d", h.WritePos)
				}
				end := next + burst
				sure := end
				if touched {
					sure = next
				}
				for range 3 {
					if got := drain(t, r); !slices.Equal(got, span(next, sure)) {
						t.Errorf("%v, touched %v, burst of %d: read %d", mode, touched, burst, got)
					}
					next = sure
				}
				p.age = settleTime
				if got := drain(t, r); !slices.Equal(got, span(sure, end)) {
					t.Errorf("%v, touched %v, burst of %d: read %d after a second", mode, touched, burst, got)
				}
			}
		}
	}
}

// If ctime has changed, nothing is pending at position 0 until the header changes.
func TestAmbiguousRingIsReadOnceTheHeaderChanges(t *testing.T) {
	p, w, r := repeated(t)
	fill(t, w, 1, 6)
	drain(t, r)
	fill(t, w, 66, 69)
	p.touch()
	if got := drain(t, r); len(got) != 0 {
		t.Fatalf("read unproven events %d", got)
	}
	fill(t, w, 69, 70)
	if got := drain(t, r); !slices.Equal(got, span(66, 70)) {
		t.Errorf("read %d after the header changed", got)
	}
}

// The agent of a full ring can't change the header.
func TestAmbiguousFullRingIsReadAfterASecond(t *testing.T) {
	p, w, r := repeated(t)
	fill(t, w, 1, 2)
	drain(t, r)
	fill(t, w, 2, 9) // same as in the lap before
	p.touch()
	if got := drain(t, r); len(got) != 0 {
		t.Errorf("read unproven events %d", got)
	}
	p.age = settleTime
	if got := drain(t, r); !slices.Equal(got, span(2, 9)) {
		t.Errorf("read %d of a full ring", got)
	}
}

// repeated returns a ring of eight slots after two identical laps, all read.
func repeated(t *testing.T) (*plain, *Writer, *Reader) {
	t.Helper()
	p, w := plainRing(t, V4, 8)
	r := p.reader(t, Consume)
	for range 2 {
		fill(t, w, 1, 6)
		drain(t, r)
		fill(t, w, 6, 9)
		if got := drain(t, r); len(got) != 3 {
			t.Fatalf("read %d", got)
		}
	}
	return p, w, r
}

// If another run has written events between Commit's look and its swap from 0, nothing is
// swapped.
func TestSwapFromZeroComparesTheSlots(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, p *plain, w *Writer)
		want error
	}{
		{"nothing happens", func(*testing.T, *plain, *Writer) {}, nil},
		{"the agent pushes", func(t *testing.T, _ *plain, w *Writer) { fill(t, w, 900, 901) }, nil},
		{"the file is written back", func(_ *testing.T, p *plain, _ *Writer) { p.touch() }, nil},
		{"restarted, and has written less", func(t *testing.T, p *plain, w *Writer) { restartTo(p, 7); fill(t, w, 900, 910) }, ErrRestarted},
		{"restarted, and has written more", func(t *testing.T, p *plain, w *Writer) { restartTo(p, 7); fill(t, w, 900, 950) }, ErrRestarted},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, w := plainRing(t, V4, 64)
			r := p.reader(t, Consume)
			fill(t, w, 1, 31)
			if got, err := values(r); len(got) != 30 || err != nil {
				t.Fatal(got, err)
			}
			c.do(t, p, w)
			done, err := r.swap(30) // as Commit does after its look
			if done != (c.want == nil) || !errors.Is(err, c.want) {
				t.Errorf("swapped: %v, error %v, want %v", done, err, c.want)
			}
			if h := headerOf(w); (h.ReadPos == 30) != (c.want == nil) {
				t.Errorf("read position %d", h.ReadPos)
			}
		})
	}
}

// restartTo performs the first steps of a restart on a ring.
func restartTo(p *plain, steps int) {
	for _, s := range restart(V4)[:steps] {
		s.do(p)
	}
}

// While position 0 is committed, a restarted agent fills the ring, except the last slot.
func TestCommitFromZeroFailsAfterARunThatFillsTheRing(t *testing.T) {
	p, w := plainRing(t, V4, 64)
	r := p.reader(t, Consume)
	for v := uint64(1); v <= 64; v++ {
		fill(t, w, v, v+1)
		drain(t, r)
	}
	fill(t, w, 100, 130)
	_, err := values(r)
	must.OK(t, err)
	restartTo(p, 7)
	fill(t, w, 900, 963)
	if err := r.Commit(); !errors.Is(err, ErrRestarted) {
		t.Errorf("error %v", err)
	}
	if h := headerOf(w); h.ReadPos != 0 {
		t.Errorf("read position %d", h.ReadPos)
	}
}

// NIXL writes four events per transfer, and the last one is always the same. So the
// last slot of a ring is the same in each lap. On a disk, ctime also changes often.
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
			p.touch()
			got = append(got, drain(t, r)...)
			drain(t, c)
		}
		if n := len(got); n < len(want)-1 || !slices.Equal(got, want[:n]) {
			t.Errorf("%d transfers per look: read %d events, want %d", perLook, n, len(want))
		}
	}
}
