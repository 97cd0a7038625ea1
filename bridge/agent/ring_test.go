// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// ringOf returns a ring in a temporary directory that is only flushed explicitly.
func ringOf(t *testing.T, layout ringbuf.Layout, capacity int) agent.Ring {
	t.Helper()
	return agent.Ring{Dir: t.TempDir(), Layout: layout, Capacity: capacity, RunInterval: time.Hour}
}

// events drains an agent's ring.
func events(t *testing.T, r agent.Ring, name string) []ringbuf.Event {
	t.Helper()
	reader, err := ringbuf.OpenReader(filepath.Join(r.Dir, name), ringbuf.Consume)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	list := make([]ringbuf.Event, r.Capacity)
	n, err := reader.ReadInto(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Commit(); err != nil {
		t.Fatal(err)
	}
	return list[:n]
}

// newRingAgent returns an agent that reports through a ring.
func newRingAgent(t *testing.T, name string, opts ...agent.Option) *agentWorld {
	t.Helper()
	w := &agentWorld{backend: newBackend()}
	a, err := agent.New(name, append(opts, agent.WithClock(w.clock.Now))...)
	if err != nil {
		t.Fatal(err)
	}
	w.Agent = a
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return w
}

func flush(t *testing.T, w *agentWorld) {
	t.Helper()
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

func TestRingHasTheEventsOfANIXLAgentInOrder(t *testing.T) {
	r := ringOf(t, ringbuf.V4, 64)
	w := newRingAgent(t, "worker 0", agent.WithRing(r))
	w.MemoryRegistered(ctx, 1<<20)
	w.Transfer(ctx, agent.Transmit, 4096, 15*us, 120*us)
	w.Transfer(ctx, agent.Receive, 8192, 1500*time.Nanosecond, 3*us)
	w.Error(ctx, agent.StatusNoTelemetry)
	w.Event(ctx, agent.EventBackend, "not in this layout", 1)
	w.EventsDropped(ctx, 3)
	w.MemoryDeregistered(ctx, 1<<20)
	if got := events(t, r, "worker 0"); len(got) != 0 {
		t.Errorf("%d events are in the ring before the flush", len(got))
	}
	flush(t, w)
	want := []ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 1<<20),
		ringbuf.NewEvent(ringbuf.TypeXferPostTime, 15),
		ringbuf.NewEvent(ringbuf.TypeXferTime, 120),
		ringbuf.NewEvent(ringbuf.TypeTxBytes, 4096),
		ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
		ringbuf.NewEvent(ringbuf.TypeXferPostTime, 1),
		ringbuf.NewEvent(ringbuf.TypeXferTime, 3),
		ringbuf.NewEvent(ringbuf.TypeRxBytes, 8192),
		ringbuf.NewEvent(ringbuf.TypeRxRequests, 1),
		ringbuf.NewEvent(ringbuf.TypeErrNoTelemetry, 1),
		ringbuf.NewEvent(ringbuf.TypeEventsDropped, 3),
		ringbuf.NewEvent(ringbuf.TypeMemoryDeregistered, 1<<20),
	}
	if d := cmp.Diff(want, events(t, r, "worker 0")); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if got, want := w.RingTelemetry(), (agent.RingTelemetry{Written: 12, Unsupported: 1}); got != want {
		t.Errorf("RingTelemetry: %+v, want %+v", got, want)
	}
}

