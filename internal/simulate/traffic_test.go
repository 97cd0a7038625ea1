// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
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

	w := a.Totals().Written
	tx, rx := w.Transmit, w.Receive
	near(t, "writes", float64(tx.Requests)/float64(tx.Requests+rx.Requests), 0.6, 0.01)
	near(t, "errors", float64(a.Totals().Failed)/50_000, 0.01, 0.002)
	if len(w.Errors) < 10 || w.Errors[semconv.ErrorBackend] < w.Errors[semconv.ErrorNoTelemetry] {
		t.Errorf("errors: %v", w.Errors)
	}
	if tx.Size.Min < 8<<10 || tx.Size.Max > 512<<20 || tx.Size.Min > 64<<10 || tx.Size.Max < 256<<20 {
		t.Errorf("sizes from %d to %d", tx.Size.Min, tx.Size.Max)
	}
	near(t, "half of the sizes", share(tx.Size.Buckets, semconv.TransferSize.Bounds, 4<<20), 0.5, 0.02)
	near(t, "times up to 1 ms", share(w.Duration.Buckets, semconv.TransferDuration.Bounds, 1e-3), 0.9, 0.08)
	near(t, "post times up to 100 µs", share(w.PostDuration.Buckets, semconv.TransferDuration.Bounds, 100e-6), 0.99, 0.01)
	if w.Duration.Min < 8 || w.PostDuration.Min > 10 {
		t.Errorf("shortest times: %d µs, post %d µs", w.Duration.Min, w.PostDuration.Min)
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
func share(buckets []uint64, bounds []float64, bound float64) float64 {
	var below, all uint64
	for i, n := range buckets {
		if i < len(bounds) && bounds[i] <= bound {
			below += n
		}
		all += n
	}
	return float64(below) / float64(all)
}

func TestDistributionsMatchTheEventsThatAreRead(t *testing.T) {
	a := mustNew(t, simulate.Config{Rate: 1000, Operations: 900, Seed: 16})
	must.OK(t, a.Start())
	c := newConsumer(t, a.Path())
	for !a.Done() {
		must.OK(t, a.Interval())
		c.drain()
	}
	want := map[ringbuf.Type]simulate.Distribution{}
	for _, e := range c.events {
		bounds, value, unit := semconv.TransferSize.Bounds, float64(e.Value), "By"
		switch e.Type {
		case ringbuf.TypeTxBytes, ringbuf.TypeRxBytes:
		case ringbuf.TypeXferTime, ringbuf.TypeXferPostTime:
			bounds, value, unit = semconv.TransferDuration.Bounds, value/1e6, "us"
		default:
			continue
		}
		d, seen := want[e.Type]
		if !seen {
			d.Unit, d.Min, d.Buckets = unit, e.Value, make([]uint64, len(bounds)+1)
		}
		i := 0
		for i < len(bounds) && value > bounds[i] {
			i++
		}
		d.Buckets[i]++
		d.Count, d.Sum, d.Last = d.Count+1, d.Sum+e.Value, e.Value
		d.Min, d.Max = min(d.Min, e.Value), max(d.Max, e.Value)
		want[e.Type] = d
	}
	var rates [2]uint64
	for i := 3; i < len(c.events); i++ {
		if bytes := c.events[i-1]; c.events[i-3].Type == ringbuf.TypeXferPostTime && c.events[i].Type.Category() == ringbuf.CategoryTransfer {
			rates[bytes.Type-ringbuf.TypeTxBytes] += bytes.Value * 1e6 / max(c.events[i-2].Value, 1)
		}
	}
	w := a.Totals().Written
	if w.Transmit.Throughput.Sum != rates[0] || w.Receive.Throughput.Sum != rates[1] ||
		w.Transmit.Throughput.Count != w.Transmit.Requests || w.Receive.Throughput.Count != w.Receive.Requests || rates[0] == 0 {
		t.Errorf("throughput is %+v and %+v, want sums of %d", w.Transmit.Throughput, w.Receive.Throughput, rates)
	}
	got := map[ringbuf.Type]simulate.Distribution{
		ringbuf.TypeTxBytes: w.Transmit.Size, ringbuf.TypeRxBytes: w.Receive.Size,
		ringbuf.TypeXferTime: w.Duration, ringbuf.TypeXferPostTime: w.PostDuration,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestInvalidConfigurationsAreRejected(t *testing.T) {
	noBandwidth, badShare := simulate.KVCache(), simulate.KVCache()
	noBandwidth.Bandwidth, badShare.ErrorShare = 0, 1.5
	for name, cfg := range map[string]simulate.Config{
		"no path":       {},
		"negative rate": {Path: "x", Rate: -1},
		"no number":     {Path: "x", Rate: math.NaN()},
		"never done":    {Path: "x", Operations: 1},
		"short life":    {Path: "x", RestartEvery: time.Millisecond},
		"negative time": {Path: "x", Duration: -1},
		"no bandwidth":  {Path: "x", Traffic: noBandwidth},
		"share above 1": {Path: "x", Traffic: badShare},
		"no block":      {Path: "x", Traffic: simulate.Traffic{Bandwidth: 1}},
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
