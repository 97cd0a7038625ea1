// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// events drains an agent's ring.
func events(t *testing.T, dir, name string) (list []ringbuf.Event) {
	t.Helper()
	reader, err := ringbuf.OpenReader(filepath.Join(dir, name), ringbuf.Consume)
	must.OK(t, err)
	defer reader.Close()
	_, err = reader.Read(0, func(b ringbuf.Batch) {
		for i := range b.Len() {
			list = append(list, b.Event(i))
		}
	})
	must.OK(t, err)
	must.OK(t, reader.Commit())
	return list
}

// newRingAgent returns an agent with a ring in dir that is only flushed explicitly.
func newRingAgent(t *testing.T, dir, name string, opts ...agent.Option) *agent.Agent {
	t.Helper()
	return newAgent(t, name, append([]agent.Option{agent.WithRing(dir), agent.WithRunInterval(time.Hour)}, opts...)...)
}

func TestRingHasTheEventsOfANIXLAgentInOrder(t *testing.T) {
	dir := t.TempDir()
	w := newRingAgent(t, dir, "worker 0", agent.WithCapacity(64))
	w.MemoryRegistered(ctx, 1<<20)
	w.Transfer(ctx, agent.Transmit, 4096, 15*us, 120*us)
	w.Transfer(ctx, agent.Receive, 8192, 1500*time.Nanosecond, 3*us)
	w.Error(ctx, semconv.ErrorNoTelemetry)
	w.EventsDropped(ctx, 3)
	w.MemoryDeregistered(ctx, 1<<20)
	if got := events(t, dir, "worker 0"); len(got) != 0 {
		t.Errorf("%d events are in the ring before the flush", len(got))
	}
	must.OK(t, w.Flush())
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
	if d := cmp.Diff(want, events(t, dir, "worker 0")); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if got, want := w.RingTelemetry(), (agent.RingTelemetry{Written: 12}); got != want {
		t.Errorf("RingTelemetry: %+v, want %+v", got, want)
	}
}

// The events of a transfer are staged or dropped together. The ring reports the
// events that staging dropped, but not those that didn't fit into the ring.
func TestRingDropsAsANIXLAgentDoes(t *testing.T) {
	dir := t.TempDir()
	w := newRingAgent(t, dir, "a", agent.WithCapacity(8))
	for range 3 {
		w.Transfer(ctx, agent.Transmit, 1, us, us)
	}
	w.Error(ctx, semconv.ErrorBackend) // is dropped, too
	must.OK(t, w.Flush())              // 8 staged events and the report of 5 drops, for 7 slots
	got := events(t, dir, "a")
	if len(got) != 7 || got[6].Type != ringbuf.TypeTxBytes {
		t.Errorf("%d events in the ring: %+v", len(got), got)
	}
	want := agent.RingTelemetry{Written: 7, DroppedStaging: 5, DroppedRing: 2}
	if got := w.RingTelemetry(); got != want {
		t.Errorf("RingTelemetry: %+v, want %+v", got, want)
	}
	w.Transfer(ctx, agent.Transmit, 1, us, us)
	for range 5 {
		w.Error(ctx, semconv.ErrorBackend)
	}
	must.OK(t, w.Flush())
	got = events(t, dir, "a")
	if last := got[len(got)-1]; len(got) != 7 || last.Type != ringbuf.TypeErrBackend {
		t.Errorf("%d events, the last %+v", len(got), last)
	}
}

// Events that staging dropped are missing in sinks, but not in the metrics.
func TestEventsDroppedByStagingAreCounted(t *testing.T) {
	var got []sink.Event
	b := newBackend()
	w := b.agent(t, agent.WithCapacity(8), agent.WithRunInterval(time.Hour), agent.WithSinks(sink.Func(func(e []sink.Event) error { got = append(got, e...); return nil })))
	for range 3 {
		w.Transfer(ctx, agent.Transmit, 1, us, us)
	}
	must.OK(t, w.Flush())
	if last := got[len(got)-1]; len(got) != 9 || last.Name != "agent_telemetry_events_dropped" || last.Value != 4 || last.Time.Before(got[0].Time) {
		t.Errorf("%d events, the last %+v", len(got), last)
	}
	values := b.values(t)
	if n := values["nixl.telemetry.events.dropped{}"]; n != 4 {
		t.Errorf("nixl.telemetry.events.dropped is %v, want 4", n)
	}
	if n := values["nixl.transfer.requests{nixl.transfer.direction=transmit}"]; n != 3 {
		t.Errorf("%v requests, want 3", n)
	}
}

