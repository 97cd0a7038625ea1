// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package rings_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/rings"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Agents of one name on two hosts can have stores in one directory. Their histograms have
// the stores' bounds, and those of rings may be exponential.
func TestStoresAreReportedWithRings(t *testing.T) {
	dir := t.TempDir()
	makeRing(t, dir, ringbuf.V4, ringbuf.NewEvent(ringbuf.TypeXferTime, 20))
	for i, host := range []string{"one", "two"} {
		s := storetest.Create(t, dir, storetest.Config{Agent: "a", Host: host, PID: int64(i + 1)})
		for range i + 1 {
			s.Transfer(0, 4096, 20, 5)
		}
	}
	w := newWorld(t, rings.Config{Directories: []string{dir}, HostName: "node", ExponentialBuckets: 20, Events: true})
	got := w.produce(t)
	var inStores []string
	for key := range got {
		if strings.Contains(key, "service.instance.id") {
			inStores = append(inStores, key)
		}
	}
	for _, name := range []string{"nixl.telemetry.ring.", "nixl.events{"} {
		if slices.ContainsFunc(inStores, func(key string) bool { return strings.HasPrefix(key, name) }) {
			t.Errorf("stores have %s: %q", name, inStores)
		}
	}
	var transfers, up float64
	for _, key := range inStores {
		switch {
		case strings.HasPrefix(key, "nixl.transfer.duration{"):
			transfers += got[key]
		case strings.HasPrefix(key, "nixl.agent.up{"):
			up += got[key]
		}
	}
	if transfers != 3 || up != 2 {
		t.Errorf("%v transfers of %v agents, want 3 of 2: %q", transfers, up, inStores)
	}
	if n := got["nixl.transfer.duration{nixl.agent.name=a}"]; n != 1 {
		t.Errorf("the ring has %v transfers, want 1", n)
	}
}

// Histograms start at zero with the bounds of the newest process.
func TestDeltasOfAStoreWhoseBoundsChange(t *testing.T) {
	dir := t.TempDir()
	first := storetest.Create(t, dir, storetest.Config{PID: 1, Bounds: []float64{10, 100, 1000}})
	w := newWorld(t, rings.Config{Directories: []string{dir}, HostName: "node"})
	e := &metrictest.Exporter{Of: metricdata.DeltaTemporality}
	provider := e.Provider(w.Reader)
	t.Cleanup(func() { _ = provider.Shutdown(context.WithoutCancel(t.Context())) })
	flush := func(transfers uint64, bounds ...float64) {
		t.Helper()
		must.OK(t, provider.ForceFlush(t.Context()))
		p := metrictest.Data[metricdata.Histogram[float64]](t, e.Metrics, "nixl.transfer.duration").DataPoints[0]
		if p.Count != transfers || !slices.Equal(p.Bounds, bounds) {
			t.Errorf("%d transfers with bounds %v, want %d with %v", p.Count, p.Bounds, transfers, bounds)
		}
	}
	first.Transfer(0, 1, 20, 5)
	first.Transfer(0, 1, 20, 5)
	flush(2, 10e-6, 100e-6, 1000e-6)
	first.Transfer(0, 1, 20, 5)
	flush(1, 10e-6, 100e-6, 1000e-6)
	first.Exit()
	second := storetest.Create(t, dir, storetest.Config{PID: 2, Bounds: []float64{15}})
	second.Transfer(0, 1, 20, 5)
	w.log.wait(t, "histograms restart from zero")
	flush(1, 15e-6)
	second.Transfer(0, 1, 20, 5)
	flush(1, 15e-6)
}
