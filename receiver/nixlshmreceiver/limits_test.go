// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

func TestExitedAgentIsReportedUntilStaleAfterAndIdleAgentForever(t *testing.T) {
	t.Parallel() // it waits for the next check of the directory
	dir := t.TempDir()
	exited, idle := ring(t, dir, "exited", ringbuf.V4, 16), ring(t, dir, "idle", ringbuf.V4, 16)
	push(t, exited, write(7, 1, 1)...)
	push(t, idle, write(8, 1, 1)...)
	must.OK(t, exited.Close())
	h := newHarness(t, dir, often, func(c *Config) {
		c.StaleAfter = time.Minute
		c.Metrics.NixlAgentUp.Enabled = true
	})
	clock := newClock()
	h.on.now = clock.now
	h.start()
	first := h.until(func(all agents) bool {
		return all["exited"].int(transmitted) == 7 && all["idle"].int(transmitted) == 8 &&
			all["exited"].points["nixl.agent.up"] == int64(0)
	})
	h.next() // delivers the one before

	clock.pass(2 * time.Minute)
	h.log("info: ", "agent exited and wrote nothing for 1m0s", exited.Path())
	h.until(func(all agents) bool { return all["exited"] == nil && all["idle"].int(transmitted) == 8 })

	// Its totals start at zero, with a new start time.
	clock.pass(time.Minute)
	push(t, ring(t, dir, "exited", ringbuf.V4, 16), write(9, 1, 1)...)
	again := h.until(func(all agents) bool { return all["exited"].int(transmitted) > 0 })["exited"]
	if got := again.int(transmitted); got != 9 {
		t.Errorf("%d bytes transmitted after it came back, want 9", got)
	}
	if got := again.start.AsTime().Sub(first["exited"].start.AsTime()); got != 3*time.Minute {
		t.Errorf("points start %v after the earlier ones, want 3m", got)
	}
	if again.resource["service.instance.id"] != first["exited"].resource["service.instance.id"] {
		t.Error("service.instance.id has changed")
	}
}

// The backend is down for longer than stale_after.
func TestExitedAgentsAreReportedOnceTheBackendIsBack(t *testing.T) {
	t.Parallel() // it waits for the next check of the directory
	dir := t.TempDir()
	exited := ring(t, dir, "exited", ringbuf.V4, 16)
	push(t, exited, write(7, 1, 1)...)
	must.OK(t, exited.Close())
	other := filepath.Join(dir, "other")
	h := newHarness(t, dir, often, func(c *Config) {
		c.StaleAfter, c.Directories = time.Minute, append(c.Directories, other)
	})
	var ahead atomic.Int64
	h.on.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	down := make(chan struct{})
	h.consume = backend(down)
	h.start()
	drained(t, exited.Path())
	h.log("telemetry directory can't be read", other)
	ahead.Store(int64(time.Hour))
	// Once this directory is found, the agent could have been retired.
	must.OK(t, os.Mkdir(other, 0o700))
	h.log("telemetry directory can be read now", other)
	close(down)
	if got := read(t, h.next())["exited"].int(transmitted); got != 7 {
		t.Errorf("%d bytes transmitted, want 7", got)
	}
	h.log("agent exited and wrote nothing", exited.Path())
}

func TestRingsBeyondMaxRingsAreRefused(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		ring(t, dir, name, ringbuf.V4, 16)
	}
	h := newHarness(t, dir, func(c *Config) { c.MaxRings = 2 }).start()
	h.log("error: ", "ring can't be opened", "the limit on the number of rings and stores is reached; raise max_rings")
	if all := read(t, h.next()); len(all) != 2 {
		t.Errorf("%d agents reported, want 2", len(all))
	}
}