func TestEventsAreFlushedOnTheRunIntervalAndOnClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, start := t.TempDir(), time.Now()
		var got []sink.Event
		w := newRingAgent(t, dir, "a", agent.WithRunInterval(time.Second),
			agent.WithSinks(sink.Func(func(e []sink.Event) error { got = append(got, e...); return nil })))
		w.MemoryRegistered(ctx, 1)
		time.Sleep(time.Second) // synctest
		synctest.Wait()
		want := []sink.Event{{Agent: "a", Time: start.Local(), Category: ringbuf.CategoryMemory, Name: "agent_memory_registered", Value: 1}}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("events (-want +got):\n%s", d)
		}
		if got := events(t, dir, "a"); len(got) != 1 {
			t.Errorf("%d events in the ring, want 1", len(got))
		}
		w.MemoryDeregistered(ctx, 2)
		must.OK(t, w.Close())
		if got := events(t, dir, "a"); len(got) != 1 || got[0].Value != 2 {
			t.Errorf("after Close the ring has %+v", got)
		}
		if len(got) != 2 {
			t.Errorf("after Close the sink has %+v", got)
		}
	})
}

func TestRingDefaultsComeFromTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("NIXL_TELEMETRY_DIR", dir)
	t.Setenv("NIXL_TELEMETRY_BUFFER_SIZE", "16")
	t.Setenv("NIXL_TELEMETRY_RUN_INTERVAL", "1")
	newAgent(t, "a", agent.WithRing(""))
	reader, err := ringbuf.OpenReader(filepath.Join(dir, "a"), ringbuf.Observe)
	must.OK(t, err)
	defer reader.Close()
	if reader.Capacity() != 16 || reader.Layout() != ringbuf.V4 {
		t.Errorf("capacity %d, layout %v", reader.Capacity(), reader.Layout())
	}
}

func TestInvalidRingIsRejected(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "file"), []byte("not a ring, and long enough to tell"), 0o600))
	for name, c := range map[string]struct {
		agent, dir string
		opt        agent.Option
		size, want string // size in the environment
	}{
		"no directory":     {"a", filepath.Join(dir, "none"), nil, "", "create ring " + filepath.Join(dir, "none", "a")},
		"another file":     {"file", dir, nil, "", "not a NIXL telemetry ring"},
		"capacity":         {"a", dir, agent.WithCapacity(1 << 30), "", "capacity is 1073741824: it must be a power of two from 2 to 4194304"},
		"capacity below 0": {"a", dir, agent.WithCapacity(-1), "", "capacity is -1: "},
		"run interval":     {"a", dir, agent.WithRunInterval(-1), "", "run interval is -1ns"},
		"nil sink":         {"a", dir, agent.WithSinks(nil), "", "a sink is nil"},
		"another provider": {"a", dir, agent.WithMeterProvider(newBackend().provider), "", "WithRing and WithMeterProvider can't be combined"},
		"in env":           {"a", dir, nil, "x", "NIXL_TELEMETRY_BUFFER_SIZE=x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NIXL_TELEMETRY_BUFFER_SIZE", c.size)
			opts := []agent.Option{agent.WithRing(c.dir)}
			if c.opt != nil {
				opts = append(opts, c.opt)
			}
			a, err := agent.New(c.agent, opts...)
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

func TestAgentConcurrentSafe(t *testing.T) {
	b := newBackend()
	for name, a := range map[string]*agent.Agent{
		"MeterProvider": b.agent(t),
		"ring":          newAgent(t, "b", agent.WithRing(t.TempDir()), agent.WithRunInterval(time.Millisecond)),
	} {
		t.Run(name, func(t *testing.T) { testConcurrentSafe(t, a, b) })
	}
	const n = goroutines * each
	got := b.values(t)
	for key, want := range map[string]float64{
		"nixl.transfer.requests{nixl.transfer.direction=receive}": n / 2,
		"nixl.transfer.duration{}":                                n,
		"nixl.memory.usage{}":                                     n,
		"nixl.errors{error.type=backend}":                         n,
		"nixl.transfer.io{nixl.transfer.direction=transmit}":      goroutines / 2 * each * (each - 1) / 2,
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
}

const goroutines, each = 8, 500

func testConcurrentSafe(t *testing.T, a *agent.Agent, b *backend) {
	t.Helper()
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				a.Transfer(ctx, agent.Direction(g%2), int64(i), us, 2*us)
				a.MemoryRegistered(ctx, 2)
				a.MemoryDeregistered(ctx, 1)
				a.Error(ctx, semconv.ErrorBackend)
				a.EventsDropped(ctx, 0)
			}
		})
	}
	for range 20 {
		b.values(t)
		must.OK(t, a.Flush())
	}
	wg.Wait()
}

