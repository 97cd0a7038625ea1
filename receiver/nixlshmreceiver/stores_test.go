// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package nixlshmreceiver

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/storetest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// A real agent wrote the store.
func TestGoldenStore(t *testing.T) {
	for file, change := range map[string]func(*Config){
		"store":            func(c *Config) { c.Metrics.NixlAgentUp.Enabled = true },
		"store_everything": everything,
	} {
		t.Run(file, func(t *testing.T) {
			dir := t.TempDir()
			storetest.Copy(t, dir)
			h := newHarness(t, dir, change)
			clock := newClock()
			clock.pass(365 * 24 * time.Hour) // the process started later than the clock
			h.on.now = clock.now
			got := h.startWith(1).next()
			checkGolden(t, file, got)
		})
	}
}

func TestRingsAndStoresCanShareADirectory(t *testing.T) {
	dir := t.TempDir()
	push(t, ring(t, dir, "ring", ringbuf.V4, 16), write(7, 1, 1)...)
	for i := range 2 {
		w := storetest.Create(t, dir, storetest.Config{Agent: "store", PID: int64(i + 1), Rank: strconv.Itoa(i)})
		w.Transfer(0, 100, 20, 5)
	}
	h := newHarness(t, dir, func(c *Config) {
		c.ResourceAttributes.NixlTelemetryLayout.Enabled, c.ResourceAttributes.ProcessPid.Enabled = true, true
	}).startWith(3)
	type resource struct {
		Layout, Rank, PID string
		Bytes             int64
	}
	got := make(map[resource]int)
	instances := make(map[string]bool)
	for _, rm := range h.next().ResourceMetrics().All() {
		a := readAgent(t, rm)
		r := a.resource
		got[resource{r[semconv.TelemetryLayout], r[semconv.LocalRank], r[semconv.ProcessPID], a.int(transmitted)}]++
		instances[r[semconv.ServiceInstanceID]] = true
	}
	want := map[resource]int{{"v4", "", "", 7}: 1, {"prometheus_mp_v1", "0", "1", 100}: 1, {"prometheus_mp_v1", "1", "2", 100}: 1}
	if d := cmp.Diff(want, got); d != "" || len(instances) != 3 {
		t.Errorf("instances are %v; resources (-want +got)\n%s", instances, d)
	}
	if s := h.rings().State(); len(s.Refused) != 0 {
		t.Errorf("refused are %v", slices.Collect(maps.Keys(s.Refused)))
	}
}

func TestInvalidStoreAffectsNoOtherAgent(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, storetest.Real)
	must.OK(t, os.WriteFile(path, storetest.Bytes(t)[:100], 0o600))
	storetest.Create(t, dir, storetest.Config{}).Transfer(0, 1, 1, 1)
	h := newHarness(t, dir).startWith(1)
	if a := read(t, h.next()); len(a) != 1 {
		t.Errorf("agents are %v", a)
	}
	h.log("warn: ", path, "store can't be read", "100 bytes")
	if refused := h.rings().State().Refused; refused[path].Reason != "invalid" {
		t.Errorf("refused are %v", refused)
	}
}
