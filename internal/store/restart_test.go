// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package store

import (
	"os"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
)

// One process has exited and its store is removed, one has exited and its store exists,
// and one is running.
func TestTotalsContinueAfterCollectorRestart(t *testing.T) {
	x := newFixture(t)
	x.storage = newMemory()
	removed := storetest.Create(t, x.dir, storetest.Config{PID: 1})
	work(removed, 1)
	r := x.read()
	r.first()
	removed.Exit()
	r.collect()
	if err := os.Remove(removed.Path()); err != nil {
		t.Fatal(err)
	}
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
	for name, storage := range map[string]*memory{"stopped": x.storage, "killed": killed} {
		x.storage = storage
		again := x.read()
		agents := again.first()
		check(t, agents, map[string]sums{"agent": transfers(1111, drain.UpYes)})
		if got, want := agents["agent"].Start, before["agent"].Start; !got.Equal(want) {
			t.Errorf("%s: totals start at %v, not %v", name, got, want)
		}
		if p := agents["agent"].Processes; len(p) != 1 || p[0].PID != 3 {
			t.Errorf("%s: processes = %+v", name, p)
		}
		again.stop()
	}
}

func TestStoreOfProcessThatExitedDuringDowntimeIsRead(t *testing.T) {
	x := newFixture(t)
	x.storage = newMemory()
	w := storetest.Create(t, x.dir, storetest.Config{})
	work(w, 1)
	r := x.read()
	r.first()
	r.stop()
	work(w, 1)
	w.Transfer(0, 10, 3, 5)
	w.Updated(0) // an unknown store with this time would be stale
	w.Exit()
	r = x.read(func(c *Config) { c.Uptime = func() (time.Duration, error) { return 24 * time.Hour, nil } })
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
	x.storage = newMemory()
	w := storetest.Create(t, x.dir, storetest.Config{PID: 1})
	work(w, 1)
	r := x.read()
	r.first()
	r.stop()
	work(w, 2)
	w.Exit()
	if err := os.Remove(w.Path()); err != nil {
		t.Fatal(err)
	}
	work(storetest.Create(t, x.dir, storetest.Config{PID: 2}), 10)
	r = x.read()
	for range 2 {
		check(t, r.first(), map[string]sums{"agent": transfers(11, drain.UpYes)})
	}
	if reported := r.noticesOf(notice.MPStoreLost); len(reported) != 1 || reported[0].Path != w.Path() {
		t.Errorf("notices = %v", reported)
	}
	r.stop()
	r = x.read()
	check(t, r.first(), map[string]sums{"agent": transfers(11, drain.UpYes)})
}

// Checkpoints don't name stores that were counted long ago.
func TestOldStoreIsNotCountedAgain(t *testing.T) {
	x := newFixture(t)
	x.storage = newMemory()
	old := storetest.Create(t, x.dir, storetest.Config{PID: 1})
	work(old, 1)
	old.Updated(0)
	uptime := func(c *Config) { c.Uptime = func() (time.Duration, error) { return staleAfter + time.Minute, nil } }
	r := x.read(uptime)
	r.first()
	old.Exit()
	runs := storetest.Create(t, x.dir, storetest.Config{PID: 2})
	r.collect()
	x.advance(staleAfter + time.Second)
	work(runs, 1)
	check(t, r.collect(), map[string]sums{"agent": transfers(2, drain.UpYes)})
	r.stop()
	r = x.read(uptime)
	check(t, r.first(), map[string]sums{"agent": transfers(2, drain.UpYes)})
}

func TestRetiredAgentHasNoCheckpoint(t *testing.T) {
	x := newFixture(t)
	x.storage = newMemory()
	w := storetest.Create(t, x.dir, storetest.Config{})
	r := x.read()
	r.first()
	w.Exit()
	r.collect()
	x.advance(staleAfter + time.Second)
	r.collect()
	r.stop()
	if _, there := x.storage.values[checkpoint.Key(agentID(x.dir, "host", "agent"))]; there {
		t.Error("the checkpoint still exists")
	}
}

func TestCountingContinuesWithoutStorage(t *testing.T) {
	x := newFixture(t)
	x.storage = newMemory()
	x.storage.values[checkpoint.Key(agentID(x.dir, "host", "agent"))] = []byte("no checkpoint")
	w := storetest.Create(t, x.dir, storetest.Config{})
	work(w, 1)
	x.storage.broken = true
	r := x.read()
	check(t, r.first(), map[string]sums{"agent": transfers(1, drain.UpYes)})
	r.collect()
	for _, kind := range []notice.Kind{notice.CheckpointUnusable, notice.StoreFailed, notice.ExportUnsaved} {
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
	r = x.read()
	check(t, r.first(), map[string]sums{"agent": transfers(2, drain.UpYes)})
}