// A ring has one writer, however its path is spelled.
func TestOpenAgentsDoNotShareARing(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	first := newRingAgent(t, dir, "a")
	first.MemoryRegistered(ctx, 1)
	must.OK(t, first.Flush())
	must.OK(t, os.Symlink(dir, filepath.Join(other, "link")))
	must.OK(t, os.Link(filepath.Join(dir, "a"), filepath.Join(other, "b")))
	t.Chdir(dir)
	for _, path := range []string{dir + "/a", "./a", other + "/link/a", other + "/b"} {
		_, err := agent.New(filepath.Base(path), agent.WithRing(filepath.Dir(path)))
		if want := "an open agent of this process writes to it as " + filepath.Join(dir, "a"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", path, err, want)
		}
	}
	if got := events(t, dir, "a"); len(got) != 1 {
		t.Errorf("the first agent's ring has %d events, want 1", len(got))
	}
	must.OK(t, first.Close())
	must.OK(t, newRingAgent(t, filepath.Join(other, "link"), "a").Close())
}

// Events that several sinks lose count once. Other sinks receive them.
func TestEventsThatASinkDoesNotWriteAreCountedAsDropped(t *testing.T) {
	b := newBackend()
	errDisk, written := errors.New("disk full"), counter{}
	broken := sink.Func(func([]sink.Event) error { return errDisk })
	a := b.agent(t, agent.WithSinks(broken, broken, &written), agent.WithRunInterval(time.Hour))
	a.MemoryRegistered(ctx, 1)
	a.MemoryRegistered(ctx, 2)
	if err := a.Flush(); !errors.Is(err, errDisk) {
		t.Errorf("Flush: %v", err)
	}
	a.MemoryRegistered(ctx, 3)
	if err := a.Close(); !errors.Is(err, errDisk) {
		t.Errorf("Close: %v", err)
	}
	if got := a.RingTelemetry(); got != (agent.RingTelemetry{DroppedSinks: 3}) || written.events.Load() != 3 {
		t.Errorf("RingTelemetry: %+v; the other sink has %d events", got, written.events.Load())
	}
	b.expect(t, map[string]float64{"nixl.memory.registered{}": 6, "nixl.telemetry.events.dropped{}": 3})
}

// A file that becomes shorter than the ring would crash the program, because the ring is mapped.
// The error handler gets the error once.
func TestRingThatShrinksIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs, dir := metrictest.Handled(t), t.TempDir()
		a := newRingAgent(t, dir, "a", agent.WithRunInterval(time.Second))
		must.OK(t, os.Truncate(filepath.Join(dir, "a"), 0))
		for range 3 {
			a.MemoryRegistered(ctx, 1)
			time.Sleep(3 * time.Second) // synctest
		}
		if got := errs(); len(got) != 1 || !strings.Contains(got[0], "telemetry of agent a: ring "+filepath.Join(dir, "a")) {
			t.Errorf("reported %q, want one error", got)
		}
		a.MemoryRegistered(ctx, 1)
		if err := a.Flush(); !errors.Is(err, ringbuf.ErrShrunk) {
			t.Errorf("Flush: %v", err)
		}
		must.OK(t, a.Close())
		if got := a.RingTelemetry(); got != (agent.RingTelemetry{DroppedRing: 4}) {
			t.Errorf("RingTelemetry: %+v", got)
		}
	})
}

func TestErrorHandlerMayCloseTheAgent(t *testing.T) {
	before := otel.GetErrorHandler()
	defer otel.SetErrorHandler(before)
	broken := sink.Func(func([]sink.Event) error { return errors.New("disk full") })
	a, closed := newBackend().agent(t, agent.WithSinks(broken), agent.WithRunInterval(time.Millisecond)), make(chan error)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) { closed <- a.Close() }))
	a.MemoryRegistered(ctx, 1)
	select {
	case err := <-closed:
		must.OK(t, err)
	case <-time.After(must.Patience):
		t.Fatal("Close waits for the error handler")
	}
}
