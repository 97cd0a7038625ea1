// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestRingsOfAllLayoutsAreOpened(t *testing.T) {
	x := newWorld(t)
	want := make(map[string]int)
	for i, layout := range ringbuf.Layouts() {
		push(t, x.ring(layout.String(), layout, 64), i+1)
		want[layout.String()] = i + 1
	}
	d := x.directory(nil)
	x.round(d)
	if diff := cmp.Diff(want, x.round(d)); diff != "" {
		t.Error(diff)
	}
	if s := d.State(); s.Open != len(want) || s.Missing != nil || len(s.Refused) != 0 {
		t.Errorf("state is %+v", s)
	}
}

func TestAgentThatRestartsGetsItsRingAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		layout   ringbuf.Layout
		capacity int
	}{
		"same":         {ringbuf.V4, 16},
		"smaller":      {ringbuf.V4, 8},
		"larger":       {ringbuf.V4, 64},
		"other layout": {ringbuf.V1, 16},
		"other size":   {ringbuf.V2Named, 32},
		"same size":    {ringbuf.V3, 16},
	} {
		t.Run(name, func(t *testing.T) {
			x := newWorld(t)
			push(t, x.ring("agent", ringbuf.V4, 16), 5)
			d := x.directory(nil)
			x.round(d)
			x.pass(time.Second)
			restarted := x.ring("agent", tc.layout, tc.capacity)
			x.round(d) // finds out
			push(t, restarted, 3)
			x.round(d)
			if got := x.round(d)["agent"]; got != 8 {
				t.Errorf("%d events of 8 are counted", got)
			}
			if r := x.owner.open[x.path("agent")].Reader; r.Layout() != tc.layout || r.Capacity() != tc.capacity {
				t.Errorf("layout %v, %d slots", r.Layout(), r.Capacity())
			}
		})
	}
}

// An agent that restarts sets its file's size, then the positions, then the rest
// of the header. What the old header makes of the file in between is neither
// opened nor reported, even if it fits by chance.
func TestRestartingAgentIsWaitedFor(t *testing.T) {
	for _, old := range []ringbuf.Layout{ringbuf.V1, ringbuf.V2Named} { // the latter shares its version with V2
		t.Run(old.String(), func(t *testing.T) {
			x := newWorld(t)
			ring := x.ring("agent", old, 16)
			push(t, ring, 5)
			d := x.directory(nil)
			x.round(d)
			touched := func() {
				if err := os.Chtimes(ring.Path(), x.clock(), x.clock()); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Truncate(ring.Path(), 40+16*16); err != nil { // of V2, V3 and V4
				t.Fatal(err)
			}
			ringtest.Edit(t, ring.Path(), func(h *ringtest.Header) { h.WritePos, h.ReadPos = 0, 0 })
			touched()
			x.round(d) // finds out
			restarted := x.ring("agent", ringbuf.V4, 16)
			touched()
			push(t, restarted, 3)
			x.pass(settling)
			d.wakeDue()
			if got := x.owner.drain()["agent"]; got != 8 {
				t.Errorf("%d events of 8 are counted", got)
			}
			if refused := x.told(d, notice.RingRefused); len(refused) != 0 {
				t.Errorf("notices %v", refused)
			}
		})
	}
}

func TestShrunkFileIsOpenedAgain(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 4096)
	d := x.directory(nil)
	x.round(d)
	push(t, ring, 4000)
	if err := os.Truncate(ring.Path(), 0); err != nil {
		t.Fatal(err)
	}
	x.round(d)
	push(t, x.ring("agent", ringbuf.V4, 8), 2)
	x.round(d)
	if got := x.round(d)["agent"]; got != 2 {
		t.Errorf("%d events of 2 are counted", got)
	}
}

// The agent of a file that was removed goes on writing to it.
func TestRemovedRingStaysOpen(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	d := x.directory(nil)
	x.round(d)
	x.owner.got()
	remove(t, ring.Path())
	x.round(d)
	x.round(d)
	if n := count[drain.Removed](x.owner); n != 1 {
		t.Errorf("the owner hears %d times that the file was removed", n)
	}
	push(t, ring, 4)
	if got := x.round(d)["agent"]; got != 4 {
		t.Errorf("%d events of 4 are counted", got)
	}
	x.owner.retire(ring.Path())
	x.round(d)
	if s := d.State(); s.Open != 0 || len(d.records) != 0 {
		t.Errorf("%d rings are open, %d records", s.Open, len(d.records))
	}
}

