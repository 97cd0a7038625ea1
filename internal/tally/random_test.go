// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// generator generates events of all kinds: mostly whole transfers, and anything else that
// a ring may hold.
type generator struct {
	*rand.Rand
	layout ringbuf.Layout
}

func (g generator) events(n int) []ringbuf.Event {
	var events []ringbuf.Event
	for len(events) < n {
		switch {
		case g.IntN(4) > 0:
			events = append(events, g.transfer()...)
		case g.layout.Named():
			events = append(events, g.named())
		default:
			events = append(events, g.typed())
		}
	}
	return events[:n]
}

func (g generator) transfer() []ringbuf.Event {
	d := ringbuf.Type(g.IntN(2))
	requests := uint64(1)
	if g.IntN(50) == 0 {
		requests = g.value()
	}
	group := []ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeXferPostTime, g.value()),
		ringbuf.NewEvent(ringbuf.TypeXferTime, g.value()),
		ringbuf.NewEvent(ringbuf.TypeTxBytes+d, g.value()),
		ringbuf.NewEvent(ringbuf.TypeTxRequests+d, requests),
	}
	if g.IntN(10) == 0 {
		i := g.IntN(len(group))
		group = append(group[:i], group[i+1:]...)
	}
	for i := range group {
		if g.layout.Named() && !group[i].Named {
			group[i] = ringbuf.NewNamedEvent(group[i].Category, group[i].Type.LegacyName(), group[i].Value)
		}
	}
	return group
}

func (g generator) typed() ringbuf.Event {
	e := ringbuf.NewEvent(ringbuf.Type(g.IntN(ringbuf.Types+3)), g.value())
	if g.IntN(20) == 0 {
		e.Type = ringbuf.Type(g.Uint32())
	}
	if g.IntN(3) == 0 {
		e.Category = g.category()
	}
	return e
}

func (g generator) named() ringbuf.Event {
	names := []string{"", "x", "ucx_worker_progress_calls", "BAD_STATUS", "n\xe4me", "n\xf6me", "näme", "\xff\xff", "\xff\uFFFD\xff", "unknown_event_21"}
	for kind := range ringbuf.Type(ringbuf.Types) {
		names = append(names, kind.String(), kind.LegacyName())
	}
	e := ringbuf.NewNamedEvent(g.category(), names[g.IntN(len(names))], g.value())
	switch g.IntN(10) {
	case 0: // a byte after the NUL, which isn't part of the name
		e.Name[31] = byte(g.Uint32())
	case 1:
		for i := range e.Name {
			e.Name[i] = 'a' + byte(g.IntN(2))*128 // no NUL at all
		}
	}
	return e
}

func (g generator) category() ringbuf.Category {
	if g.IntN(20) == 0 {
		return ringbuf.Category(g.Uint32())
	}
	return ringbuf.Category(g.IntN(ringbuf.Categories+2) - 1)
}

// value returns values of any magnitude, or values next to a limit.
func (g generator) value() uint64 {
	switch g.IntN(8) {
	case 0:
		edges := []uint64{0, 1, 1 << 47, 1 << 48, 1 << 53, 1<<53 + 1, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64}
		return edges[g.IntN(len(edges))]
	case 1:
		bounds := oracle.New()
		return uint64(int64(bounds.DurationBounds[g.IntN(18)]*1e6) + int64(g.IntN(3)) - 1)
	case 2:
		return 1<<g.IntN(63) + uint64(g.IntN(3)) - 1
	default:
		return g.Uint64() >> (24 + g.IntN(40))
	}
}

// The events come in random batches, with gaps, restarts and checkpoints in between. An agent can
// restart with another layout.
func TestTotalsOfRandomEventsMatchTheModel(t *testing.T) {
	s := shapeOf(t, Config{MaxNames: 100_000})
	for seed := range uint64(100) {
		g := generator{rand.New(rand.NewPCG(seed, 7)), ringbuf.Layouts()[seed%4]}
		agent, want := NewAgent(s), oracle.New()
		for left := g.IntN(2500); left > 0; {
			events := g.events(min(1+g.IntN(1000), left)) // may end within a transfer
			left -= len(events)
			feed(t, agent, g.layout, events, g.IntN(500), g.IntN(20), g.IntN(2))
			for i := range events {
				want.Add(g.layout, events[i])
			}
			switch g.IntN(8) {
			case 0, 1:
				agent.Restarted()
				want.Restarted()
				g.layout = ringbuf.Layouts()[g.IntN(4)]
			case 2:
				agent.ForeignRead()
				want.Missed()
			case 3:
				agent.Missed()
				want.Missed()
			case 4, 5:
				agent = storeAndRestore(t, agent, s)
			}
		}
		compare(t, want, agent)
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

// storeAndRestore returns a new agent with the totals of a.
func storeAndRestore(t *testing.T, a *Agent, s *Shape) *Agent {
	t.Helper()
	return restored(t, s, store(t, a))
}

// The values of most agents are close to each other, unlike the random ones above.
func TestTotalsOfOrdinaryTransfersMatchTheModel(t *testing.T) {
	for _, l := range ringbuf.Layouts() {
		agent, want := NewAgent(shapeOf(t, Config{})), oracle.New()
		b := batchOf(t, l, transferMix(rand.New(rand.NewPCG(1, 2)))...)
		agent.Add(b)
		for i := range b.Len() {
			want.Add(l, b.Event(i))
		}
		compare(t, want, agent)
	}
}

// Runs of transfers are counted in loops of their own.
func TestRunsOfTransfersCountAsSingleEventsDo(t *testing.T) {
	for name, config := range configs() {
		run, single := NewAgent(shapeOf(t, config)), NewAgent(shapeOf(t, config))
		events := transferMix(rand.New(rand.NewPCG(1, 2)))
		feed(t, run, ringbuf.V4, events)
		for i := range events {
			feed(t, single, ringbuf.V4, events[i:i+1])
		}
		run.groups.Bytes, single.groups.Bytes = 0, 0 // of the transfer before the open one
		if d := cmp.Diff(string(store(t, single)), string(store(t, run))); d != "" {
			t.Errorf("%s (-single +run):\n%s", name, d)
		}
	}
}

// Events of one direction leave no trace in the other.
func TestTransfersOfOneDirectionDoNotCountInTheOther(t *testing.T) {
	a := NewAgent(shapeOf(t, Config{}))
	feed(t, a, ringbuf.V4, transfersOf(1000))
	if got := *a.Requests(Transmit); got != (Total{}) || a.Size(Transmit).Count() > 0 {
		t.Errorf("%+v", got)
	}
}
