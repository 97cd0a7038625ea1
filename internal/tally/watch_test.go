// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally_test

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/internal/oracle"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// seen records the reports of a watch.
type seen struct {
	transfers []tally.Transfer
	errors    []tally.Error
}

func (s *seen) watch(slow tally.Slow) tally.Watch {
	return tally.Watch{
		Slow:     slow,
		Transfer: func(t tally.Transfer) { s.transfers = append(s.transfers, t) },
		Error:    func(e tally.Error) { s.errors = append(s.errors, e) },
	}
}

const (
	slowMicros     = 5000
	slowThroughput = 1_000_000_000 // bytes per second
	slowSize       = 1 << 12
)

// slowTransfers returns the slow transfers of all events: those that take more than
// slowMicros, or move at least slowSize bytes with a throughput below least.
func slowTransfers(l ringbuf.Layout, want *oracle.Oracle, least uint64) (list []tally.Transfer) {
	for k, d := range want.Transfers {
		t := tally.Transfer{
			Layout: l, Micros: k[3].Micros, Direction: tally.Transmit, Bytes: k[2].Value, Duration: k[1].Value, Post: k[0].Value,
		}
		if d == "rx" {
			t.Direction = tally.Receive
		}
		took := new(big.Int).SetUint64(max(t.Duration, 1))
		moved := new(big.Int).Mul(new(big.Int).SetUint64(t.Bytes), big.NewInt(1_000_000))
		switch {
		case t.Duration > slowMicros:
			t.Cause = tally.SlowDuration
		case t.Bytes >= slowSize && moved.Cmp(took.Mul(took, new(big.Int).SetUint64(least))) < 0:
			t.Cause = tally.SlowThroughput
		default:
			continue
		}
		list = append(list, t)
	}
	return list
}

// failures returns the errors of all events.
func failures(want *oracle.Oracle) (list []tally.Error) {
	for _, f := range want.Failures {
		list = append(list, tally.Error{Layout: f.Layout, Type: f.Type, Micros: f.Micros})
	}
	return list
}

// The order and the times must be correct for all batch sizes.
func TestEverySlowTransferAndErrorIsReportedOnce(t *testing.T) {
	configs := map[string]tally.HistogramConfig{
		"explicit":    {},
		"exponential": {Kind: tally.Exponential},
		"none":        {Kind: tally.NoHistogram},
	}
	for kind, config := range configs {
		for _, l := range ringbuf.Layouts() {
			t.Run(kind+"/"+l.String(), func(t *testing.T) { watchRandomEvents(t, l, config, slowThroughput) })
			t.Run(kind+", times only/"+l.String(), func(t *testing.T) { watchRandomEvents(t, l, config, 0) })
		}
	}
}

func watchRandomEvents(t *testing.T, l ringbuf.Layout, config tally.HistogramConfig, least uint64) {
	t.Helper()
	slow := tally.Slow{Duration: slowMicros * time.Microsecond, MinThroughput: least, MinSize: slowSize}
	r := newRing(t, l, 512)
	s := shape(t, tally.Config{Duration: config, MaxNames: 100_000})
	causes := make(map[tally.Cause]int)
	for seed := range uint64(10) {
		g := generator{rand.New(rand.NewPCG(seed, 13)), l}
		var got seen
		agent, want := tally.NewAgent(s), oracle.New()
		watches := []tally.Watch{got.watch(slow)}
		if seed%2 == 1 { // others have no effect
			watches = append(watches, new(seen).watch(tally.Slow{Duration: slowMicros / 2 * time.Microsecond}), new(seen).watch(tally.Slow{MinThroughput: 1}))
			slices.Reverse(watches[seed%3:])
		}
		agent.Watch(watches...)
		for range 1 + g.IntN(3) {
			events := g.events(g.IntN(1000))
			for i := range events {
				if l == ringbuf.V1 {
					events[i].TimestampMicros = 1e15 + g.Uint64N(1e9)
				}
			}
			r.feed(agent, events, g.IntN(500), g.IntN(20), g.IntN(2))
			for i := range events {
				want.Add(l, events[i])
			}
			if g.IntN(3) == 0 {
				agent = storeAndRestore(t, agent, s)
				agent.Watch(watches...)
			}
			if g.IntN(3) == 0 {
				agent.Restarted(true)
				want.Restarted()
			}
		}
		if d := cmp.Diff(slowTransfers(l, want, least), got.transfers, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("seed %d: transfers (-want +got)\n%s", seed, d)
		}
		if d := cmp.Diff(failures(want), got.errors, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("seed %d: errors (-want +got)\n%s", seed, d)
		}
		for _, one := range got.transfers {
			causes[one.Cause]++
		}
	}
	if causes[tally.SlowDuration] == 0 || (causes[tally.SlowThroughput] == 0) != (least == 0) {
		t.Errorf("causes %v: some didn't occur", causes)
	}
}

