// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"math"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestTrafficHasTheDocumentedDistribution(t *testing.T) {
	traffic := simulate.KVCache()
	traffic.ErrorShare = 0.01
	a := mustNew(t, simulate.Config{
		Lives: []simulate.Life{{Capacity: 1 << 18}}, Rate: 500_000, Traffic: traffic, Seed: 15,
	})
	must.OK(t, a.Start())
	must.OK(t, a.Interval())
	c := newConsumer(t, a.Path())
	c.drain()

	totals := a.Totals()
	spread := func(name string) oracle.Distribution {
		d, _ := totals.Points[name].(oracle.Distribution)
		return d
	}
	tx, rx := spread("nixl.transfer.size{nixl.transfer.direction=transmit}"), spread("nixl.transfer.size{nixl.transfer.direction=receive}")
	duration, post := spread("nixl.transfer.duration"), spread("nixl.transfer.post.duration")
	near(t, "writes", float64(tx.Count)/float64(tx.Count+rx.Count), 0.6, 0.01)
	near(t, "errors", float64(totals.Failed)/50_000, 0.01, 0.002)
	if most, least := point(&totals, "nixl.errors{error.type=backend}"), point(&totals, "nixl.errors{error.type=no_telemetry}"); most < 10*least {
		t.Errorf("%d errors of the backend, %d without telemetry", most, least)
	}
	near(t, "smallest size in KiB", tx.Min/1024, 36, 28)
	near(t, "largest size in MiB", tx.Max/(1<<20), 384, 128)
	near(t, "half of the sizes", share(tx, 4<<20), 0.5, 0.02)
	near(t, "times up to 1 ms", share(duration, 1e-3), 0.9, 0.08)
	near(t, "post times up to 100 µs", share(post, 100e-6), 0.99, 0.01)
	if duration.Min < 8e-6 || post.Min > 10e-6 {
		t.Errorf("shortest times: %v s, post %v s", duration.Min, post.Min)
	}

	for _, e := range c.events {
		if e.Type == ringbuf.TypeTxBytes && e.Value%(8<<10) != 0 {
			t.Fatalf("%d bytes are not whole blocks", e.Value)
		}
	}
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within {
		t.Errorf("%s: %.3f, want %.3f", what, got, want)
	}
}

// share returns the share of values up to a bound.
func share(d oracle.Distribution, bound float64) float64 {
	var below uint64
	for i, n := range d.Counts {
		if i < len(d.Bounds) && d.Bounds[i] <= bound {
			below += n
		}
	}
	return float64(below) / float64(d.Count)
}

func TestInvalidConfigurationsAreRejected(t *testing.T) {
	for name, cfg := range map[string]simulate.Config{
		"no path":        {},
		"negative rate":  {Path: "x", Rate: -1},
		"no number":      {Path: "x", Rate: math.NaN()},
		"never done":     {Path: "x", Operations: 1},
		"short life":     {Path: "x", RestartEvery: time.Millisecond},
		"negative time":  {Path: "x", Duration: -1},
		"always stalled": {Path: "x", Rate: 100, Stalled: simulate.Phase{Every: 2, For: 2}},
	} {
		if _, err := simulate.New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := simulate.NewFleet(simulate.FleetConfig{}); err == nil {
		t.Error("a fleet without agents: no error")
	}
	a, err := simulate.New(simulate.Config{Path: ringPath(t), Lives: []simulate.Life{{Capacity: 12}}})
	must.OK(t, err)
	if err := a.Start(); err == nil {
		t.Error("a ring of 12 slots: no error")
	}
}
