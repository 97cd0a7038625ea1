// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestSumOfALongRunMayExceed64Bits(t *testing.T) {
	const (
		transfers = 1 << 17
		value     = 1<<48 - 1
	)
	agent := NewAgent(shapeOf(t, Config{}))
	agent.Add(batchOf(t, ringbuf.V4, slices.Repeat(transfersOf(value), transfers)...))
	product := new(big.Int).Mul(big.NewInt(transfers), big.NewInt(value))
	for name, h := range map[string]*Histogram{
		"size": agent.Size(Receive), "duration": agent.Duration(), "post": agent.PostDuration(),
	} {
		want, _ := new(big.Float).SetInt(product).Float64()
		if got := h.Total().Float64(); got != want || h.Count() != transfers {
			t.Errorf("%s: sum %v of %d, want %v of %d", name, got, h.Count(), want, transfers)
		}
	}
}

func TestMemoryUsageIsKnownOnlyWithoutGaps(t *testing.T) {
	const (
		in, out = ringbuf.TypeMemoryRegistered, ringbuf.TypeMemoryDeregistered
		largest = math.MaxUint64
	)
	type step func(*Agent)
	steps := func(list ...step) []step { return list }
	event := func(kind ringbuf.Type, v uint64) step {
		return func(a *Agent) { a.Add(batchOf(t, ringbuf.V4, ringbuf.NewEvent(kind, v))) }
	}
	start, later := func(a *Agent) { a.Opened(true) }, func(a *Agent) { a.Opened(false) }
	restart, foreign, miss := (*Agent).Restarted, (*Agent).ForeignRead, (*Agent).Missed
	const unknown = -1
	tests := []struct {
		name  string
		steps []step
		want  int64
	}{
		{"not opened", nil, unknown},
		{"nothing", steps(start), 0},
		{"opened in the middle of a run", steps(later, event(in, 100)), unknown},
		{"opened again in the middle", steps(start, event(in, 100), later, event(in, 1)), unknown},
		{"opened in the middle, then a restart", steps(later, event(out, 100), restart, event(in, 7), event(out, 3)), 4},
		{"the registration was missed", steps(start, event(out, 100)), unknown},
		{"only the first registration was missed", steps(start, event(in, 10), event(out, 100), event(in, 1000)), unknown},
		{"missed after the restart", steps(start, event(in, 100), restart, event(out, 7), event(in, 50)), unknown},
		{"another process read", steps(start, event(in, 100), foreign), unknown},
		{"events were missed", steps(start, event(in, 100), miss, event(in, 1)), unknown},
		{"a restart releases all", steps(start, event(in, 100), restart), 0},
		{"it continues from zero", steps(start, event(in, 100), event(out, 30), restart, event(in, 7)), 7},
		{"beyond int64", steps(start, event(in, largest), event(in, largest)), math.MaxInt64},
		{"and back", steps(start, event(in, largest), event(in, largest), event(out, largest), event(out, largest-5)), 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := shapeOf(t, Config{})
			agent := NewAgent(s)
			for _, do := range tt.steps {
				do(agent)
			}
			for name, a := range map[string]*Totals{
				"agent": &agent.Totals, "snapshot": agent.Snapshot(), "restored": &storeAndRestore(t, agent, s).Totals,
			} {
				got, known := a.MemoryUsage()
				if known != (tt.want != unknown) || known && got != tt.want {
					t.Errorf("usage of the %s is %d (known: %v), want %d", name, got, known, tt.want)
				}
			}
		})
	}
}

func TestUtilizationIsTheHighestFillOfTheInterval(t *testing.T) {
	agent := NewAgent(shapeOf(t, Config{}))
	if agent.Utilization() != 0 || agent.Capacity() != 0 {
		t.Errorf("utilization %v of %d before the first drain", agent.Utilization(), agent.Capacity())
	}
	agent.Found(3, 9)
	agent.Found(2, 9)
	for i, want := range []float64{3.0 / 8, 0, 1.0 / 8} { // of each interval
		if i == 2 {
			agent.Found(1, 9)
		}
		if got := agent.Snapshot().Utilization(); got != want {
			t.Errorf("utilization of snapshot %d is %v, want %v", i, got, want)
		}
	}
	agent.Found(8, 9)
	agent.Found(4, 17) // the agent restarted with a larger ring
	if got := agent.Utilization(); got != 4.0/16 || agent.Capacity() != 17 {
		t.Errorf("utilization %v of %d, want a quarter of 16 events", got, agent.Capacity())
	}
}