func transferIn(micros uint64) []ringbuf.Event {
	return []ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeXferPostTime, 1),
		ringbuf.NewEvent(ringbuf.TypeXferTime, micros),
		ringbuf.NewEvent(ringbuf.TypeTxBytes, 1000),
		ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
	}
}

func TestP99FactorComparesWithEarlierTransfers(t *testing.T) {
	for name, c := range map[string]struct {
		config tally.HistogramConfig
		p99    uint64 // of 999 transfers of 100 µs and some of 5 ms, to the width of a bucket
	}{
		"explicit":    {tally.HistogramConfig{}, 100},
		"exponential": {tally.HistogramConfig{Kind: tally.Exponential}, 103},
		"none":        {tally.HistogramConfig{Kind: tally.NoHistogram}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got seen
			agent := tally.NewAgent(shape(t, tally.Config{Duration: c.config}))
			agent.Watch(got.watch(tally.Slow{P99Factor: 10}))
			r := newRing(t, ringbuf.V4, 8192)
			for range tally.P99Transfers - 1 {
				r.feed(agent, transferIn(100))
			}
			r.feed(agent, transferIn(5000)) // not enough transfers yet
			r.feed(agent, transferIn(900))
			if len(got.transfers) != 0 {
				t.Errorf("%d slow transfers, want none", len(got.transfers))
			}
			r.feed(agent, transferIn(5001))
			var want []tally.Transfer
			if c.p99 > 0 {
				want = []tally.Transfer{{Layout: ringbuf.V4, Bytes: 1000, Duration: 5001, Post: 1, Cause: tally.SlowP99, P99: c.p99}}
			}
			if d := cmp.Diff(want, got.transfers, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestNothingIsSlowWithoutALimit(t *testing.T) {
	var got seen
	agent := tally.NewAgent(shape(t, tally.Config{}))
	agent.Watch(got.watch(tally.Slow{}))
	r := newRing(t, ringbuf.V4, 512)
	r.feed(agent, generator{rand.New(rand.NewPCG(1, 1)), ringbuf.V4}.events(1000))
	if len(got.transfers) > 0 {
		t.Errorf("%d slow transfers", len(got.transfers))
	}
}

func TestWatchOfFastTransfersDoesNotAllocate(t *testing.T) {
	agent := tally.NewAgent(shape(t, tally.Config{}))
	var got seen
	agent.Watch(got.watch(tally.Slow{Duration: time.Hour, MinThroughput: 1, P99Factor: 1e6}))
	r := newRing(t, ringbuf.V4, slots)
	r.push(transferMix(rand.New(rand.NewPCG(1, 2))))
	r.read(func(b ringbuf.Batch) {
		agent.Add(b)
		got.errors = got.errors[:0]
		if n := testing.AllocsPerRun(10, func() {
			agent.Add(b)
			got.errors = got.errors[:0]
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}
