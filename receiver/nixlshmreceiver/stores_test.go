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
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
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
			golden := filepath.Join("testdata", "golden", file+".yaml")
			if *update {
				writeGolden(t, golden, got)
			}
			compareGolden(t, golden, got)
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
		c.ResourceAttributes.NixlTelemetryLayout.Enabled = true
	}).startWith(3)
	m := h.next()
	type resource struct {
		Layout, Rank string
		Bytes        int64
	}
	got := make(map[string]resource)
	for _, rm := range m.ResourceMetrics().All() {
		text := func(key string) string {
			if v, ok := rm.Resource().Attributes().Get(key); ok {
				return v.Str()
			}
			return ""
		}
		r := resource{Layout: text(semconv.TelemetryLayout), Rank: text(semconv.LocalRank)}
		for _, metric := range rm.ScopeMetrics().At(0).Metrics().All() {
			switch metric.Name() {
			case semconv.TransferIO.Name:
				r.Bytes = metric.Sum().DataPoints().At(0).IntValue()
			}
		}
		got[text(semconv.AgentName)] = r
	}
	want := map[string]resource{
		"ring":  {Layout: "v4", Bytes: 7},
		"store": {Layout: "prometheus_mp_v1", Rank: "1", Bytes: 200},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
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

// The store of a process that has exited is closed.
func TestStoreOfExitedProcessIsNotCountedAsStale(t *testing.T) {
	dir := t.TempDir()
	exit := storetest.Copy(t, dir)
	storetest.Create(t, dir, storetest.Config{})
	h := newHarness(t, dir)
	telemetry := h.withTelemetry()
	h.startWith(2).next()
	exit()
	must.EventuallyTrue(t, "closed store of the exited process", func() bool { return h.rings().State().Open == 1 })
	h.next()
	want := map[string]int64{"open": 1, "stale": 0}
	if d := cmp.Diff(want, sums(t, telemetry, "rings")); d != "" {
		t.Errorf("rings (-want +got)\n%s", d)
	}
	if d := cmp.Diff(map[string]int64{"prometheus_mp_v1": 2}, sums(t, telemetry, "agents")); d != "" {
		t.Errorf("agents (-want +got)\n%s", d)
	}
}

// A backend that adds up all series counts each transfer once.
func TestStreamsBeginAtZeroWhenTheResourceChangesOverARestart(t *testing.T) {
	t.Parallel() // it waits for a second in each life
	dir, extension := t.TempDir(), newMemory()
	w := ring(t, dir, "ring", ringbuf.V4, 64)
	counted := storetest.Create(t, dir, storetest.Config{Agent: "store"})
	id := newHarness(t, dir).settings.ID
	type stream struct {
		agent, cluster string
		start          pcommon.Timestamp
	}
	backend := make(map[stream]int64)
	for _, cluster := range []string{"east", "west", "west"} {
		h := newHarness(t, dir, func(c *Config) { c.StorageID, c.Resource = &memoryID, map[string]string{"k8s.cluster.name": cluster} })
		h.settings.ID = id
		h.extensions = map[component.ID]component.Component{memoryID: extension}
		h.startWith(2)
		push(t, w, write(10, 5, 2)...)
		counted.Transfer(0, 10, 5, 2)
		drained(t, w.Path()) // its checkpoint is stored
		for _, rm := range h.shutdown().ResourceMetrics().All() {
			a := readAgent(t, rm)
			s := stream{a.resource["nixl.agent.name"], a.resource["k8s.cluster.name"], a.start}
			if n := a.int(transmitted); n < backend[s] {
				t.Errorf("%v decreases from %d to %d", s, backend[s], n)
			} else {
				backend[s] = n
			}
		}
	}
	got := make(map[string]int64)
	for s, n := range backend {
		got[s.agent+" "+s.cluster] += n
	}
	want := map[string]int64{"ring east": 10, "ring west": 20, "store east": 10, "store west": 20}
	if d := cmp.Diff(want, got); d != "" || len(backend) != len(want) {
		t.Errorf("streams are %v; bytes (-want +got)\n%s", backend, d)
	}
}