// Layout V1 has no event for drops.
func TestRingOfLayoutV1HasNamesAndTimes(t *testing.T) {
	r := ringOf(t, ringbuf.V1, 64)
	w := newRingAgent(t, "a", agent.WithRing(r))
	w.Event(ctx, agent.EventBackend, "ucx_am_messages", 7)
	w.EventsDropped(ctx, 1)
	w.clock.Advance(time.Second)
	w.Error(ctx, agent.StatusBackend)
	flush(t, w)
	at := uint64(start.UnixMicro())
	want := []ringbuf.Event{
		{TimestampMicros: at, Category: ringbuf.CategoryBackend, Named: true, Name: ringbuf.MakeName("ucx_am_messages"), Value: 7},
		{TimestampMicros: at + 1e6, Category: ringbuf.CategoryError, Named: true, Name: ringbuf.MakeName("NIXL_ERR_BACKEND"), Value: 1},
	}
	if d := cmp.Diff(want, events(t, r, "a")); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

// The events of a transfer are staged or dropped together. The ring reports the
// events that staging dropped, but not those that didn't fit into the ring.
func TestRingDropsAsANIXLAgentDoes(t *testing.T) {
	r := ringOf(t, ringbuf.V4, 8)
	w := newRingAgent(t, "a", agent.WithRing(r))
	for range 3 {
		w.Transfer(ctx, agent.Transmit, 1, us, us)
	}
	w.Error(ctx, agent.StatusBackend) // is dropped, too
	flush(t, w)                       // 8 staged events and the report of 5 drops, for 7 slots
	got := events(t, r, "a")
	if len(got) != 7 || got[6].Type != ringbuf.TypeTxBytes {
		t.Errorf("%d events in the ring: %+v", len(got), got)
	}
	want := agent.RingTelemetry{Written: 7, DroppedStaging: 5, DroppedRing: 2}
	if got := w.RingTelemetry(); got != want {
		t.Errorf("RingTelemetry: %+v, want %+v", got, want)
	}
	w.Transfer(ctx, agent.Transmit, 1, us, us)
	for range 5 {
		w.Error(ctx, agent.StatusBackend)
	}
	flush(t, w)
	got = events(t, r, "a")
	if last := got[len(got)-1]; len(got) != 7 || last.Type != ringbuf.TypeErrBackend {
		t.Errorf("%d events, the last %+v", len(got), last)
	}
}

// Events that staging dropped are missing in sinks, but not in the metrics.
func TestEventsDroppedByStagingAreCounted(t *testing.T) {
	t.Setenv("NIXL_TELEMETRY_BUFFER_SIZE", "8")
	t.Setenv("NIXL_TELEMETRY_RUN_INTERVAL", "3600000")
	var got []sink.Event
	w := newAgent(t, agent.WithSinks(sink.Func(func(e []sink.Event) error { got = append(got, e...); return nil })))
	for range 3 {
		w.Transfer(ctx, agent.Transmit, 1, us, us)
	}
	flush(t, w)
	if last := got[len(got)-1]; len(got) != 9 || last.Name != "agent_telemetry_events_dropped" || last.Value != 4 {
		t.Errorf("%d events, the last %+v", len(got), last)
	}
	values := w.values(t)
	if n := values["nixl.telemetry.events.dropped{}"]; n != 4 {
		t.Errorf("nixl.telemetry.events.dropped is %v, want 4", n)
	}
	if n := values["nixl.transfer.requests{nixl.transfer.direction=transmit}"]; n != 3 {
		t.Errorf("%v requests, want 3", n)
	}
}

func TestEventsAreFlushedOnTheRunIntervalAndOnClose(t *testing.T) {
	r := ringOf(t, ringbuf.V4, 8)
	r.RunInterval = time.Millisecond
	batches := make(chan []sink.Event, 1)
	w := newRingAgent(t, "a", agent.WithRing(r), agent.WithSinks(sink.Func(func(e []sink.Event) error {
		batches <- append([]sink.Event(nil), e...)
		return nil
	})))
	w.MemoryRegistered(ctx, 1)
	want := []sink.Event{{Agent: "a", Time: start.Local(), Category: ringbuf.CategoryMemory, Name: "agent_memory_registered", Value: 1}}
	if d := cmp.Diff(want, <-batches); d != "" {
		t.Errorf("batch (-want +got):\n%s", d)
	}
	if got := events(t, r, "a"); len(got) != 1 {
		t.Errorf("%d events in the ring, want 1", len(got))
	}
	w.MemoryDeregistered(ctx, 2)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := events(t, r, "a"); len(got) != 1 || got[0].Value != 2 {
		t.Errorf("after Close the ring has %+v", got)
	}
	if got := <-batches; len(got) != 1 {
		t.Errorf("after Close the sink has %+v", got)
	}
}

func TestFailingSinkDoesNotAffectTheRingAndOtherSinks(t *testing.T) {
	errDisk := errors.New("disk is full")
	r := ringOf(t, ringbuf.V4, 8)
	var got []sink.Event
	w := newRingAgent(t, "a", agent.WithRing(r), agent.WithSinks(
		sink.Func(func([]sink.Event) error { return errDisk }),
		sink.Func(func(e []sink.Event) error { got = append(got, e...); return nil }),
	))
	w.MemoryRegistered(ctx, 1)
	if err := w.Flush(); !errors.Is(err, errDisk) {
		t.Errorf("Flush: %v", err)
	}
	if len(got) != 1 || w.RingTelemetry().Written != 1 {
		t.Errorf("the other sink has %d, the ring %+v", len(got), w.RingTelemetry())
	}
}

func TestRingDefaultsComeFromTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("NIXL_TELEMETRY_DIR", dir)
	t.Setenv("NIXL_TELEMETRY_BUFFER_SIZE", "16")
	t.Setenv("NIXL_TELEMETRY_RUN_INTERVAL", "1")
	newRingAgent(t, "a", agent.WithRing(agent.Ring{}))
	reader, err := ringbuf.OpenReader(filepath.Join(dir, "a"), ringbuf.Observe)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if reader.Capacity() != 16 || reader.Layout() != ringbuf.V4 {
		t.Errorf("capacity %d, layout %v", reader.Capacity(), reader.Layout())
	}
}

