// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package engine

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestTotalsOfRealStoreEqualItsJSON(t *testing.T) {
	x := newFixture(t)
	x.now = time.Unix(1_800_000_000, 0) // after the process started
	must.OK(t, os.WriteFile(filepath.Join(x.dir, storetest.Real), storetest.Bytes(t), 0o600))
	want := storetest.Read(t)
	// The process has just exited.
	r := x.start(func(c *Config) {
		c.Uptime = func() (time.Duration, error) { return time.Duration(want.Updated) + time.Second, nil }
	})
	got, ok := r.collect()[want.Agent]
	if !ok || len(got.Processes) != 1 {
		t.Fatalf("agent = %+v", got)
	}
	p := got.Processes[0]
	identity := []any{want.PID, want.Instance, want.Host, want.LocalRank, drain.UpNo, int64(1795211775677999379)}
	if d := cmp.Diff(identity, []any{p.PID, p.Instance, p.Host, p.LocalRank, got.Up, p.Start.UnixNano()}); d != "" {
		t.Error(d)
	}
	totals := got.Totals
	counters := map[string]int64{
		"agent_tx_bytes":                 totals.Size(tally.Transmit).Total().Int64(),
		"agent_rx_bytes":                 totals.Size(tally.Receive).Total().Int64(),
		"agent_tx_requests_num":          totals.Requests(tally.Transmit).Sum.Int64(),
		"agent_rx_requests_num":          totals.Requests(tally.Receive).Sum.Int64(),
		"agent_memory_registered":        totals.Registered().Sum.Int64(),
		"agent_memory_deregistered":      totals.Deregistered().Sum.Int64(),
		"agent_xfer_time":                totals.Duration().Total().Int64(),
		"agent_xfer_post_time":           totals.PostDuration().Total().Int64(),
		"agent_telemetry_events_dropped": totals.Dropped().Sum.Int64(),
	}
	for kind := ringbuf.TypeErrNotPosted; kind.IsError(); kind++ {
		counters[kind.String()[len("agent_err_"):]] = totals.Errors(kind).Sum.Int64()
	}
	last := map[string]int64{
		"agent_tx_bytes":            totals.Size(tally.Transmit).LastInt64(),
		"agent_rx_bytes":            totals.Size(tally.Receive).LastInt64(),
		"agent_memory_registered":   totals.Registered().Last(),
		"agent_memory_deregistered": totals.Deregistered().Last(),
		"agent_xfer_time":           totals.Duration().LastInt64(),
		"agent_xfer_post_time":      totals.PostDuration().LastInt64(),
	}
	if d := cmp.Diff(int64s(want.Counters), counters); d != "" {
		t.Errorf("counters (-JSON +totals)\n%s", d)
	}
	if d := cmp.Diff(int64s(want.Gauges), last); d != "" {
		t.Errorf("last values (-JSON +totals)\n%s", d)
	}
	for name, h := range map[string]*tally.Histogram{"agent_xfer_time": totals.Duration(), "agent_xfer_post_time": totals.PostDuration()} {
		if d := cmp.Diff(want.Hist[name].Buckets, h.Counts()); d != "" {
			t.Errorf("%s: buckets (-JSON +totals)\n%s", name, d)
		}
		for i, bound := range want.Bounds {
			if got := h.Bounds()[i]; got != bound/1e6 {
				t.Errorf("%s: bound %v s is %v s", name, bound/1e6, got)
			}
		}
		if h.HasRange() {
			t.Errorf("%s has a minimum and a maximum, which stores don't contain", name)
		}
	}
	if usage, known := totals.MemoryUsage(); usage != 0 || !known {
		t.Errorf("memory usage is %d, known %v", usage, known)
	}
}

func int64s(m map[string]uint64) map[string]int64 {
	list := make(map[string]int64)
	for k, v := range m {
		list[k] = int64(v)
	}
	return list
}

