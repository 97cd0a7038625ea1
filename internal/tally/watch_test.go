// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/internal/oracle"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// seen records what a watch receives.
type seen struct {
	transfers []tally.Transfer
	errors    []tally.Error
}

func (s *seen) watch() tally.Watch {
	return tally.Watch{
		Transfer: func(t *tally.Transfer) { s.transfers = append(s.transfers, *t) },
		Error:    func(e tally.Error) { s.errors = append(s.errors, e) },
	}
}

// expect makes the oracle append the transfers whose events were all read, and all errors.
func expect(l ringbuf.Layout, from *oracle.Oracle) (want *seen) {
	want = new(seen)
	from.Transfer = func(k []oracle.Event, d string) {
		t := tally.Transfer{
			Layout: l, Micros: k[3].Micros, Direction: tally.Transmit, Bytes: k[2].Value, Duration: k[1].Value, Post: k[0].Value,
		}
		if d == "rx" {
			t.Direction = tally.Receive
		}
		want.transfers = append(want.transfers, t)
	}
	from.Failure = func(f oracle.Failure) {
		want.errors = append(want.errors, tally.Error{Layout: f.Layout, Type: f.Type, Micros: f.Micros})
	}
	return want
}

// The order and the times must be correct for all batch sizes.
func TestEveryTransferAndErrorIsPassedOnOnce(t *testing.T) {
	configs := map[string]tally.HistogramConfig{
		"explicit":    {},
		"exponential": {Kind: tally.Exponential},
		"none":        {Kind: tally.NoHistogram},
	}
	for kind, config := range configs {
		for _, l := range ringbuf.Layouts() {
			t.Run(kind+"/"+l.String(), func(t *testing.T) { watchRandomEvents(t, l, config) })
		}
	}
}

func watchRandomEvents(t *testing.T, l ringbuf.Layout, config tally.HistogramConfig) {
	t.Helper()
	r := newRing(t, l, 512)
	s := shape(t, tally.Config{Duration: config, MaxNames: 100_000})
	transfers := 0
	for seed := range uint64(10) {
		g := generator{rand.New(rand.NewPCG(seed, 13)), l}
		var got seen
		agent, model := tally.NewAgent(s), oracle.New()
		want := expect(l, model)
		agent.Watch(got.watch())
		for range 1 + g.IntN(3) {
			events := g.events(g.IntN(1000))
			for i := range events {
				if l == ringbuf.V1 {
					events[i].TimestampMicros = 1e15 + g.Uint64N(1e9)
				}
			}
			r.feed(agent, events, g.IntN(500), g.IntN(20), g.IntN(2))
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
	for _, w := range []tally.Watch{{Transfer: got.watch().Transfer}, {Error: got.watch().Error}} {
		agent := tally.NewAgent(shape(t, tally.Config{}))
		agent.Watch(w)
		newRing(t, ringbuf.V4, 16).feed(agent, events, 6) // also a transfer in two batches
	}
	if len(got.transfers) != 2 || len(got.errors) != 1 {
		t.Errorf("%d transfers and %d errors are passed, want 2 and 1", len(got.transfers), len(got.errors))
	}
}

func TestTransferIsSlowIfItMeetsACondition(t *testing.T) {
	for name, c := range map[string]struct {
		slow     tally.Slow
		transfer tally.Transfer
		want     tally.Cause
	}{
		"no limit":       {tally.Slow{}, tally.Transfer{Bytes: math.MaxUint64, Duration: math.MaxUint64}, 0},
		"at the limit":   {tally.Slow{Duration: 5 * time.Millisecond}, tally.Transfer{Duration: 5000}, 0},
		"longer":         {tally.Slow{Duration: 5 * time.Millisecond}, tally.Transfer{Duration: 5001}, tally.SlowDuration},
		"as fast":        {tally.Slow{MinThroughput: 1 << 20}, tally.Transfer{Bytes: tally.MinSize, Duration: 1_000_000}, 0},
		"less fast":      {tally.Slow{MinThroughput: 1 << 20}, tally.Transfer{Bytes: tally.MinSize, Duration: 1_000_001}, tally.SlowThroughput},
		"too small":      {tally.Slow{MinThroughput: 1 << 20}, tally.Transfer{Bytes: tally.MinSize - 1, Duration: 1_000_001}, 0},
		"both":           {tally.Slow{Duration: 1, MinThroughput: math.MaxUint64}, tally.Transfer{Bytes: tally.MinSize, Duration: 1}, tally.SlowDuration},
		"0 µs are 1 µs":  {tally.Slow{MinThroughput: 1e6*tally.MinSize + 1}, tally.Transfer{Bytes: tally.MinSize}, tally.SlowThroughput},
		"beyond 64 bits": {tally.Slow{MinThroughput: math.MaxUint64}, tally.Transfer{Bytes: math.MaxUint64, Duration: 1_000_001}, tally.SlowThroughput},
	} {
		c.transfer.Cause = tally.SlowThroughput // of an earlier check
		if got := c.slow.Check(&c.transfer); got != (c.want != 0) || c.transfer.Cause != c.want {
			t.Errorf("%s: %v, cause %d, want %d", name, got, c.transfer.Cause, c.want)
		}
	}
}

func TestWatchDoesNotAllocate(t *testing.T) {
	agent := tally.NewAgent(shape(t, tally.Config{}))
	transfers := 0
	agent.Watch(tally.Watch{Transfer: func(*tally.Transfer) { transfers++ }, Error: func(tally.Error) {}})
	r := newRing(t, ringbuf.V4, slots)
	r.push(transferMix(rand.New(rand.NewPCG(1, 2))))
	r.read(func(b ringbuf.Batch) {
		agent.Add(b)
		if n := testing.AllocsPerRun(10, func() { agent.Add(b) }); n != 0 || transfers == 0 {
			t.Errorf("%v allocations, %d transfers", n, transfers)
		}
	})
}
