// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
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
	w.Transfer(ctx, agent.Transmit, 1, us, us)
	w.Error(ctx, semconv.ErrorBackend)
	w.Transfer(ctx, agent.Transmit, 1, us, us) // there is room for three of its four events
	for range 3 {
		w.MemoryRegistered(ctx, 1)
	}
	must.OK(t, w.Flush()) // 8 staged events and the report of 4 drops, for 7 slots
	var types []ringbuf.Type
	for _, e := range events(t, dir, "a") {
		types = append(types, e.Type)
	}
	if d := cmp.Diff([]ringbuf.Type{
		ringbuf.TypeXferPostTime, ringbuf.TypeXferTime, ringbuf.TypeTxBytes, ringbuf.TypeTxRequests,
		ringbuf.TypeErrBackend, ringbuf.TypeMemoryRegistered, ringbuf.TypeMemoryRegistered,
	}, types); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	want := agent.RingTelemetry{Written: 7, DroppedStaging: 4, DroppedRing: 2}
	if got := w.RingTelemetry(); got != want {
		t.Errorf("RingTelemetry: %+v, want %+v", got, want)
	}
	w.Transfer(ctx, agent.Transmit, 1, us, us)
	for range 5 {
		w.Error(ctx, semconv.ErrorBackend)
	}
	must.OK(t, w.Flush())
	got := events(t, dir, "a")
	if last := got[len(got)-1]; len(got) != 7 || last.Type != ringbuf.TypeErrBackend {
		t.Errorf("%d events, the last %+v", len(got), last)
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
		"capacity":         {"a", dir, agent.WithCapacity(1 << 30), "", "capacity is 1073741824: it must be a power of two from 2 to 262144"},
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
		if want := "a running agent writes to it"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", path, err, want)
		}
	}
	if got := events(t, dir, "a"); len(got) != 1 {
		t.Errorf("the first agent's ring has %d events, want 1", len(got))
	}
	must.OK(t, first.Close())
	must.OK(t, newRingAgent(t, filepath.Join(other, "link"), "a").Close())
}

// Another process that created an agent of the same name would reset the ring.
func TestProcessesDoNotShareARing(t *testing.T) {
	const variable = "AGENT_TEST_RING"
	if dir := os.Getenv(variable); dir != "" { // the other process
		_, err := agent.New("a", agent.WithRing(dir))
		fmt.Println("error:", err)
		os.Exit(0) // without Close
	}
	dir := t.TempDir()
	first := newRingAgent(t, dir, "a")
	first.MemoryRegistered(ctx, 1)
	must.OK(t, first.Flush())
	other := func() string {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProcessesDoNotShareARing$")
		cmd.Env = append(os.Environ(), variable+"="+dir)
		out, err := cmd.CombinedOutput()
		must.OK(t, err)
		return string(out)
	}
	if got, want := other(), "a running agent writes to it"; !strings.Contains(got, want) {
		t.Errorf("the other process printed %q, want %q", got, want)
	}
	if got := events(t, dir, "a"); len(got) != 1 {
		t.Errorf("the ring has %d events, want 1", len(got))
	}
	must.OK(t, first.Close())
	for range 2 { // the second time, after a process that ended without Close
		if got := other(); !strings.Contains(got, "error: <nil>") {
			t.Errorf("after Close, the other process printed %q", got)
		}
	}
}

