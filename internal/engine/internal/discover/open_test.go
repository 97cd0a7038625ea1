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

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestRingsOfAllLayoutsAreOpened(t *testing.T) {
	x := newFixture(t)
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
		t.Errorf("state = %+v", s)
	}
}

func TestRestartedRingIsReopened(t *testing.T) {
	for name, tc := range map[string]struct {
		layout   ringbuf.Layout
		capacity int
	}{
		"same":         {ringbuf.V4, 16},
		"smaller":      {ringbuf.V4, 8},
		"larger":       {ringbuf.V4, 64},
		"other layout": {ringbuf.V1, 16},
		"other size":   {ringbuf.V1, 32},
		"same size":    {ringbuf.V3, 16},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t)
			push(t, x.ring("agent", ringbuf.V4, 16), 5)
			d := x.directory(nil)
			x.round(d)
			x.advance(time.Second)
			restarted := x.ring("agent", tc.layout, tc.capacity)
			x.round(d) // finds out
			push(t, restarted, 3)
			x.round(d)
			if got := x.round(d)["agent"]; got != 8 {
				t.Errorf("counted %d events, want 8", got)
			}
			if r := x.owner.open[x.path("agent")].Reader; r.Layout() != tc.layout || r.Capacity() != tc.capacity {
				t.Errorf("layout %v, %d slots", r.Layout(), r.Capacity())
			}
		})
	}
}

func TestTruncatedRingIsReopened(t *testing.T) {
	x := newFixture(t)
	ring := x.ring("agent", ringbuf.V4, 4096)
	d := x.directory(nil)
	x.round(d)
	push(t, ring, 4000)
	must.OK(t, os.Truncate(ring.Path(), 0))
	x.round(d)
	push(t, x.ring("agent", ringbuf.V4, 8), 2)
	x.round(d)
	if got := x.round(d)["agent"]; got != 2 {
		t.Errorf("counted %d events, want 2", got)
	}
}

// The agent of a removed file may continue to write to it.
func TestRemovedRingStaysOpen(t *testing.T) {
	x := newFixture(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	d := x.directory(nil)
	x.round(d)
	x.owner.takeMessages()
	remove(t, ring.Path())
	x.round(d)
	x.round(d)
	push(t, ring, 4)
	if got := x.round(d)["agent"]; got != 4 {
		t.Errorf("counted %d events, want 4", got)
	}
	x.owner.retire(ring.Path())
	x.round(d)
	if s := d.State(); s.Open != 0 || len(d.records) != 0 {
		t.Errorf("%d rings are open, %d records", s.Open, len(d.records))
	}
}

func TestRingThatReplacesAnotherIsOpened(t *testing.T) {
	x := newFixture(t)
	old := x.ring("agent", ringbuf.V4, 8)
	d := x.directory(nil)
	x.round(d)
	push(t, old, 4)
	rename(t, old.Path(), filepath.Join(t.TempDir(), "away"))
	push(t, x.ring("agent", ringbuf.V4, 8), 2)
	x.round(d)
	if got := x.round(d)["agent"]; got != 6 || d.State().Open != 1 {
		t.Errorf("counted %d events, want 6, %d rings are open", got, d.State().Open)
	}
}

func TestRetiredRingIsReopenedWhenAgentRestarts(t *testing.T) {
	x := newFixture(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	push(t, ring, 1)
	d := x.directory(nil)
	x.round(d)
	must.OK(t, ring.Close())
	x.round(d)
	x.owner.retire(ring.Path())
	for range 3 {
		x.advance(time.Hour)
		if got := x.round(d); len(got) != 0 || d.State().Open != 0 {
			t.Fatalf("the ring of an exited agent was reopened: %v", got)
		}
	}
	push(t, x.ring("agent", ringbuf.V4, 8), 3)
	if got := x.round(d)["agent"]; got != 3 {
		t.Errorf("counted %d events, want 3", got)
	}
}

// An agent may restart after the owner has retired it.
func TestRingRestartedDuringRetireIsReopened(t *testing.T) {
	x := newFixture(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	d := x.directory(nil)
	x.round(d)
	must.OK(t, ring.Close())
	x.round(d)
	restarted := x.ring("agent", ringbuf.V4, 8)
	d.walk() // records the restarted file
	x.owner.retire(ring.Path())
	x.round(d)
	push(t, restarted, 3)
	if got := x.round(d)["agent"]; got != 3 {
		t.Errorf("counted %d events, want 3", got)
	}
}

// The owner closes a ring that it can't read.
func TestClosedRingIsReopenedOnlyOnRequest(t *testing.T) {
	x := newFixture(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	d := x.directory(nil)
	x.round(d)
	agent := x.owner.open[ring.Path()].Agent
	x.owner.returnRings()
	for range 3 {
		x.advance(time.Hour)
		x.round(d)
	}
	if d.State().Open != 0 {
		t.Error("a closed ring was reopened")
	}
	d.Reopen(agent, nil)
	push(t, ring, 1)
	if got := x.round(d)["agent"]; got != 1 {
		t.Error("the ring wasn't reopened although the owner asked for it")
	}
}

func TestRingBeyondLimitIsRefusedUntilAnotherRetires(t *testing.T) {
	x := newFixture(t)
	for _, name := range []string{"a", "b", "c"} {
		x.ring(name, ringbuf.V4, 8)
	}
	x.owner.limit = 2
	d := x.directory(nil)
	x.round(d)
	x.advance(time.Second)
	x.round(d)
	s := d.State()
	for path, r := range s.Refused {
		if r.Reason != "limit" {
			t.Errorf("%s is refused: %+v", path, r)
		}
	}
	if reported := x.noticesOf(notice.RingLimit); s.Open != 2 || len(s.Refused) != 1 || len(reported) != 1 {
		t.Errorf("state = %+v, notices = %v", s, reported)
	}
	for path := range x.owner.open {
		must.OK(t, os.Remove(path))
		x.owner.retire(path)
		break
	}
	x.round(d) // waits until the agent is retired; otherwise, the third ring could be tried before that
	x.advance(ProbeInterval)
	x.round(d)
	if s := d.State(); s.Open != 2 || len(s.Refused) != 0 {
		t.Errorf("the third ring wasn't opened after another was retired: %+v", s)
	}
}

func TestStoppedDirectoryOpensNothing(t *testing.T) {
	x := newFixture(t)
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