func TestHealthCountersCountCalls(t *testing.T) {
	agent := NewAgent(shapeOf(t, Config{}))
	agent.Saturated()
	agent.ForeignRead()
	agent.ForeignRead()
	for range 3 {
		agent.Restarted()
	}
	for range 4 {
		agent.Missed()
	}
	got := []uint64{agent.Saturations(), agent.ForeignReads(), agent.Restarts(), agent.Misses()}
	if want := []uint64{1, 2, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("saturations, foreign reads, restarts and misses are %v, want %v", got, want)
	}
}

// The last event of a counter can have the value 0.
func TestImportedCounterHasEventsUnlessItIsZero(t *testing.T) {
	s, err := ImportShape(nil, false)
	must.OK(t, err)
	for v, want := range map[[2]uint64]uint64{{5, 0}: 1, {0, 5}: 1, {5, 5}: 1, {0, 0}: 0} {
		values := make([]Value, ringbuf.Types)
		values[ringbuf.TypeTxRequests] = Value{Sum: v[0], Last: v[1]}
		values[ringbuf.TypeXferTime] = Value{Sum: v[0], Last: v[1]} // a histogram whose buckets aren't known
		totals := s.Import(values, false)
		if got := [2]uint64{totals.Requests(Transmit).Events, totals.Duration().Count()}; got != [2]uint64{want, want} {
			t.Errorf("sum %d, last value %d: %d requests and durations, want %d", v[0], v[1], got, want)
		}
		if bytes, known := totals.MemoryUsage(); bytes != 0 || !known {
			t.Errorf("%d bytes are registered (known: %v), want none", bytes, known)
		}
	}
}

func TestImportedTotalsAreThoseOfTheirProcess(t *testing.T) {
	s, err := ImportShape([]float64{10, 1000}, true)
	must.OK(t, err)
	values := make([]Value, ringbuf.Types+1)
	values[ringbuf.TypeXferTime] = Value{Sum: 2015, Last: 2000, Counts: []uint64{1, 1, 1}}
	values[ringbuf.TypeMemoryRegistered] = Value{Sum: 100, Last: 100}
	values[ringbuf.Types] = Value{Sum: 7, Last: 3} // of a later release
	for exited, want := range map[bool]int64{false: 100, true: 0} {
		totals := s.Import(values, exited)
		if d := totals.Duration(); !slices.Equal(d.Bounds(), []float64{1e-5, 1e-3}) || !slices.Equal(d.Counts(), []uint64{1, 1, 1}) || d.Sum() != 2015e-6 {
			t.Errorf("durations: bounds %v, counts %v, sum %v", d.Bounds(), d.Counts(), d.Sum())
		}
		if bytes, known := totals.MemoryUsage(); bytes != want || !known {
			t.Errorf("%d bytes are registered (known: %v), want %d", bytes, known, want)
		}
		if list := totals.Series(); len(list) != 1 || list[0].Sum.Lo != 7 || !list[0].Valued {
			t.Errorf("other events are %+v", list)
		}
	}
}

// The first events of a transfer are counted before the attributes of an agent change.
func TestTransferInTwoStreamsIsWhole(t *testing.T) {
	s := shapeOf(t, Config{})
	first, events := NewAgent(s), transfersOf(1, 2)
	feed(t, first, ringbuf.V4, events[:6])
	next := first.Next(s)
	feed(t, next, ringbuf.V4, events[6:])
	if n := next.Throughput(Receive).Count(); n != 1 || first.TornGroups()+next.TornGroups() != 0 {
		t.Errorf("%d throughputs, want 1; %d and %d torn groups, want none", n, first.TornGroups(), next.TornGroups())
	}
}
