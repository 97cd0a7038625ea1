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
	if s := d.state(); s.Open != len(want) || len(s.Missing) != 0 || len(s.Refused) != 0 {
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
			if r := x.owner.ring(x.path("agent")).Reader; r.Layout() != tc.layout || r.Capacity() != tc.capacity {
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
	must.OK(t, ring.Close())
	x.retire(d)
	x.round(d)
	if s := d.state(); s.Open != 0 || len(d.records) != 0 {
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
	if got := x.round(d)["agent"]; got != 6 || d.open.Load() != 1 {
		t.Errorf("counted %d events, want 6, %d rings are open", got, d.open.Load())
	}
}

func TestRetiredRingIsReopenedWhenAgentRestarts(t *testing.T) {
	x := newFixture(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	push(t, ring, 1)
	d := x.directory(nil)
	x.round(d)
	must.OK(t, ring.Close())
	x.retire(d)
	for range 3 {
		x.advance(time.Hour)
		if got := x.round(d); len(got) != 0 || d.open.Load() != 0 {
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
	d.Retire(x.owner.ring(ring.Path()).Agent, x.owner.ring(ring.Path()).Reader)
	x.round(d)
	push(t, restarted, 3)
	if got := x.round(d)["agent"]; got != 3 {
		t.Errorf("counted %d events, want 3", got)
	}
}

// The owner closes a ring that it can't read.
func TestClosedRingIsReopenedOnlyOnRequest(t *testing.T) {
	x := newFixture(t)
	x.owner.mute = true
	ring := x.ring("agent", ringbuf.V4, 8)
	d := x.directory(nil)
	d.refresh()
	m := x.owner.ring(ring.Path())
	d.Close(m.Reader)
	for range 3 {
		x.advance(time.Hour)
		d.runCalls()
		d.refresh()
	}
	if d.open.Load() != 0 {
		t.Error("a closed ring was reopened")
	}
	d.Reopen(m.Agent, nil)
	d.runCalls()
	again := x.owner.ring(ring.Path())
	if d.open.Load() != 1 || again.Reader == m.Reader {
		t.Error("the ring wasn't reopened although the owner asked for it")
	}
	d.Close(again.Reader)
}

func TestRingBeyondLimitIsRefusedUntilAnotherRetires(t *testing.T) {
	x := newFixture(t)
	var rings []*ringbuf.Writer
	for _, name := range []string{"a", "b", "c"} {
		rings = append(rings, x.ring(name, ringbuf.V4, 8))
	}
	x.newOwner(2)
	d := x.directory(nil)
	x.round(d)
	x.advance(time.Second)
	x.round(d)
	s := d.state()
	for path, r := range s.Refused {
		if r.Reason != "limit" {
			t.Errorf("%s is refused: %+v", path, r)
		}
	}
	if reported := x.noticesOf(notice.RingLimit); s.Open != 2 || len(s.Refused) != 1 || len(reported) != 1 {
		t.Errorf("state = %+v, notices = %v", s, reported)
	}
	for _, ring := range rings {
		if s.Refused[ring.Path()].Err == nil {
			must.OK(t, ring.Close()) // its agent gives way
			break
		}
	}
	x.round(d)
	x.advance(maxRetry)
	x.round(d)
	if s := d.state(); s.Open != 2 || len(s.Refused) != 0 {
		t.Errorf("the third ring wasn't opened after another was retired: %+v", s)
	}
}

func TestStoppedDirectoryOpensNothing(t *testing.T) {
	x := newFixture(t)
	x.owner.mute = true
	ring := x.ring("agent", ringbuf.V4, 8)
	d := x.directory(nil)
	d.refresh()
	m := x.owner.ring(ring.Path())
	d.Reopen(m.Agent, m.Reader)
	d.end()
	if d.open.Load() != 0 {
		t.Error("a ring was opened at the end")
	}
}