func TestReplacedRingIsFollowed(t *testing.T) {
	x := newWorld(t)
	old := x.ring("agent", ringbuf.V4, 8)
	d := x.directory(nil)
	x.round(d)
	push(t, old, 4)
	rename(t, old.Path(), filepath.Join(t.TempDir(), "away"))
	push(t, x.ring("agent", ringbuf.V4, 8), 2)
	x.round(d)
	if got := x.round(d)["agent"]; got != 6 || d.State().Open != 1 {
		t.Errorf("%d events of 6 are counted, %d rings are open", got, d.State().Open)
	}
}

func TestRetiredRingIsOpenedAgainWhenItsAgentRestarts(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	push(t, ring, 1)
	d := x.directory(nil)
	x.round(d)
	if err := ring.Close(); err != nil {
		t.Fatal(err)
	}
	x.round(d)
	x.owner.retire(ring.Path())
	for range 3 {
		x.pass(time.Hour)
		if got := x.round(d); len(got) != 0 || d.State().Open != 0 {
			t.Fatalf("what the agent left is opened again: %v", got)
		}
	}
	push(t, x.ring("agent", ringbuf.V4, 8), 3)
	if d.change(d.record("agent"), false); d.State().Open != 1 {
		t.Error("the ring isn't opened at once")
	}
	if got := x.round(d)["agent"]; got != 3 {
		t.Errorf("%d events of 3 are counted", got)
	}
}

// An agent may restart after its owner has decided that it exited.
func TestAgentThatRestartsWhileItIsRetired(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	d := x.directory(nil)
	x.round(d)
	if err := ring.Close(); err != nil {
		t.Fatal(err)
	}
	x.round(d)
	restarted := x.ring("agent", ringbuf.V4, 8)
	d.change(d.record("agent"), false) // with the file as it is now
	x.owner.retire(ring.Path())
	x.round(d)
	push(t, restarted, 3)
	if got := x.round(d)["agent"]; got != 3 {
		t.Errorf("%d events of 3 are counted", got)
	}
}

// A ring that its owner closes because it can't be read isn't opened again
// before the owner asks for that.
func TestClosedRingWaitsForItsOwner(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	d := x.directory(nil)
	x.round(d)
	agent := x.owner.open[ring.Path()].Agent
	x.owner.giveUp()
	for range 3 {
		x.pass(time.Hour)
		x.round(d)
	}
	if d.State().Open != 0 {
		t.Error("a closed ring is opened again")
	}
	d.Reopen(agent, nil)
	push(t, ring, 1)
	if got := x.round(d)["agent"]; got != 1 {
		t.Error("the ring isn't opened again though its owner asks for it")
	}
}

func TestMoreRingsThanAllowed(t *testing.T) {
	x := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		x.ring(name, ringbuf.V4, 8)
	}
	d := x.directory(func(c *Config) { c.Rings = NewRings(2) })
	x.round(d)
	x.pass(time.Second)
	x.round(d)
	s := d.State()
	if told := x.told(d, notice.RingLimit); s.Open != 2 || len(s.Refused) != 1 || len(told) != 1 {
		t.Errorf("state is %+v, notices %v", s, told)
	}
	for path := range x.owner.open {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		x.owner.retire(path)
		break
	}
	x.pass(ProbeInterval)
	x.round(d)
	if s := d.State(); s.Open != 2 || len(s.Refused) != 0 {
		t.Errorf("the third isn't opened in the place of another: %+v", s)
	}
}

func TestRingIsTouchedWhenItsFileChanges(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	d := x.directory(nil)
	x.round(d)
	x.round(d)
	x.owner.got()
	x.round(d)
	if n := count[drain.Touched](x.owner); n != 0 {
		t.Errorf("%d messages about a file that hasn't changed", n)
	}
	if err := os.Chtimes(ring.Path(), x.clock(), x.clock()); err != nil {
		t.Fatal(err)
	}
	x.round(d)
	d.change(d.record("agent"), false) // without a change that can be seen
	if n := count[drain.Touched](x.owner); n != 2 {
		t.Errorf("%d messages about two changes", n)
	}
}

func TestStoppedDirectoryOpensNothing(t *testing.T) {
	x := newWorld(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	d := x.directory(nil)
	x.round(d)
	m := x.owner.open[ring.Path()]
	d.Reopen(m.Agent, m.Reader)
	d.end()
	if d.State().Open != 0 {
		t.Error("a ring was opened at the end")
	}
}
