// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package rings

import (
	"slices"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/storetest"
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
		t.Errorf("%v transfers of %v processes, want 3 of 2: %q", transfers, up, inStores)
	}
	if n := got["nixl.transfer.duration{nixl.agent.name=a}"]; n != 1 {
		t.Errorf("the ring has %v transfers, want 1", n)
	}
}
