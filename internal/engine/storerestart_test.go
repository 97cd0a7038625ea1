// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package engine

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// storeKey returns the key of the default agent's checkpoint.
func storeKey(x *fixture) string {
	return checkpoint.Key(fmt.Sprintf("store %q \"host\" \"agent\"", x.dir))
}

// One process has exited and its store is removed, one has exited and its store exists,
// and one is running.
func TestTotalsContinueAfterCollectorRestart(t *testing.T) {
	x := newFixture(t)
	x.storage = newStorage()
	removed := storetest.Create(t, x.dir, storetest.Config{PID: 1})
	work(removed, 1)
	r := x.start()
	r.first()
	removed.Exit()
	r.collect()
	must.OK(t, os.Remove(removed.Path()))
	stays := storetest.Create(t, x.dir, storetest.Config{PID: 2})
	work(stays, 10)
	r.collect()
	stays.Exit()
	runs := storetest.Create(t, x.dir, storetest.Config{PID: 3})
	work(runs, 100)
	before := r.collect()
	check(t, before, map[string]sums{"agent": transfers(111, drain.UpYes)})

	// The Collector restarts after a regular stop, and after it was killed.
	killed := x.storage.copyOf()
	r.stop()
	work(runs, 1000)
	x.advance(time.Minute)
	for name, storage := range map[string]*storage{"stopped": x.storage, "killed": killed} {
		x.storage = storage
		again := x.start()
		agents := again.first()
		check(t, agents, map[string]sums{"agent": transfers(1111, drain.UpYes)})
		if got, want := agents["agent"].Start, before["agent"].Start; !got.Equal(want) {
			t.Errorf("%s: totals start at %v, not %v", name, got, want)
		}
		var pids []int64
		for range 2 {
			for _, p := range agents["agent"].Processes {
				pids = append(pids, p.PID)
			}
			agents = again.collect()
		}
		// The process that exited is reported once more.
		if d := cmp.Diff([]int64{2, 3, 3}, pids); d != "" {
			t.Errorf("%s: processes (-want +got)\n%s", name, d)
		}
		again.stop()
	}
}

func TestStoreOfProcessThatExitedDuringDowntimeIsRead(t *testing.T) {
	x := newFixture(t)
	x.storage = newStorage()
	w := storetest.Create(t, x.dir, storetest.Config{})
	work(w, 1)
	r := x.start()
	r.first()
	r.stop()
	work(w, 1)
	w.Transfer(0, 10, 3, 5)
	w.Updated(0) // an unknown store with this time would be stale
	w.Exit()
	r = x.start(func(c *Config) { c.Uptime = func() (time.Duration, error) { return 24 * time.Hour, nil } })
	for range 2 {
		agents := r.first()
		check(t, agents, map[string]sums{"agent": transfers(3, drain.UpNo)})
		if last := agents["agent"].Totals.Duration().LastInt64(); last != 3 {
			t.Errorf("the last transfer took %d µs, want 3", last)
		}
	}
}

// Events that were counted after the last checkpoint are missing.
func TestStoreRemovedDuringDowntimeIsReported(t *testing.T) {
	x := newFixture(t)
	x.storage = newStorage()
	w := storetest.Create(t, x.dir, storetest.Config{PID: 1})
	work(w, 1)
	r := x.start()
	r.first()
	r.stop()
	work(w, 2)
	w.Exit()
	must.OK(t, os.Remove(w.Path()))
	work(storetest.Create(t, x.dir, storetest.Config{PID: 2}), 10)
	r = x.start()
	for range 2 {
		check(t, r.first(), map[string]sums{"agent": transfers(11, drain.UpYes)})
	}
	x.advance(time.Minute) // the store may be in another directory that wasn't found yet
	check(t, r.collect(), map[string]sums{"agent": transfers(11, drain.UpYes)})
	if reported := r.noticesOf(notice.MPStoreLost); len(reported) != 1 || reported[0].Path != w.Path() {
		t.Errorf("notices = %v", reported)
	}
	r.stop()
	r = x.start()
	check(t, r.first(), map[string]sums{"agent": transfers(11, drain.UpYes)})
}

