// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
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
