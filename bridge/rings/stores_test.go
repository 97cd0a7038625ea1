// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package rings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/storetest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Each process of an agent has a store, whose histograms have its bounds.
func TestStoresAreReportedWithRings(t *testing.T) {
	dir := t.TempDir()
	makeRing(t, dir, ringbuf.NewEvent(ringbuf.TypeXferTime, 20))
	for i, bounds := range [][]float64{{10, 100, 1000}, {15}} {
		s := storetest.Create(t, dir, storetest.Config{Agent: "a", PID: int64(i + 1), Bounds: bounds})
		for range i + 1 {
			s.Transfer(0, 4096, 20, 5)
		}
	}
	w := newWorld(t, Config{Directories: []string{dir}, Events: true})
	got := map[string]float64{} // of stores by metric, and one series of the ring
	for key, v := range w.produce(t) {
		name, attributes, _ := strings.Cut(key, "{")
		switch {
		case strings.Contains(attributes, "service.instance.id"):
			got[name] += v
		case name == "nixl.transfer.duration":
			got[key] = v
		}
	}
	want := map[string]float64{
		"nixl.transfer.duration{nixl.agent.name=a}": 1,

		"nixl.agent.up": 2, "nixl.errors": 0, "nixl.telemetry.events.dropped": 0,
		"nixl.transfer.requests": 3, "nixl.transfer.io": 3 * 4096, "nixl.transfer.last.size": 2 * 4096,
		"nixl.transfer.duration": 3, "nixl.transfer.last.duration": 2 * 20e-6,
		"nixl.transfer.post.duration": 3, "nixl.transfer.last.post_duration": 2 * 5e-6,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("values (-want +got):\n%s", d)
	}
}
