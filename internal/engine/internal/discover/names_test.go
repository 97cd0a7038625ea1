// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// The order in which the names are checked doesn't matter.
func TestRenamedRingKeepsItsAgent(t *testing.T) {
	for _, mode := range []ringbuf.Mode{ringbuf.Consume, ringbuf.Observe} {
		for _, first := range []string{"agent", "renamed"} {
			t.Run(mode.String()+", "+first, func(t *testing.T) {
				x := newFixture(t)
				ring := x.ring("agent", ringbuf.V4, 16)
				push(t, ring, 1)
				d := x.directory(func(c *options) { c.Observe = mode == ringbuf.Observe })
				x.round(d)
				rename(t, ring.Path(), x.path("renamed"))
				d.checkPath(d.record(first))
				push(t, ring, 2)
				x.round(d)
				if diff := cmp.Diff(map[string]int{"agent": 3}, x.round(d)); diff != "" {
					t.Error(diff)
				}
				if s := d.state(); s.Open != 1 || len(s.Refused) != 0 {
					t.Errorf("state = %+v", s)
				}
			})
		}
	}
}

// The file under the new name has no agent.
func TestRenamedRingIsDrainedWhenAgentRestartsUnderOldName(t *testing.T) {
	x := newFixture(t)
	ring := x.ring("agent", ringbuf.V4, 16)
	push(t, ring, 1)
	d := x.directory(nil)
	x.round(d)
	rename(t, ring.Path(), x.path("renamed"))
	push(t, ring, 2)
	x.round(d)
	must.OK(t, ring.Close())
	push(t, x.ring("agent", ringbuf.V4, 16), 4)
	for range 3 {
		x.round(d)
	}
	if diff := cmp.Diff(map[string]int{"agent": 7}, x.round(d)); diff != "" {
		t.Error(diff)
	}
	push(t, x.ring("renamed", ringbuf.V4, 16), 1) // an agent of that name starts
	x.round(d)
	if diff := cmp.Diff(map[string]int{"agent": 7, "renamed": 1}, x.round(d)); diff != "" {
		t.Error(diff)
	}
}

// The agent of the renamed ring is still running, so it is reported under its new name.
func TestRenamedRingBecomesAgentWhenAnotherAgentTakesItsName(t *testing.T) {
	x := newFixture(t)
	ring := x.ring("agent", ringbuf.V4, 16)
	d := x.directory(nil)
	x.round(d)
	rename(t, ring.Path(), x.path("renamed"))
	push(t, ring, 2)
	x.round(d)
	push(t, x.ring("agent", ringbuf.V4, 16), 4)
	x.round(d)
	x.advance(ProbeInterval) // the owner may have had the renamed ring when it was tried
	x.round(d)
	push(t, ring, 1)
	x.round(d)
	if diff := cmp.Diff(map[string]int{"agent": 6, "renamed": 1}, x.round(d)); diff != "" {
		t.Error(diff)
	}
}

func TestRingsThatSwapNamesKeepTheirAgents(t *testing.T) {
	x := newFixture(t)
	a, b := x.ring("a", ringbuf.V4, 16), x.ring("b", ringbuf.V4, 16)
	d := x.directory(nil)
	x.round(d)
	push(t, a, 1)
	push(t, b, 2)
	rename(t, a.Path(), x.path("c"))
	rename(t, b.Path(), a.Path())
	rename(t, x.path("c"), b.Path())
	x.round(d)
	push(t, a, 1)
	push(t, b, 2)
	x.round(d)
	if diff := cmp.Diff(map[string]int{"a": 2, "b": 4}, x.round(d)); diff != "" {
		t.Error(diff)
	}
	if reported := x.noticesOf(notice.RingRefused); len(reported) != 0 {
		t.Errorf("notices = %v", reported)
	}
}

// After the ring is closed, another agent may start under the second name.
func TestRingWithTwoNamesIsOneAgent(t *testing.T) {
	x := newFixture(t)
	ring := x.ring("agent", ringbuf.V4, 16)
	d := x.directory(nil)
	x.round(d)
	if err := os.Link(ring.Path(), x.path("link")); err != nil {
		t.Skip(err)
	}
	push(t, ring, 1)
	x.round(d)
	if diff := cmp.Diff(map[string]int{"agent": 1}, x.round(d)); diff != "" {
		t.Error(diff)
	}
	must.OK(t, ring.Close())
	x.retire(d)
	if got := x.round(d); len(got) != 0 || d.open.Load() != 0 {
		t.Errorf("the ring was opened under its other name: %v", got)
	}
	push(t, x.ring("link", ringbuf.V4, 16), 2)
	x.round(d)
	if d.state().Open != 1 {
		t.Errorf("state = %+v", d.state())
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
