// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/oracle"
)

func TestWhenIsTheInverseOfOutside(t *testing.T) {
	p := Phase{Every: 10 * time.Second, For: 2 * time.Second}
	for up := time.Duration(0); up < 45*time.Second; up += 37 * time.Millisecond {
		if got := p.when(p.outside(up)); !p.inside(up) && got != up {
			t.Fatalf("%v became %v", up, got)
		}
	}
	if got := p.outside(25 * time.Second); got != 21*time.Second {
		t.Errorf("%v of 25 s are outside", got)
	}
	if got := (Phase{}).outside(time.Hour); got != time.Hour {
		t.Errorf("no phase: %v", got)
	}
}

func TestErrorWeightsAddUpTo256(t *testing.T) {
	sum := 0
	for _, e := range errorWeights {
		sum += e.weight
	}
	if sum != 256 || len(errorWeights) != 12 {
		t.Errorf("the weights of %d errors add up to %d", len(errorWeights), sum)
	}
}

func TestInvalidPhasesAreRejected(t *testing.T) {
	long := Phase{Every: time.Second, For: 2 * time.Second}
	for name, change := range map[string]func(*Config){
		"always stalled":   func(c *Config) { c.Stalled = Phase{Every: 2, For: 2} },
		"long outage":      func(c *Config) { c.Traffic = KVCache(); c.Traffic.Outages = long },
		"long degradation": func(c *Config) { c.Traffic = KVCache(); c.Traffic.Degrading, c.Traffic.DegradedTo = long, 0.5 },
		"degraded to nothing": func(c *Config) {
			c.Traffic = KVCache()
			c.Traffic.Degrading = Phase{Every: 2, For: 1}
		},
		"negative post time": func(c *Config) { c.Traffic = KVCache(); c.Traffic.PostPerBlock = -1 },
		"share above 1":      func(c *Config) { c.Traffic = KVCache(); c.Traffic.OutageShare = 2 },
	} {
		c := Config{Path: "x", Rate: 100}
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// play advances a scenario's fleet by some seconds, and returns the totals of each second.
func play(t *testing.T, name string, seconds int) (*Fleet, []Totals) {
	t.Helper()
	s, err := FindScenario(name)
	must.OK(t, err)
	cfg := FleetConfig{Dir: t.TempDir(), Prefix: "sim", Agents: 1, Capacity: 1 << 14, Journals: true}
	cfg.Agent.Traffic, cfg.Agent.Seed = KVCache(), 1
	s.Set(&cfg)
	f, err := NewFleet(cfg)
	must.OK(t, err)
	must.OK(t, f.Start())
	var each []Totals
	for range seconds {
		for range 10 {
			must.OK(t, f.Interval())
		}
		each = append(each, f.Report().Sum)
	}
	must.OK(t, f.Stop())
	for i := len(each) - 1; i > 0; i-- {
		each[i].Operations -= each[i-1].Operations
		each[i].Failed -= each[i-1].Failed
	}
	return f, each
}

func TestFailingPeerScenarioHasOutages(t *testing.T) {
	f, each := play(t, "failing-peer", 40)
	for i, s := range each {
		down := i%20 >= 15
		if down != (s.Failed > 50) || s.Operations < 99 || s.Operations > 101 {
			t.Errorf("second %d has %d operations, %d failed", i, s.Operations, s.Failed)
		}
	}
	if n := f.Agents()[0].Totals().Points["nixl.errors{error.type=remote_disconnect}"].(int64); n < 600 { //nolint:errcheck,forcetypeassert // or the test panics
		t.Errorf("%d errors", n)
	}
}

func TestShortScenariosIncludeTheirPhase(t *testing.T) {
	for _, d := range []time.Duration{time.Second, 3 * time.Second, 15 * time.Second} {
		for name, phase := range map[string]func(*FleetConfig) Phase{
			"failing-peer":   func(c *FleetConfig) Phase { return c.Agent.Traffic.Outages },
			"stalled":        func(c *FleetConfig) Phase { return c.Stalled },
			"degrading-link": func(c *FleetConfig) Phase { return c.Agent.Traffic.Degrading },
		} {
			s, err := FindScenario(name)
			must.OK(t, err)
			cfg := FleetConfig{}
			cfg.Agent.Duration = d
			s.Set(&cfg)
			if p := phase(&cfg); p.Every > d || p.validate() != nil || p.inside(d/10) || !p.inside(min(p.Every, d)-time.Millisecond) {
				t.Errorf("%s of %v: %+v", name, d, p)
			}
		}
	}
}

func TestOverflowScenarioDropsMostEvents(t *testing.T) {
	f, _ := play(t, "overflow", 3)
	sum := f.Report().Sum
	if sum.Capacity != 512 || sum.DroppedStaging == 0 || sum.DroppedRing == 0 || sum.Dropped() < 3*sum.Written {
		t.Errorf("written %d, dropped %d", sum.Written, sum.Dropped())
	}
}

// spread returns a histogram of an agent's journal.
func spread(t *Totals, name string) oracle.Distribution {
	d, _ := t.Points[name].(oracle.Distribution)
	return d
}

// directions are the attributes of the metrics of transfers.
const transmit, receive = "{nixl.transfer.direction=transmit}", "{nixl.transfer.direction=receive}"

// throughput returns the mean throughput of all transfers, in bytes per second.
func throughput(t *Totals) float64 {
	tx, rx := spread(t, "nixl.transfer.throughput"+transmit), spread(t, "nixl.transfer.throughput"+receive)
	return (tx.Sum + rx.Sum) / float64(tx.Count+rx.Count)
}

func TestOneAgentOfTheStragglerScenarioIsSlow(t *testing.T) {
	f, _ := play(t, "straggler", 5)
	if len(f.Agents()) != 6 {
		t.Fatalf("%d agents", len(f.Agents()))
	}
	straggler := f.Agents()[3].Totals()
	for i, a := range f.Agents() {
		totals := a.Totals()
		if i != 3 && throughput(&totals) < 4*throughput(&straggler) || totals.Operations != 500 {
			t.Errorf("agent %d: %d transfers at %.3g B/s; agent 3 has %.3g B/s",
				i, totals.Operations, throughput(&totals), throughput(&straggler))
		}
	}
}

func TestStragglerIsNotFasterThanItsPeers(t *testing.T) {
	for _, share := range []float64{-0.1, 1.1, math.NaN()} {
		cfg := FleetConfig{Dir: "x", Agents: 2, Straggler: share}
		cfg.Agent.Traffic = KVCache()
		if _, err := NewFleet(cfg); err == nil {
			t.Errorf("relative bandwidth of %v: no error", share)
		}
	}
}

// Without the queue, a small transfer takes some 30 µs and a large one 10 ms or more.
func TestSmallTransfersOfTheMixedSizesScenarioWait(t *testing.T) {
	f, _ := play(t, "mixed-sizes", 10)
	totals := f.Agents()[0].Totals()
	upTo := func(d oracle.Distribution, most float64) (n uint64) {
		for i, bound := range d.Bounds {
			if bound <= most {
				n += d.Counts[i]
			}
		}
		return n
	}
	small := upTo(spread(&totals, "nixl.transfer.size"+transmit), 1<<20) + upTo(spread(&totals, "nixl.transfer.size"+receive), 1<<20)
	quick := upTo(spread(&totals, "nixl.transfer.duration"), 1e-3)
	if share := float64(small) / float64(spread(&totals, "nixl.transfer.duration").Count); share < 0.93 || share > 0.97 {
		t.Errorf("%.0f%% of the transfers are small", 100*share)
	}
	if share := float64(quick) / float64(small); share < 0.5 || share > 0.9 {
		t.Errorf("%.0f%% of the small transfers don't wait", 100*share)
	}
}

func TestPostingDominatesThePostBoundScenario(t *testing.T) {
	for scenario, most := range map[string]bool{"post-bound": true, "steady": false} {
		f, _ := play(t, scenario, 10)
		totals := f.Agents()[0].Totals()
		post, all := spread(&totals, "nixl.transfer.post.duration"), spread(&totals, "nixl.transfer.duration")
		if all.Count < 900 || (post.Sum*2 > all.Sum) != most {
			t.Errorf("%s: of %v s, %d transfers spend %v s posting", scenario, all.Sum, all.Count, post.Sum)
		}
	}
}

func TestThroughputOfADegradingLinkFallsAndRecovers(t *testing.T) {
	s, err := FindScenario("degrading-link")
	must.OK(t, err)
	cfg := FleetConfig{}
	cfg.Agent.Traffic = KVCache()
	s.Set(&cfg)
	minute := func(n int) float64 { // mean throughput in minute n, in bytes per second
		rng, sum := rand.New(rand.NewPCG(1, 2)), 0.0
		for i := range 6000 {
			at := time.Duration(n)*time.Minute + time.Duration(i)*10*time.Millisecond
			op := cfg.Agent.Traffic.draw(rng, &link{}, at)
			sum += float64(op.size) / float64(op.xfer) * micros
		}
		return sum / 6000
	}
	before := minute(0)
	for n := 1; n < 5; n++ {
		now := minute(n)
		if now > 0.8*before {
			t.Errorf("minute %d has %.3g B/s, the minute before %.3g B/s", n, now, before)
		}
		before = now
	}
	if before > minute(0)/4 || minute(5) != minute(0) {
		t.Errorf("%.3g B/s in the fifth minute, then %.3g B/s, as in the first: %.3g B/s", before, minute(5), minute(0))
	}
}

func TestStalledScenarioHasAnAgentThatHangs(t *testing.T) {
	f, _ := play(t, "stalled", 90)
	for i, a := range f.Agents() {
		want := uint64(9000)
		if i == 3 {
			want = 6000 // in the first minute
		}
		if got := a.Totals().Operations; got != want {
			t.Errorf("agent %d: %d operations, want %d", i, got, want)
		}
	}
}

func TestSteadyScenarioHasAConstantRate(t *testing.T) {
	_, each := play(t, "steady", 10)
	for i, s := range each {
		if s.Operations != 100 {
			t.Errorf("second %d has %d operations", i, s.Operations)
		}
	}
}

func TestFindScenarioListsAllScenarios(t *testing.T) {
	var names []string
	for _, s := range Scenarios() {
		names = append(names, s.Name)
		if s.Description == "" {
			t.Errorf("%s has no description", s.Name)
		}
	}
	if diff := cmp.Diff([]string{
		"steady", "failing-peer", "overflow",
		"straggler", "half-speed", "stalled", "mixed-sizes", "post-bound", "degrading-link",
	}, names); diff != "" {
		t.Error(diff)
	}
	if _, err := FindScenario("peace"); err == nil || !strings.Contains(err.Error(), "steady, failing-peer") {
		t.Error(err)
	}
}