func TestInvalidRingIsRejected(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("not a ring, and long enough to tell"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		agent string
		ring  agent.Ring
		env   [2]string
		want  string
	}{
		"no directory":       {"a", agent.Ring{Dir: filepath.Join(dir, "none")}, [2]string{}, "create ring " + filepath.Join(dir, "none", "a")},
		"another file":       {"file", agent.Ring{Dir: dir}, [2]string{}, "not a NIXL telemetry ring"},
		"capacity":           {"a", agent.Ring{Dir: dir, Capacity: 12}, [2]string{}, "capacity is 12: "},
		"capacity below 0":   {"a", agent.Ring{Dir: dir, Capacity: -1}, [2]string{}, "capacity is -1: "},
		"capacity of 1":      {"a", agent.Ring{Dir: dir, Capacity: 1}, [2]string{}, "capacity is 1: "},
		"capacity too large": {"a", agent.Ring{Dir: dir, Capacity: 1 << 50}, [2]string{}, "from 2 to 4194304"},
		"run interval":       {"a", agent.Ring{Dir: dir, RunInterval: -1}, [2]string{}, "run interval is -1ns"},
		"buffer size in env": {"a", agent.Ring{Dir: dir}, [2]string{"NIXL_TELEMETRY_BUFFER_SIZE", "x"}, "NIXL_TELEMETRY_BUFFER_SIZE=x"},
		"too large in env":   {"a", agent.Ring{Dir: dir}, [2]string{"NIXL_TELEMETRY_BUFFER_SIZE", "1073741824"}, "from 2 to 4194304"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.env[0] != "" {
				t.Setenv(c.env[0], c.env[1])
			}
			a, err := agent.New(c.agent, agent.WithRing(c.ring))
			if err == nil {
				t.Fatal("no error", a.Close())
			}
			if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "agent "+c.agent) {
				t.Errorf("error %q, want one with %q", err, c.want)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a ring file exists: %v", err)
	}
}

func TestNilSinkIsRejected(t *testing.T) {
	_, err := agent.New("a", agent.WithSinks(sink.Func(func([]sink.Event) error { return nil }), nil))
	if err == nil || err.Error() != "agent a: a sink is nil" {
		t.Errorf("the error is %v", err)
	}
}

func TestAgentConcurrentSafe(t *testing.T) {
	for name, w := range map[string]*agentWorld{
		"producer": newAgent(t),
		"ring":     newRingAgent(t, "b", agent.WithRing(agent.Ring{Dir: t.TempDir(), RunInterval: time.Millisecond})),
	} {
		t.Run(name, func(t *testing.T) { testConcurrentSafe(t, w) })
	}
}

func testConcurrentSafe(t *testing.T, w *agentWorld) {
	t.Helper()
	const goroutines, each = 8, 500
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				w.Transfer(ctx, agent.Direction(g%2), int64(i), us, 2*us)
				w.With(attribute.NewSet(attribute.Int("peer", i%3))).Transfer(ctx, agent.Transmit, 1, us, us)
				w.MemoryRegistered(ctx, 2)
				w.MemoryDeregistered(ctx, 1)
				w.Error(ctx, agent.StatusBackend)
				w.Event(ctx, agent.EventCustom, fmt.Sprint(i%3), 1)
				w.EventsDropped(ctx, 0)
			}
		})
	}
	for range 20 {
		w.values(t)
		if err := w.Flush(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	got := w.values(t)
	if len(got) == 0 {
		return // it reports through the ring
	}
	for key, want := range map[string]float64{
		"nixl.transfer.requests{nixl.transfer.direction=receive}":         goroutines * each / 2,
		"nixl.transfer.requests{nixl.transfer.direction=transmit,peer=2}": goroutines * (each / 3),
		"nixl.transfer.duration{}":                                        goroutines * each,
		"nixl.memory.usage{}":                                             goroutines * each,
		"nixl.errors{error.type=backend}":                                 goroutines * each,
		"nixl.transfer.io{nixl.transfer.direction=transmit}":              goroutines / 2 * each * (each - 1) / 2,
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
}
