// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

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

func TestRingInTwoDirectoriesIsOneAgent(t *testing.T) {
	for _, mode := range []ringbuf.Mode{ringbuf.Consume, ringbuf.Observe} {
		x := newFixture(t)
		ring := x.ring("agent", ringbuf.V4, 16)
		other := t.TempDir()
		if err := os.Link(ring.Path(), filepath.Join(other, "agent")); err != nil {
			t.Skip(err)
		}
		config := func(c *options) { c.Observe = mode == ringbuf.Observe }
		first := x.directory(config)
		second := x.directory(func(c *options) { config(c); c.Path = other })
		x.round(first)
		x.round(second)
		x.advance(ProbeInterval) // a lock may be held for a moment
		x.round(second)
		push(t, ring, 1)
		if got := x.round(second); first.open.Load()+second.open.Load() != 1 || got["agent"] != 1 {
			t.Errorf("%v: %d and %d rings are open, %v", mode, first.open.Load(), second.open.Load(), got)
		}
	}
}

func TestEmptyRingOfExitedAgentIsLookedAtOnce(t *testing.T) {
	x := newFixture(t)
	identified := 0
	must.OK(t, x.ring("agent", ringbuf.V4, 64).Close())
	d := x.directory(func(c *options) {
		c.Identify = func(a drain.Agent, _ files.ID, _ time.Time) attributed {
			identified++
			return attributed{Agent: a}
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

// The last collection of a shutdown cancels a search that takes too long.
func TestCanceledSearchOpensNothingMore(t *testing.T) {
	x := newFixture(t)
	for i := range 100 {
		push(t, x.ring(fmt.Sprintf("agent-%d", i), ringbuf.V4, 64), 1)
	}
	identified, gate := make(chan struct{}, 1000), make(chan struct{})
	d := x.directory(func(c *options) {
		c.Identify = func(a drain.Agent, _ files.ID, _ time.Time) attributed {
			identified <- struct{}{}
			<-gate
			return attributed{Agent: a}
		}
	})
	go d.run()
	<-identified // in the middle of the first walk
	refreshed := make(chan struct{})
	d.request(d.refresh, func() { close(refreshed) })
	d.cancel()
	close(gate)
	<-refreshed
	if n := count[drain.Offer](x.owner); len(identified) != 0 || n != 0 {
		t.Errorf("%d rings were looked at and %d opened after the search was canceled", len(identified), n)
	}
	if s := d.state(); len(s.Refused) != 0 || len(s.Missing) != 0 {
		t.Errorf("state = %+v", s)
	}
	if err := d.stop(t.Context()); err != nil {
		t.Error(err)
	}
}
