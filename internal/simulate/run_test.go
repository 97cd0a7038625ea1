// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestRunEndsAfterTheDuration(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		fleet, err := simulate.NewFleet(simulate.FleetConfig{
			Dir: dir, Agents: 3, Layouts: ringbuf.Layouts(), Capacity: 8192,
			Agent: simulate.Config{Rate: 50, Duration: 10 * time.Second, RestartEvery: 4 * time.Second, Seed: 11},
		})
		must.OK(t, err)
		start := time.Now()
		must.OK(t, fleet.Run(t.Context()))
		// Each of the two restarts takes an interval, and the last agent starts two thirds of an interval later.
		if took := time.Since(start); took < 10200*time.Millisecond || took > 10400*time.Millisecond {
			t.Errorf("10 s took %v", took)
		}
		if !fleet.Done() {
			t.Error("the fleet isn't done")
		}
		report := fleet.Report()
		for path, totals := range report.Agents {
			if totals.Operations != 500 || totals.Starts != 3 {
				t.Errorf("%s: %d operations and %d lives in 10 s at 50/s", path, totals.Operations, totals.Starts)
			}
		}
		if report.Sum.Operations != 1500 || report.Sum.Layout != "mixed" || len(report.Agents) != 3 {
			t.Errorf("sum of %d agents: %d operations, layout %s", len(report.Agents), report.Sum.Operations, report.Sum.Layout)
		}
	})
}

// Even if the agent is late, a reader has a full interval for each flush.
func TestRunFlushesOncePerInterval(t *testing.T) {
	path := ringPath(t)
	synctest.Test(t, func(t *testing.T) {
		var skew atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }
		a := mustNew(t, simulate.Config{Path: path, Rate: 10_000, Seed: 13, Now: now})
		must.OK(t, a.Start())
		c := newConsumer(t, path)
		done := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- a.Run(ctx, 0) }()
		for i := range 30 {
			if i == 5 {
				skew.Store(int64(200 * time.Millisecond)) // as if the machine had been suspended
			}
			<-time.After(100 * time.Millisecond)
			synctest.Wait()
			if flushes := a.Totals().Flushes; flushes != uint64(i+1) {
				t.Fatalf("%d flushes after %d intervals", flushes, i+1)
			}
			c.drain()
		}
		cancel()
		must.OK(t, <-done)
		c.drain()
		totals := a.Totals()
		c.same(a)
		if totals.Dropped() != 0 {
			t.Errorf("%d events dropped", totals.Dropped())
		}
		// Up to 1,023 operations fit in a flush, so 23 of each flush catch up.
		if totals.Operations < 30_500 || totals.Operations > 30_700 {
			t.Errorf("%d operations", totals.Operations)
		}
	})
}