// The values in the store of a new process start from zero. The last values are those of
// the newest process.
func TestTotalsContinueAfterAgentRestart(t *testing.T) {
	x := newFixture(t)
	first := storetest.Create(t, x.dir, storetest.Config{PID: 1})
	work(first, 3)
	first.Count(storetest.Registered, 1000)
	r := x.start()
	check(t, r.collect(), map[string]sums{"agent": transfers(3, drain.UpYes)})
	work(first, 2)
	first.Exit()
	check(t, r.collect(), map[string]sums{"agent": transfers(5, drain.UpNo)})
	check(t, r.collect(), map[string]sums{"agent": transfers(5, drain.UpNo)})

	second := storetest.Create(t, x.dir, storetest.Config{PID: 2})
	check(t, r.collect(), map[string]sums{"agent": transfers(5, drain.UpYes)})
	second.Transfer(0, 10, 700, 5)
	second.Count(storetest.Registered, 200)
	agents := r.collect()
	check(t, agents, map[string]sums{"agent": transfers(6, drain.UpYes)})
	totals := agents["agent"].Totals
	if usage, known := totals.MemoryUsage(); usage != 200 || !known {
		t.Errorf("memory usage is %d, known %v, want 200 of the running process", usage, known)
	}
	if got := totals.Registered().Sum.Int64(); got != 1200 {
		t.Errorf("registered %d", got)
	}
	if d := cmp.Diff([]uint64{0, 5, 1, 0}, totals.Duration().Counts()); d != "" {
		t.Error(d)
	}
	if got := totals.Duration().LastInt64(); got != 700 {
		t.Errorf("last duration is %d µs", got)
	}
	p := agents["agent"].Processes
	if len(p) != 1 || p[0].PID != 2 || p[0].Totals.Requests(tally.Transmit).Sum.Int64() != 1 {
		t.Errorf("processes = %+v", p)
	}
	if len(r.noticesOf(notice.MPStoreRestart)) != 1 || len(r.noticesOf(notice.MPStoreShared)) != 0 {
		t.Errorf("notices = %v", x.notices)
	}
}

func TestLastValuesOfExitedProcessAreCountedOnce(t *testing.T) {
	for name, removed := range map[string]bool{"the store stays": false, "the store is removed": true} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t)
			w := storetest.Create(t, x.dir, storetest.Config{})
			r := x.start()
			check(t, r.collect(), map[string]sums{"agent": transfers(0, drain.UpYes)})
			work(w, 4)
			w.Exit()
			if removed {
				must.OK(t, os.Remove(w.Path()))
			}
			if agents, _ := r.hold(false); sumsOf(agents["agent"]).Transfers != 4 {
				t.Error("values aren't read before the exit is noticed")
			}
			for range 3 {
				check(t, r.collect(), map[string]sums{"agent": transfers(4, drain.UpNo)})
			}
			if s := r.State(); s.Open != 0 || len(s.Refused) != 0 {
				t.Errorf("state = %+v", s)
			}
		})
	}
}

// A collection reuses only the memory of released collections.
func TestSnapshotsChangeOnlyAfterRelease(t *testing.T) {
	x := newFixture(t)
	a := storetest.Create(t, x.dir, storetest.Config{PID: 1, Agent: "a"})
	same := storetest.Create(t, x.dir, storetest.Config{PID: 2, Agent: "a"})
	b := storetest.Create(t, x.dir, storetest.Config{PID: 3, Agent: "b", Bounds: []float64{10, 100}})
	want := func(a, b int64) map[string]sums {
		return map[string]sums{"a": transfers(a, drain.UpYes), "b": transfers(b, drain.UpYes)}
	}
	r := x.start()
	first, c := r.hold(true)
	work(a, 1)
	work(b, 2)
	second, kept := r.hold(false)
	check(t, first, want(0, 0))
	reused := make(map[*tally.Totals]bool)
	for _, s := range first {
		reused[s.Totals] = true
		for _, p := range s.Processes {
			reused[p.Totals] = true
		}
	}
	r.Release(c)
	work(same, 4)
	b.Exit()
	third, _ := r.hold(false)
	fourth, _ := r.hold(false)
	check(t, second, want(1, 2))
	check(t, third, want(5, 2))
	check(t, fourth, want(5, 2))
	if !reused[third["a"].Totals] || reused[fourth["a"].Totals] {
		t.Error("memory of the released collection isn't used exactly once")
	}
	r.Release(kept)
	work(a, 8)
	fifth, _ := r.hold(true)
	check(t, fifth, map[string]sums{"a": transfers(13, drain.UpYes), "b": transfers(2, drain.UpNo)})
	var processes []int64
	for _, p := range fifth["a"].Processes {
		processes = append(processes, int64(p.Totals.Duration().Count()))
	}
	if d := cmp.Diff([]int64{9, 4}, processes); d != "" {
		t.Error(d)
	}
}