// Checkpoints don't name stores that were counted long ago.
func TestOldStoreIsNotCountedAgain(t *testing.T) {
	x := newFixture(t)
	x.storage = newStorage()
	old := storetest.Create(t, x.dir, storetest.Config{PID: 1})
	work(old, 1)
	old.Updated(0)
	uptime := func(c *Config) { c.Uptime = func() (time.Duration, error) { return staleAfter + time.Minute, nil } }
	r := x.start(uptime)
	r.first()
	old.Exit()
	runs := storetest.Create(t, x.dir, storetest.Config{PID: 2})
	r.collect()
	x.advance(staleAfter + time.Second)
	work(runs, 1)
	check(t, r.collect(), map[string]sums{"agent": transfers(2, drain.UpYes)})
	r.stop()
	r = x.start(uptime)
	check(t, r.first(), map[string]sums{"agent": transfers(2, drain.UpYes)})
}

func TestRetiredAgentHasNoCheckpoint(t *testing.T) {
	x := newFixture(t)
	x.storage = newStorage()
	w := storetest.Create(t, x.dir, storetest.Config{})
	r := x.start()
	r.first()
	w.Exit()
	r.collect()
	x.advance(staleAfter + time.Second)
	r.collect()
	r.stop()
	if _, there := x.storage.values[storeKey(x)]; there {
		t.Error("the checkpoint still exists")
	}
}

func TestCountingContinuesWithoutStorage(t *testing.T) {
	x := newFixture(t)
	x.storage = newStorage()
	x.storage.values[storeKey(x)] = []byte("no checkpoint")
	w := storetest.Create(t, x.dir, storetest.Config{})
	work(w, 1)
	x.storage.broken = true
	r := x.start()
	check(t, r.first(), map[string]sums{"agent": transfers(1, drain.UpYes)})
	r.collect()
	for _, kind := range []notice.Kind{notice.CheckpointUnusable, notice.StoreFailed} {
		if len(r.noticesOf(kind)) == 0 {
			t.Errorf("no notice of kind %d", kind)
		}
	}
	x.storage.mu.Lock()
	x.storage.broken = false
	x.storage.mu.Unlock()
	r.collect()
	work(w, 1)
	r.stop()
	r = x.start()
	check(t, r.first(), map[string]sums{"agent": transfers(2, drain.UpYes)})
}

// A backend sees another stream when an attribute changes, so its totals start at zero.
// Before that, the totals of the earlier stream are delivered completely.
func TestTotalsOfStoresBeginAgainWithOtherAttributes(t *testing.T) {
	x := newFixture(t)
	x.storage = newStorage()
	withRank := func(c *Config) {
		c.Stream = func(s *drain.Snapshot) attribute.Set {
			return attribute.NewSet(attribute.String("rank", s.Processes[len(s.Processes)-1].LocalRank))
		}
	}
	delivered := make(map[string]int64) // the transfers of each stream, by its attribute and start
	collect := func(r *collector) {
		t.Helper()
		r.refreshed.Store(false)
		c, err := r.Collect(t.Context(), false)
		must.OK(t, err)
		for i := range c.Snapshots {
			s := &c.Snapshots[i]
			rank, _ := s.Stream.Value("rank")
			if s.LayoutName() != semconv.LayoutStore {
				t.Errorf("the stream of rank %s has layout %s", rank.AsString(), s.LayoutName())
			}
			delivered[fmt.Sprint(rank.AsString(), " ", s.Start.UnixNano())] = sumsOf(*s).Transfers
		}
		r.Delivered(c)
	}
	check := func(want map[string]int64) {
		t.Helper()
		got := make(map[string]int64)
		for key, n := range delivered {
			rank, _, _ := strings.Cut(key, " ")
			got[rank] += n
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("transfers by rank (-want +got)\n%s", d)
		}
	}
	r := x.start(withRank)
	first := storetest.Create(t, x.dir, storetest.Config{PID: 1, Rank: "0"})
	work(first, 3)
	r.first()
	collect(r)
	check(map[string]int64{"0": 3})

	// The first process still runs when the second one starts.
	work(first, 1)
	second := storetest.Create(t, x.dir, storetest.Config{PID: 2, Rank: "1"})
	work(second, 10)
	collect(r)
	check(map[string]int64{"0": 4, "1": 10})
	work(first, 5) // belongs to the next stream, because the first one has ended
	work(second, 1)
	collect(r)
	check(map[string]int64{"0": 4, "1": 16})

	// Neither a restart of the Collector nor a process with the same attributes begins
	// another stream.
	r.stop()
	r = x.start(withRank)
	r.first()
	work(storetest.Create(t, x.dir, storetest.Config{PID: 3, Rank: "1"}), 100)
	first.Exit()
	collect(r)
	check(map[string]int64{"0": 4, "1": 116})
	if len(delivered) != 2 {
		t.Errorf("streams are %v, want two", delivered)
	}
}
