// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// look returns the agent's totals as a look shows them.
func (b *harness) look() *tally.Totals {
	b.t.Helper()
	var list []Snapshot
	b.step(&look{done: func(s []Snapshot) { list = s }})
	if len(list) != 1 {
		b.t.Fatalf("%d agents, want 1", len(list))
	}
	return list[0].Totals
}

func (b *harness) collectTotals() *tally.Totals {
	b.t.Helper()
	var c collected
	b.step(&collect{deadline: b.now.Add(hungSave), done: func(got collected) { c = got }})
	if len(c.snapshots) != 1 {
		b.t.Fatalf("%d agents, want 1", len(c.snapshots))
	}
	return c.snapshots[0].Totals
}

func TestLookHasNoEffectOnCollections(t *testing.T) {
	for _, saves := range []bool{false, true} {
		b := newHarness(t)
		b.start(ringbuf.Consume, saves)
		b.push(7)
		if got := b.look(); got.Requests(tally.Transmit).Events != 7 || got.Utilization() != 7.0/63 {
			t.Errorf("a look shows %d events and a fill of %v", got.Requests(tally.Transmit).Events, got.Utilization())
		}
		if got := b.look(); got.Utilization() != 0 && !saves {
			t.Errorf("fill since the last look: %v", got.Utilization())
		}
		before := b.agent().shown
		b.push(2)
		b.look()
		if b.agent().shown != before || b.owner.collections != before.collection {
			t.Error("a look counts as a collection")
		}
		got := b.collectTotals()
		if got.Requests(tally.Transmit).Events != 9 || got.Utilization() < 7.0/63 {
			t.Errorf("the collection has %d events and a fill of %v, want 9 and the highest", got.Requests(tally.Transmit).Events, got.Utilization())
		}
	}
}

func TestLookDoesNotWaitForTheStore(t *testing.T) {
	b := newHarness(t)
	b.hangs = true
	b.start(ringbuf.Consume, true)
	b.push(40)
	b.step()
	if b.batch == nil {
		t.Fatal("no save is in progress")
	}
	if got := b.look().Requests(tally.Transmit).Events; got != 40 {
		t.Errorf("%d events, want 40", got)
	}
}

func TestWatchesBeginAndEndIndependently(t *testing.T) {
	b := newHarness(t)
	b.start(ringbuf.Consume, false)
	var first, second int
	one := &Watch{Error: func(*Agent, tally.Error) { first++ }}
	two := &Watch{Error: func(*Agent, tally.Error) { second++ }}
	fail := func() {
		must.OK(t, b.writer.Push(ringbuf.NewEvent(ringbuf.TypeErrBackend, 1)))
		b.step()
	}
	for i, tt := range []struct {
		message       Message
		first, second int
	}{
		{watching{watch: one}, 1, 0},
		{watching{watch: two}, 2, 1},
		{watching{watch: one, end: true}, 2, 2},
		{watching{watch: two, end: true}, 2, 2},
	} {
		b.step(tt.message)
		fail()
		if first != tt.first || second != tt.second {
			t.Errorf("step %d: %d and %d reports, want %d and %d", i, first, second, tt.first, tt.second)
		}
	}
	// A watch continues with the totals of the next stream.
	b.step(watching{watch: one})
	b.owner.endStream(b.agent(), b.now)
	fail()
	if first != 3 {
		t.Errorf("%d reports after a new stream, want 3", first)
	}
}