func TestCountersNeverDecrease(t *testing.T) {
	x := newFixture(t)
	w := storetest.Create(t, x.dir, storetest.Config{})
	work(w, 5)
	r := x.start()
	r.collect()
	w.SetCounter(storetest.TxBytes, 7)
	check(t, r.collect(), map[string]sums{"agent": transfers(5, drain.UpYes)})
}

// Several processes with the same agent name cause one notice. Several agents of one
// process are separate.
func TestProcessesWithSameAgentNameAreAddedUp(t *testing.T) {
	x := newFixture(t)
	work(storetest.Create(t, x.dir, storetest.Config{PID: 1, Agent: "same", Rank: "0"}), 1)
	work(storetest.Create(t, x.dir, storetest.Config{PID: 2, Agent: "same", Rank: "1"}), 2)
	started := time.Now()
	work(storetest.Create(t, x.dir, storetest.Config{PID: 3, Agent: "a", Started: started}), 3)
	work(storetest.Create(t, x.dir, storetest.Config{PID: 3, Agent: "b", Started: started, Instance: 1}), 4)
	r := x.start()
	agents := r.collect()
	check(t, agents, map[string]sums{
		"same": transfers(3, drain.UpYes), "a": transfers(3, drain.UpYes), "b": transfers(4, drain.UpYes),
	})
	var ranks []string
	for _, p := range agents["same"].Processes {
		ranks = append(ranks, p.LocalRank)
	}
	if d := cmp.Diff([]string{"0", "1"}, ranks); d != "" {
		t.Error(d)
	}
	if reported := r.noticesOf(notice.MPStoreShared); len(reported) != 0 {
		t.Errorf("notices = %v, but the exit of a process may be noticed late", reported)
	}
	for range 2 {
		x.advance(time.Minute)
		r.collect()
	}
	if reported := r.noticesOf(notice.MPStoreShared); len(reported) != 1 {
		t.Errorf("notices = %v", reported)
	}
}

// Only histograms are reset; counters continue.
func TestChangedBoundsResetHistograms(t *testing.T) {
	x := newFixture(t)
	first := storetest.Create(t, x.dir, storetest.Config{PID: 1, Bounds: []float64{10, 100}})
	work(first, 3)
	r := x.start()
	r.collect()
	first.Exit()
	second := storetest.Create(t, x.dir, storetest.Config{PID: 2, Bounds: []float64{15, 25, 35}})
	work(second, 1)
	got := r.collect()
	check(t, got, map[string]sums{"agent": {Bytes: 40, Requests: 4, Transfers: 1, Up: drain.UpYes}})
	if d := cmp.Diff([]float64{15e-6, 25e-6, 35e-6}, got["agent"].Totals.Duration().Bounds()); d != "" {
		t.Error(d)
	}
	if reported := r.noticesOf(notice.MPStoreBounds); len(reported) != 1 {
		t.Errorf("notices = %v", reported)
	}
	if sum := got["agent"].Totals.Duration().Total().Int64(); sum != 20 {
		t.Errorf("the histogram's sum is %d, want 20 for one transfer", sum)
	}
}