func TestEventsBeyondMaxEventNamesCountAsOverflow(t *testing.T) {
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V1, 64)
	for i, name := range []string{"a", "b", "c", "d", "c"} {
		push(t, w, ringbuf.NewNamedEvent(ringbuf.CategoryCustom, name, uint64(10*(i+1))))
	}
	push(t, w, ringbuf.NewNamedEvent(ringbuf.CategoryPerformance, "e", 1), ringbuf.NewNamedEvent(99, "f", 1))
	push(t, w, write(1, 1, 1)...)

	const custom = "{nixl.event.category=custom,nixl.event.name="
	want := map[string]any{
		"nixl.events" + custom + "a}": int64(1), "nixl.event.value" + custom + "a}": int64(10), "nixl.event.last_value" + custom + "a}": int64(10),
		"nixl.events" + custom + "b}": int64(1), "nixl.event.value" + custom + "b}": int64(20), "nixl.event.last_value" + custom + "b}": int64(20),

		"nixl.events{otel.metric.overflow=true}":      int64(5),
		"nixl.event.value{otel.metric.overflow=true}": int64(30 + 40 + 50),

		// NIXL's own names don't count.
		"nixl.events{nixl.event.category=performance,nixl.event.name=agent_xfer_post_time}": int64(1),
		"nixl.events{nixl.event.category=performance,nixl.event.name=agent_xfer_time}":      int64(1),
		"nixl.events{nixl.event.category=transfer,nixl.event.name=agent_tx_bytes}":          int64(1),
		"nixl.events{nixl.event.category=transfer,nixl.event.name=agent_tx_requests_num}":   int64(1),
	}
	h := newHarness(t, dir).limitNames(2).start()
	if d := cmp.Diff(want, eventPoints(one(t, h.next()))); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestOverflowAloneHasTheMetricOfTheCatalog(t *testing.T) {
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V1, 64)
	push(t, w, ringbuf.NewNamedEvent(ringbuf.CategoryPerformance, "first", 1), ringbuf.NewNamedEvent(ringbuf.CategoryCustom, "second", 7))
	batch := newHarness(t, dir).limitNames(1).start().next()
	if got := one(t, batch).int("nixl.event.value{otel.metric.overflow=true}"); got != 7 {
		t.Errorf("the sum of values beyond the limit is %d, want 7", got)
	}
	want := semconv.EventValue
	want.Attributes, want.Conditional, want.Number, want.Note = nil, nil, 0, "" // not on points without names
	for _, m := range batch.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		if m.Name() != want.Name {
			continue
		}
		if d := cmp.Diff(want, written(t, m)); d != "" {
			t.Errorf("(-semconv +exported)\n%s", d)
		}
	}
}

func TestDisabledMetricsHaveNoOverflow(t *testing.T) {
	for _, c := range []struct{ events, value bool }{{true, false}, {false, true}, {false, false}} {
		dir := t.TempDir()
		w := ring(t, dir, "agent", ringbuf.V1, 64)
		push(t, w, ringbuf.NewNamedEvent(ringbuf.CategoryCustom, "a", 1), ringbuf.NewNamedEvent(ringbuf.CategoryCustom, "b", 1))
		h := newHarness(t, dir, func(cfg *Config) {
			cfg.Metrics.NixlEvents.Enabled, cfg.Metrics.NixlEventValue.Enabled = c.events, c.value
		}).limitNames(1).start()
		metrics := one(t, h.next()).metrics()
		if metrics["nixl.events"] != c.events || metrics["nixl.event.value"] != c.value {
			t.Errorf("events %v, value %v: metrics are %v", c.events, c.value, metrics)
		}
		h.shutdown()
	}
}

// eventPoints returns the points of the metrics about events.
func eventPoints(a *agent) map[string]any {
	points := make(map[string]any)
	for key, value := range a.points {
		if strings.HasPrefix(key, "nixl.event") {
			points[key] = value
		}
	}
	return points
}

func TestObserverChangesNoByteAndCountsNoEventTwice(t *testing.T) {
	dir, cases := copyRings(t)
	before := make(map[string][]byte)
	for _, c := range cases {
		before[c.Name] = contents(t, filepath.Join(dir, c.Name))
	}
	h := newHarness(t, dir, often, func(c *Config) {
		c.Mode, c.Include = ringbuf.Observe, []string{"**"}
	}).startWith(reportable(cases))
	h.until(func(all agents) bool { return len(all) == reportable(cases) })
	h.next()
	h.next()
	last := read(t, h.shutdown())
	for _, c := range cases {
		if !bytes.Equal(before[c.Name], contents(t, filepath.Join(dir, c.Name))) {
			t.Errorf("%s was changed", c.Name)
		}
		if !c.Reported() {
			continue
		}
		want, got := expect(&c), last[c.Name].points
		if d := cmp.Diff(want, got, nearly); d != "" {
			t.Errorf("%s (-its JSON +reported):\n%s", c.Name, d)
		}
	}
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must.OK(t, err)
	return b
}

func TestRingsOfOtherUsersAreRefused(t *testing.T) {
	dir := t.TempDir()
	push(t, ring(t, dir, "agent", ringbuf.V4, 16), write(1, 1, 1)...)
	me := int64(os.Geteuid())
	h := newHarness(t, dir, func(c *Config) { c.AllowedUIDs = []int64{me + 1} }).start()
	h.log("warn: ", "ring can't be opened", fmt.Sprintf("belongs to uid %d, which is not allowed", me))
	if h.shutdown().ResourceMetrics().Len() > 0 {
		t.Error("the ring of another user is reported")
	}
	h = newHarness(t, dir, func(c *Config) { c.AllowedUIDs = []int64{me + 1, me} }).start()
	if got := one(t, h.next()).int(transmitted); got != 1 {
		t.Errorf("%d bytes transmitted, want 1", got)
	}
}
