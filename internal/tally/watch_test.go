// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// seen records what a watch receives.
type seen struct {
	transfers []Transfer
	errors    []Error
}

func (s *seen) watch() Watch {
	return Watch{
		Transfer: func(t *Transfer) { s.transfers = append(s.transfers, *t) },
		Error:    func(e Error) { s.errors = append(s.errors, e) },
	}
}

// expect makes the oracle append the transfers whose events were all read, and all errors.
func expect(l ringbuf.Layout, from *oracle.Oracle) (want *seen) {
	want = new(seen)
	from.Transfer = func(k []oracle.Event, d string) {
		t := Transfer{
			Layout: l, Micros: k[3].Micros, Direction: Transmit, Bytes: k[2].Value, Duration: k[1].Value, Post: k[0].Value,
		}
		if d == "rx" {
			t.Direction = Receive
		}
		want.transfers = append(want.transfers, t)
	}
	from.Failure = func(f oracle.Failure) {
		want.errors = append(want.errors, Error{Layout: f.Layout, Type: f.Type, Micros: f.Micros})
	}
	return want
}

// The order and the times must be correct for all batch sizes.
func TestEveryTransferAndErrorIsPassedOnOnce(t *testing.T) {
	for name, config := range configs() {
		for _, l := range ringbuf.Layouts() {
			t.Run(name+"/"+l.String(), func(t *testing.T) { watchRandomEvents(t, l, config) })
		}
	}
}

func watchRandomEvents(t *testing.T, l ringbuf.Layout, config Config) {
	t.Helper()
	s := shapeOf(t, config)
	transfers := 0
	for seed := range uint64(10) {
		g := generator{rand.New(rand.NewPCG(seed, 13)), l}
		var got seen
		agent, model := NewAgent(s), oracle.New()
		want := expect(l, model)
		agent.Watch(got.watch())
		for range 1 + g.IntN(3) {
			events := g.events(g.IntN(1000))
			for i := range events {
				if l == ringbuf.V1 {
					events[i].TimestampMicros = 1e15 + g.Uint64N(1e9)
				}
			}
			feed(t, agent, l, events, g.IntN(500), g.IntN(20), g.IntN(2))
			for i := range events {
				model.Add(l, events[i])
			}
			if g.IntN(3) == 0 {
				agent = storeAndRestore(t, agent, s)
				agent.Watch(got.watch())
			}
			if g.IntN(3) == 0 {
				agent.Restarted()
				model.Restarted()
			}
		}
		if d := cmp.Diff(want.transfers, got.transfers, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("seed %d: transfers (-want +got)\n%s", seed, d)
		}
		if d := cmp.Diff(want.errors, got.errors, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("seed %d: errors (-want +got)\n%s", seed, d)
		}
		transfers += len(got.transfers)
	}
	if transfers == 0 {
		t.Error("no transfer occurred")
	}
}

// The log may contain only errors, or only slow transfers.
func TestWatchMayLackAFunction(t *testing.T) {
	events := append(transfersOf(1, 2), ringbuf.NewEvent(ringbuf.TypeErrBackend, 1), ringbuf.NewEvent(ringbuf.TypeXferPostTime, 1))
	var got seen
	for _, w := range []Watch{{Transfer: got.watch().Transfer}, {Error: got.watch().Error}} {
		agent := NewAgent(shapeOf(t, Config{}))
		agent.Watch(w)
		feed(t, agent, ringbuf.V4, events, 6) // also a transfer in two batches
	}
	if len(got.transfers) != 2 || len(got.errors) != 1 {
		t.Errorf("%d transfers and %d errors are passed, want 2 and 1", len(got.transfers), len(got.errors))
	}
}

func TestWatchEndsWithTheNextOne(t *testing.T) {
	a := NewAgent(shapeOf(t, Config{}))
	a.Watch(Watch{Transfer: func(*Transfer) { t.Error("passed") }})
	a.Watch(Watch{})
	feed(t, a, ringbuf.V4, transfersOf(1))
}
