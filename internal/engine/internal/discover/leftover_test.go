// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// leftover creates the ring of an agent that has exited, with n unread events.
func (x *fixture) leftover(name string, n int) {
	x.t.Helper()
	w := x.ring(name, ringbuf.V4, 64)
	push(x.t, w, n)
	if err := w.Close(); err != nil {
		x.t.Fatal(err)
	}
	old := x.clock().Add(-time.Hour)
	if err := os.Chtimes(w.Path(), old, old); err != nil {
		x.t.Fatal(err)
	}
}

func TestEmptyRingOfExitedAgentIsLookedAtOnce(t *testing.T) {
	x := newFixture(t)
	identified := 0
	x.leftover("agent", 0)
	d := x.directory(func(c *options) {
		c.Identify = func(a drain.Agent, _ *ringbuf.Reader, _ time.Time) (drain.Agent, drain.Up) {
			identified++
			return a, drain.UpUnknown
		}
	})
	for range 5 {
		x.round(d)
		x.advance(time.Minute)
	}
	if s := d.state(); s.Open != 0 || len(s.Refused) != 0 || identified != 1 {
		t.Errorf("state = %+v after %d looks", s, identified)
	}
	push(t, x.ring("agent", ringbuf.V4, 64), 3) // the agent starts again
	x.round(d)
	if got := x.round(d)["agent"]; got != 3 {
		t.Errorf("counted %d events, want 3", got)
	}
}

func TestRingOfExitedAgentWithEventsIsDrained(t *testing.T) {
	x := newFixture(t)
	x.leftover("agent", 5)
	d := x.directory(nil)
	x.round(d)
	if got := x.round(d)["agent"]; got != 5 {
		t.Errorf("counted %d events, want 5", got)
	}
}

// If the rank is part of an agent's ID, the ID isn't known before its process was sought, even if the kernel says
// that it has exited.
func TestRingOfExitedAgentIsDrainedOnceItsProcessWasSought(t *testing.T) {
	x := newFixture(t)
	x.leftover("agent", 5)
	var search time.Time
	d := x.directory(func(c *options) {
		c.Identify = func(a drain.Agent, _ *ringbuf.Reader, since time.Time) (drain.Agent, drain.Up) {
			if a.Unattributed = !search.After(since); a.Unattributed {
				a.ID = ""
			}
			return a, drain.UpUnknown
		}
	})
	x.round(d)
	search = time.Now()
	d.attribute()
	if got := x.round(d)["agent"]; got != 5 {
		t.Errorf("counted %d events, want 5; refused: %v", got, d.state().Refused)
	}
}

// NIXL never removes a ring, so a directory may have any number of them.
func TestLeftoverRingsDontKeepLiveOnesFromBeingOpened(t *testing.T) {
	x := newFixture(t)
	for i := range 300 {
		x.leftover(fmt.Sprintf("agent-%d", i), 0)
	}
	push(t, x.ring("live", ringbuf.V4, 64), 7)
	x.newOwner(100)
	d := x.directory(nil)
	x.round(d)
	if got := x.round(d)["live"]; got != 7 {
		t.Errorf("counted %d events, want 7", got)
	}
	if s := d.state(); s.Open != 1 || len(s.Refused) != 0 {
		t.Errorf("state = %+v", s)
	}
}

func TestFilesThatArentRingsArentRefusedAtTheLimit(t *testing.T) {
	x := newFixture(t)
	touch(t, x.path("notes.txt"), "a text that is longer than the header of a ring, which has 40 bytes")
	x.newOwner(1)
	x.ring("agent", ringbuf.V4, 8)
	d := x.directory(nil)
	x.round(d)
	if s := d.state(); len(s.Refused) != 0 {
		t.Errorf("refused = %+v", s.Refused)
	}
	if list := x.noticesOf(notice.RingLimit); len(list) != 0 {
		t.Errorf("notices = %v", list)
	}
}

// The last collection of a shutdown cancels a search that takes too long.
func TestCanceledSearchOpensNothingMore(t *testing.T) {
	x := newFixture(t)
	for i := range 100 {
		push(t, x.ring(fmt.Sprintf("agent-%d", i), ringbuf.V4, 64), 1)
	}
	identified, gate := make(chan struct{}, 1000), make(chan struct{})
	d := x.directory(func(c *options) {
		c.Identify = func(a drain.Agent, _ *ringbuf.Reader, _ time.Time) (drain.Agent, drain.Up) {
			identified <- struct{}{}
			<-gate
			return a, drain.UpUnknown
		}
	})
	go d.run()
	<-identified // in the middle of the first walk
	refreshed := make(chan struct{})
	d.request(d.refresh, func() { close(refreshed) })
	d.cancel()
	close(gate)
	<-refreshed
	if n := count[drain.Opened](x.owner); len(identified) != 0 || n != 0 {
		t.Errorf("%d rings were looked at and %d opened after the search was canceled", len(identified), n)
	}
	if s := d.state(); len(s.Refused) != 0 || len(s.Missing) != 0 {
		t.Errorf("state = %+v", s)
	}
	if err := d.stop(t.Context()); err != nil {
		t.Error(err)
	}
}
