package tally_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// At the edge nothing wraps: counters stand still at the largest int64, and
// sums of distributions go on.
func TestLargestValues(t *testing.T) {
	const largest = math.MaxUint64
	for _, l := range ringbuf.Layouts() {
		t.Run(l.String(), func(t *testing.T) {
			agent, want := tally.NewAgent(shape(t, tally.Config{})), newModel()
			r := newRing(t, l, 64)
			for range 3 {
				for kind := range ringbuf.Type(20) {
					e := ringbuf.NewEvent(kind, largest)
					if l.Named() {
						e = ringbuf.NewNamedEvent(kind.Category(), kind.LegacyName(), largest)
					}
					r.feed(agent, []ringbuf.Event{e})
					want.add(l, e)
				}
			}
			compare(t, want, agent)
			if got := agent.Requests(tally.Transmit).Sum; got != (tally.Sum{Hi: 2, Lo: largest - 2}) {
				t.Errorf("three times the largest value is %v", got)
			}
			if got := agent.Size(tally.Receive).Sum(); got != 3*float64(largest) {
				t.Errorf("sum of sizes is %v", got)
			}
			if got := agent.Errors(ringbuf.TypeErrBackend).Sum.Int64(); got != math.MaxInt64 {
				t.Errorf("errors are %v, want the largest int64", got)
			}
			if got := agent.Registered().Last(); got != math.MaxInt64 {
				t.Errorf("the newest registration is %v, want the largest int64", got)
			}
			if got := agent.MemoryUsage(); got != 0 {
				t.Errorf("usage is %v, want 0: as much was deregistered as registered", got)
			}
		})
	}
}

// The sum of a long run of large values needs more than 64 bits.
func TestLongRunOfLargeValues(t *testing.T) {
	const (
		transfers = 1 << 17
		value     = 1<<48 - 1
	)
	agent := tally.NewAgent(shape(t, tally.Config{}))
	r := newRing(t, ringbuf.V4, transfers*8)
	group := transfersOf(value)
	for range transfers {
		r.push(group)
	}
	r.read(agent.Add)
	product := new(big.Int).Mul(big.NewInt(transfers), big.NewInt(value))
	for name, h := range map[string]*tally.Histogram{
		"size": agent.Size(tally.Receive), "duration": agent.Duration(), "post": agent.PostDuration(),
	} {
		want, _ := new(big.Float).SetInt(product).Float64()
		if got := h.Total().Float64(); got != want || h.Count() != transfers {
			t.Errorf("%s: sum %v of %d, want %v of %d", name, got, h.Count(), want, transfers)
		}
	}
}

func TestMemoryUsage(t *testing.T) {
	const (
		in, out = ringbuf.TypeMemoryRegistered, ringbuf.TypeMemoryDeregistered
		restart = ringbuf.Type(1000) // not an event
		largest = math.MaxUint64
	)
	type step struct {
		kind  ringbuf.Type
		value uint64
	}
	tests := []struct {
		name  string
		steps []step
		want  int64
	}{
		{"nothing", nil, 0},
		{"registered", []step{{in, 100}, {in, 20}, {out, 100}}, 20},
		{"the registration went unseen", []step{{out, 100}}, -100},
		{"a restart gives all back", []step{{in, 100}, {restart, 0}}, 0},
		{"it goes on from zero", []step{{in, 100}, {out, 30}, {restart, 0}, {in, 7}}, 7},
		{"below zero before the restart", []step{{out, 100}, {restart, 0}, {in, 7}, {out, 3}}, 4},
		{"below zero after the restart", []step{{in, 100}, {restart, 0}, {out, 7}}, -7},
		{"two restarts", []step{{in, 1}, {restart, 0}, {in, 2}, {restart, 0}, {in, 4}}, 4},
		{"beyond int64", []step{{in, largest}, {in, largest}}, math.MaxInt64},
		{"and back", []step{{in, largest}, {in, largest}, {out, largest}, {out, largest - 5}}, 5},
		{"below int64", []step{{out, largest}, {out, largest}}, math.MinInt64},
		{"the smallest int64", []step{{out, 1 << 63}}, math.MinInt64},
		{"beyond int64 before the restart", []step{{in, largest}, {in, largest}, {restart, 0}, {in, 9}}, 9},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			agent := tally.NewAgent(shape(t, tally.Config{}))
			r := newRing(t, ringbuf.V4, 8)
			for _, s := range tt.steps {
				if s.kind == restart {
					agent.Restarted()
					continue
				}
				r.feed(agent, []ringbuf.Event{ringbuf.NewEvent(s.kind, s.value)})
			}
			if got := agent.MemoryUsage(); got != tt.want {
				t.Errorf("usage is %d, want %d", got, tt.want)
			}
		})
	}
}

// A restart takes nothing from what was counted.
func TestRestartKeepsTotals(t *testing.T) {
	agent := tally.NewAgent(shape(t, tally.Config{}))
	r := newRing(t, ringbuf.V4, 64)
	before := transfersOf(10, 20)
	r.feed(agent, before)
	agent.Restarted()
	r.feed(agent, transfersOf(30))
	if got := agent.Size(tally.Receive).Total().Int64(); got != 60 {
		t.Errorf("%d bytes, want 60", got)
	}
	if got := agent.Requests(tally.Receive).Events; got != 3 {
		t.Errorf("%d requests, want 3", got)
	}
	if got := agent.Restarts(); got != 1 {
		t.Errorf("%d restarts, want 1", got)
	}
}

func TestHealth(t *testing.T) {
	agent := tally.NewAgent(shape(t, tally.Config{}))
	if agent.Utilization() != 0 || agent.Capacity() != 0 {
		t.Errorf("utilization %v of %d before the first drain", agent.Utilization(), agent.Capacity())
	}
	agent.Found(3, 9)
	agent.Found(2, 9)
	if got := agent.Utilization(); got != 3.0/8 {
		t.Errorf("utilization %v, want the highest of the interval", got)
	}
	agent.Rest()
	agent.Found(1, 9)
	if got := agent.Utilization(); got != 1.0/8 {
		t.Errorf("utilization %v, want the highest since the last interval", got)
	}
	agent.Found(8, 9)
	agent.Found(4, 17) // the agent has come back with another ring
	if got := agent.Utilization(); got != 4.0/16 || agent.Capacity() != 17 {
		t.Errorf("utilization %v of %d, want a quarter of 16 events", got, agent.Capacity())
	}
	agent.Saturated()
	agent.ForeignRead()
	agent.ForeignRead()
	if agent.Saturations() != 1 || agent.ForeignReads() != 2 || agent.Restarts() != 0 {
		t.Errorf("%d saturations, %d foreign reads, %d restarts", agent.Saturations(), agent.ForeignReads(), agent.Restarts())
	}
}