func TestMaximumAndMinimumNumberOfBounds(t *testing.T) {
	x := newFixture(t)
	bounds := make([]float64, 32)
	for i := range bounds {
		bounds[i] = float64(i + 1)
	}
	most := storetest.Create(t, x.dir, storetest.Config{PID: 1, Agent: "most", Bounds: bounds})
	work(most, 2)
	work(storetest.Create(t, x.dir, storetest.Config{PID: 2, Agent: "none", Bounds: []float64{}}), 3)
	agents := x.start().collect()
	check(t, agents, map[string]sums{"most": transfers(2, drain.UpYes), "none": transfers(3, drain.UpYes)})
	if counts := agents["most"].Totals.Duration().Counts(); len(counts) != 32+1 || counts[19] != 2 {
		t.Errorf("counts are %v", counts)
	}
	if kind := agents["none"].Totals.Duration().Kind(); kind != tally.NoHistogram {
		t.Errorf("kind is %v", kind)
	}
}

func TestHistogramsCanBeDisabled(t *testing.T) {
	x := newFixture(t)
	work(storetest.Create(t, x.dir, storetest.Config{}), 2)
	agents := x.start(func(c *Config) { c.Tally.Duration.Kind = tally.NoHistogram }).collect()
	check(t, agents, map[string]sums{"agent": transfers(2, drain.UpYes)})
	if kind := agents["agent"].Totals.Duration().Kind(); kind != tally.NoHistogram {
		t.Errorf("kind is %v", kind)
	}
}

// An exited agent is reported until its last values are delivered and it is inactive. Its
// stores aren't counted again.
func TestExitedAgentIsRetired(t *testing.T) {
	x := newFixture(t)
	w := storetest.Create(t, x.dir, storetest.Config{})
	work(w, 1)
	r := x.start()
	r.collect()
	w.Exit()
	x.advance(staleAfter + time.Second)
	r.hold(true) // not delivered
	x.advance(staleAfter + time.Second)
	check(t, r.collect(), map[string]sums{"agent": transfers(1, drain.UpNo)})
	x.advance(staleAfter + time.Second)
	check(t, r.collect(), map[string]sums{})
	check(t, r.collect(), map[string]sums{})
	if reported := r.noticesOf(notice.MPStoreRetired); len(reported) != 1 {
		t.Errorf("notices = %v", reported)
	}
	work(storetest.Create(t, x.dir, storetest.Config{PID: 2}), 2)
	check(t, r.collect(), map[string]sums{"agent": transfers(2, drain.UpYes)})
}

func TestIdleAgentIsNotRetired(t *testing.T) {
	x := newFixture(t)
	storetest.Create(t, x.dir, storetest.Config{})
	r := x.start()
	r.collect()
	x.advance(10 * staleAfter)
	check(t, r.collect(), map[string]sums{"agent": transfers(0, drain.UpYes)})
}

func TestStaleStoresAreIgnored(t *testing.T) {
	x := newFixture(t)
	const uptime = time.Hour
	for name, updated := range map[string]time.Duration{
		"long ago": uptime - staleAfter - time.Second, "just now": uptime - time.Second, "before the start": 2 * uptime,
	} {
		w := storetest.Create(t, x.dir, storetest.Config{Agent: name, PID: int64(updated)})
		work(w, 1)
		w.Updated(updated)
		w.Exit()
	}
	r := x.start(func(c *Config) { c.Uptime = func() (time.Duration, error) { return uptime, nil } })
	for range 2 {
		check(t, r.collect(), map[string]sums{"just now": transfers(1, drain.UpNo)})
	}
	if s := r.State(); s.Open != 0 || len(s.Refused) != 0 {
		t.Errorf("state = %+v", s)
	}
}

func TestTotalsOfThousandStoresAreExact(t *testing.T) {
	x := newFixture(t)
	want := make(map[string]sums)
	for i := range 1000 {
		name := "agent-" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		work(storetest.Create(t, x.dir, storetest.Config{Agent: name, PID: int64(i + 1)}), i%7)
		want[name] = transfers(int64(i%7), drain.UpYes)
	}
	r := x.start()
	// The first collection waits for the search for only a second.
	must.EventuallyTrue(t, "open store for each file", func() bool { r.collect(); return r.State().Open == 1000 })
	check(t, r.collect(), want)
}