// Layout V1 is the only one that has names.
func TestRingOfLayoutV1HasEventsWithNames(t *testing.T) {
	dir, errs := t.TempDir(), metrictest.Handled(t)
	w := newRingAgent(t, dir, "v1", agent.WithLayout(ringbuf.V1))
	w.Event(ctx, ringbuf.CategoryBackend, "ucx_retries", 3)
	w.Event(ctx, ringbuf.CategoryTransfer, "mine", 1)
	must.OK(t, w.Flush())
	want := []ringbuf.Event{
		ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "ucx_retries", 3), ringbuf.NewNamedEvent(ringbuf.CategoryCustom, "mine", 1),
	}
	if d := cmp.Diff(want, events(t, dir, "v1"), cmpopts.IgnoreFields(ringbuf.Event{}, "TimestampMicros")); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	v4 := newRingAgent(t, dir, "v4")
	for range 2 {
		v4.Event(ctx, ringbuf.CategoryBackend, "ucx_retries", 3)
	}
	must.OK(t, v4.Flush())
	if got := v4.RingTelemetry(); got != (agent.RingTelemetry{DroppedRing: 2}) {
		t.Errorf("RingTelemetry: %+v", got)
	}
	if got := errs(); len(got) != 1 || !strings.Contains(got[0], "use agent.WithLayout(ringbuf.V1)") {
		t.Errorf("errors %q, want one", got)
	}
}

func TestEnvironmentTurnsTheRingOffAsInNIXL(t *testing.T) {
	for value, on := range map[string]bool{"": true, "y": true, "ON": true, "n": false, "0": false} {
		t.Setenv("NIXL_TELEMETRY_ENABLE", value)
		dir := t.TempDir()
		w := newRingAgent(t, dir, "a")
		do(w)
		must.OK(t, w.Close())
		if _, err := os.Stat(filepath.Join(dir, "a")); (err == nil) != on {
			t.Errorf("%q: ring %v, want %v", value, err, on)
		}
	}
}

// Events that several sinks lose count once, like those that staging drops, which no sink receives. Other sinks receive the
// rest, and the number of events that staging dropped.
func TestEventsThatAreNotWrittenAreCountedAsDropped(t *testing.T) {
	b := newBackend()
	errDisk := errors.New("disk full")
	var written []sink.Event
	broken := sink.Func(func([]sink.Event) error { return errDisk })
	kept := sink.Func(func(events []sink.Event) error { written = append(written, events...); return nil })
	a := b.agent(t, agent.WithSinks(broken, broken, kept), agent.WithRunInterval(time.Hour), agent.WithCapacity(2))
	for i := range 3 {
		a.MemoryRegistered(ctx, int64(i))
	}
	if err := a.Flush(); !errors.Is(err, errDisk) {
		t.Errorf("Flush: %v", err)
	}
	a.MemoryRegistered(ctx, 3)
	if err := a.Close(); !errors.Is(err, errDisk) {
		t.Errorf("Close: %v", err)
	}
	event := func(c ringbuf.Category, name string, value uint64) sink.Event {
		return sink.Event{Agent: "a", Time: time.Now(), Category: c, Name: name, Value: value}
	}
	want := []sink.Event{
		event(ringbuf.CategoryMemory, "agent_memory_registered", 0), event(ringbuf.CategoryMemory, "agent_memory_registered", 1),
		event(ringbuf.CategorySystem, "agent_telemetry_events_dropped", 1), event(ringbuf.CategoryMemory, "agent_memory_registered", 3),
	}
	if d := cmp.Diff(want, written, cmpopts.EquateApproxTime(must.Patience)); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if d := cmp.Diff(agent.RingTelemetry{DroppedStaging: 1, DroppedSinks: 3}, a.RingTelemetry()); d != "" {
		t.Errorf("RingTelemetry (-want +got):\n%s", d)
	}
	got := b.all(t)
	if d := cmp.Diff([]float64{6, 4}, []float64{got["nixl.memory.registered{}"], got["nixl.telemetry.events.dropped{}"]}); d != "" {
		t.Errorf("bytes registered and events dropped (-want +got):\n%s", d)
	}
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
	broken := sink.Func(func([]sink.Event) error { return errors.New("disk full") })
	a, closed := newBackend().agent(t, agent.WithSinks(broken), agent.WithRunInterval(time.Millisecond)), make(chan error, 1)
	metrictest.Handle(t, func(error) { closed <- a.Close() })
	a.MemoryRegistered(ctx, 1)
	select {
	case err := <-closed:
		must.OK(t, err)
	case <-time.After(must.Patience):
		t.Fatal("Close waits for the error handler")
	}
}
