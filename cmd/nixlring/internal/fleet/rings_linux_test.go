// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/lab/storetest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// world is a directory, a source of its rings, and a clock.
type world struct {
	t      *testing.T
	dir    string
	now    time.Time
	source *Rings
}

func newWorld(t *testing.T, set ...func(*Config)) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), now: begin}
	cfg := Config{Directory: w.dir, Now: func() time.Time { return w.now }}
	for _, f := range set {
		f(&cfg)
	}
	var err error
	w.source, err = NewRings(cfg)
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, w.source.Close()) })
	return w
}

// next discovers rings, and returns the next frame, one second later.
func (w *world) next() *diagnose.Frame {
	w.t.Helper()
	w.now = w.now.Add(time.Second)
	if w.source.started {
		w.source.host.Refresh(w.t.Context())
	}
	f, err := w.source.Next(w.t.Context())
	must.OK(w.t, err)
	return f
}

// only returns the only agent of the next frame.
func (w *world) only() *diagnose.Agent {
	w.t.Helper()
	f := w.next()
	if len(f.Agents) != 1 {
		w.t.Fatalf("%d agents", len(f.Agents))
	}
	return &f.Agents[0]
}

func (w *world) ring(name string, layout ringbuf.Layout, capacity int) *ringbuf.Writer {
	w.t.Helper()
	ring, err := ringbuf.Create(filepath.Join(w.dir, name), layout, capacity)
	must.OK(w.t, err)
	w.t.Cleanup(func() { _ = ring.Close() })
	return ring
}

// push writes the events of transfers. Each takes a millisecond longer than the one before.
func push(t *testing.T, w *ringbuf.Writer, d tally.Direction, first, n int) {
	t.Helper()
	for i := range uint64(n) {
		for _, e := range []ringbuf.Event{
			ringbuf.NewEvent(ringbuf.TypeXferPostTime, 7), ringbuf.NewEvent(ringbuf.TypeXferTime, 1000*(uint64(first)+i)),
			ringbuf.NewEvent(ringbuf.TypeTxBytes+ringbuf.Type(d), 1<<20), ringbuf.NewEvent(ringbuf.TypeTxRequests+ringbuf.Type(d), 1),
		} {
			e.TimestampMicros = uint64(begin.UnixMicro())
			must.OK(t, w.Push(e))
		}
	}
}

// difference compares an agent with the expected one, except for its transfers and its start, and for histograms.
func difference(want, got *diagnose.Agent) string {
	return cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9), cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(diagnose.Agent{}),
		cmpopts.IgnoreFields(diagnose.Agent{}, "Start", "Times", "Sizes", "Transfers"))
}

func TestFramesHaveWhatAgentsWroteInAllLayouts(t *testing.T) {
	for _, layout := range ringbuf.Layouts() {
		t.Run(layout.String(), func(t *testing.T) {
			w := newWorld(t)
			ring := w.ring("a", layout, 1024)
			push(t, ring, tally.Transmit, 1, 4) // before the source starts
			memory := int64(1 << 30)
			want := diagnose.Agent{
				Identity: diagnose.Identity{ID: ring.Path(), Name: "a", Job: diagnose.Job{Service: w.dir}}, Path: ring.Path(), Layout: layout.String(),
				Moved: [2]diagnose.Moved{{Bytes: 4 << 20, Transfers: 4, Seconds: 0.01}}, Post: 4 * 7e-6, Errors: map[string]uint64{}, Events: 16, Memory: new(int64),
				Ring: &diagnose.Ring{Capacity: 1024, Peak: 16}, Before: 4, Remembered: [2]diagnose.Moved{{Bytes: 2 << 20, Transfers: 2, Seconds: 0.003}},
			}
			first := w.only()
			want.Up = first.Up // unknown if the file system doesn't support leases
			if diff := difference(&want, first); diff != "" || len(first.Transfers) != 0 {
				t.Errorf("first frame: %d transfers, %s", len(first.Transfers), diff)
			}
			push(t, ring, tally.Transmit, 5, 20)
			push(t, ring, tally.Receive, 100, 2)
			must.OK(t, ring.Push(ringbuf.NewEvent(ringbuf.TypeErrBackend, 1)))
			must.OK(t, ring.Push(ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 1<<30)))
			want.Moved = [2]diagnose.Moved{{Bytes: 24 << 20, Transfers: 24, Seconds: 0.3}, {Bytes: 2 << 20, Transfers: 2, Seconds: 0.201}}
			want.Up = diagnose.Yes // it wrote events
			want.Post, want.Events, want.Ring.Peak, want.Errors["backend"], want.Memory = 26*7e-6, 4*26+2, 4*26+2, 1, &memory
			a := w.only()
			if diff := difference(&want, a); diff != "" {
				t.Error(diff)
			}
			var took []float64
			for _, x := range a.Transfers {
				took = append(took, x.Took)
			}
			if diff := cmp.Diff([]float64{0.101, 0.100, 0.024, 0.023, 0.022, 0.021, 0.020, 0.019, 0.018, 0.017}, took); diff != "" {
				t.Fatalf("slowest transfers: %s", diff)
			}
			last := diagnose.Transfer{Time: w.now, Read: true, Receive: true, Bytes: 1 << 20, Took: 0.101, Post: 7e-6}
			if layout == ringbuf.V1 {
				last.Time, last.Read = begin, false
			}
			if diff := cmp.Diff(last, a.Transfers[0]); diff != "" {
				t.Error(diff)
			}
			if h := ringtest.ReadHeader(t, ring.Path()); h.ReadPos != 0 {
				t.Errorf("events were consumed: %+v", h)
			}
		})
	}
}

// What an agent does after the first frame isn't remembered by its ring, and is in the next frame.
func TestFirstTransferOfAnIdleAgentIsInAFrame(t *testing.T) {
	w := newWorld(t)
	ring := w.ring("a", ringbuf.V4, 64)
	w.next()
	push(t, ring, tally.Transmit, 1, 3)
	if a := w.only(); len(a.Transfers) != 3 || a.Before != 0 || a.Moved[0].Transfers != 3 {
		t.Errorf("%d transfers, %d before: %+v", len(a.Transfers), a.Before, a)
	}
}

func TestSlowTransfersAreAllInFrames(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Slow = 5 * time.Millisecond })
	ring := w.ring("a", ringbuf.V4, 1024)
	push(t, ring, tally.Transmit, 1, 10)
	if list := w.only().Transfers; len(list) != 5 || list[0].Took != 0.006 { // those that are in the ring, too
		t.Errorf("%+v", list)
	}
	push(t, ring, tally.Transmit, 1, 50)
	if list := w.only().Transfers; len(list) != 45+5 { // and the slowest of the others
		t.Errorf("%d transfers", len(list))
	}
}

func TestNewAgentIsInTheFrameAfterItsDiscovery(t *testing.T) {
	w := newWorld(t)
	if f := w.next(); len(f.Agents) != 0 {
		t.Errorf("%+v", f.Agents)
	}
	push(t, w.ring("late", ringbuf.V4, 64), tally.Transmit, 1, 3)
	if f := w.next(); len(f.Agents) != 0 {
		t.Errorf("frame of its discovery: %+v", f.Agents)
	}
	if a := w.only(); a.Moved[0].Transfers != 3 || len(a.Transfers) != 0 {
		t.Errorf("%+v", a)
	}
}

func TestFramesSayWhoConsumesARingAndWhetherItsAgentRuns(t *testing.T) {
	w := newWorld(t)
	ring := w.ring("a", ringbuf.V4, 1024)
	push(t, ring, tally.Transmit, 1, 1)
	if a := w.only(); a.Up != diagnose.Yes || a.Ring.Consumer != nil {
		t.Errorf("%v, %+v", a.Up, a.Ring)
	}
	push(t, ring, tally.Transmit, 1, 1)
	w.next()
	must.OK(t, ring.Close())
	w.now = w.now.Add(time.Hour) // it wrote long ago
	f := w.next()
	if a := f.Agent(ring.Path()); a.Up == diagnose.Unknown {
		t.Skip("the file system doesn't support leases")
	} else if a.Up != diagnose.No {
		t.Errorf("after its exit: %v", a.Up)
	}
	consumer, err := ringbuf.OpenReader(ring.Path(), ringbuf.Consume)
	must.OK(t, err)
	defer consumer.Close()
	w.now = w.now.Add(time.Hour)
	w.next()
	w.now = w.now.Add(time.Hour)
	a := w.only()
	if list, _ := os.ReadFile("/proc/locks"); !strings.Contains(string(list), "FLOCK") {
		t.Skip("the kernel doesn't list locks")
	}
	// The kernel doesn't say which process has the ring open.
	if diff := cmp.Diff(&diagnose.Consumer{PID: os.Getpid(), Name: "fleet.test"}, a.Ring.Consumer); diff != "" || a.Up == diagnose.Yes {
		t.Errorf("with a consumer: %v, %s", a.Up, diff)
	}
	must.OK(t, consumer.Close())
	for _, want := range []bool{true, false} { // consumers are looked for every two seconds
		if a := w.only(); (a.Ring.Consumer != nil) != want {
			t.Errorf("consumer %+v", a.Ring.Consumer)
		}
	}
}

// The kernel only knows that some process has the ring open, which the consumer has.
func TestAgentBesideAConsumerRunsAsLongAsItsProcessHasTheRingMapped(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to examine all processes")
	}
	proc := t.TempDir()
	w := newWorld(t, func(c *Config) { c.Proc = proc })
	ring := w.ring("a", ringbuf.V4, 1024)
	consumer, err := ringbuf.OpenReader(ring.Path(), ringbuf.Consume)
	must.OK(t, err)
	defer consumer.Close()
	info, err := os.Stat(ring.Path())
	must.OK(t, err)
	page := int64(os.Getpagesize())
	maps := fmt.Sprintf("10000000-%x rw-s 00000000 fe:00 1 %s\n", 0x10000000+(info.Size()+page-1)/page*page, ring.Path())
	for name, target := range map[string]string{"locks": "/proc/locks", "100/exe": "/usr/bin/python3", "100/root": "/", "100/ns/mnt": "mnt:[1]", "self/ns/pid": "pid:[4026531836]"} {
		must.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(proc, name)), 0o755))
		must.OK(t, os.Symlink(target, filepath.Join(proc, name)))
	}
	for name, text := range map[string]string{
		"maps": maps, "environ": "", "status": "Name:\tpython3\nNSpid:\t100\n", "cgroup": "0::/\n", "statm": "100 10 10 1 0 1 0",
		"stat": "100 (python3) S 1 1 1 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 1234 1 1 1",
	} {
		must.OK(t, os.WriteFile(filepath.Join(proc, "100", name), []byte(text), 0o600))
	}
	w.next()
	if a := w.only(); a.Ring.Consumer == nil || a.Up == diagnose.Unknown {
		t.Skip("the file system doesn't support leases, or the kernel doesn't list locks")
	} else if a.Up != diagnose.Yes {
		t.Errorf("while it runs: %v", a.Up)
	}
	must.OK(t, os.RemoveAll(filepath.Join(proc, "100")))
	w.now = w.now.Add(time.Minute)
	if a := w.only(); a.Up != diagnose.No {
		t.Errorf("after its exit: %v", a.Up)
	}
}

// A container can hold so many locks that the list of locks is too long to read. The Collector is then no
// foreign reader.
func TestConsumerIsUnknownAmongTooManyLocks(t *testing.T) {
	proc := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(proc, "locks"), []byte(strings.Repeat("1: FLOCK  ADVISORY  WRITE 1 fe:00:5678 0 EOF\n", 1<<15)), 0o600))
	w := newWorld(t, func(c *Config) { c.Proc = proc })
	push(t, w.ring("a", ringbuf.V4, 1024), tally.Transmit, 1, 1)
	f := w.next()
	if !f.Agents[0].Ring.ConsumerUnknown || len(f.Notes) != 1 || !strings.Contains(f.Notes[0], "list of locks") {
		t.Errorf("%+v, %v", f.Agents[0].Ring, f.Notes)
	}
}

func TestMemoryIsUnknownAfterAConsumerTookARegistration(t *testing.T) {
	w := newWorld(t)
	ring := w.ring("a", ringbuf.V4, 16)
	must.OK(t, ring.Push(ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 1<<33)))
	consumer, err := ringbuf.OpenReader(ring.Path(), ringbuf.Consume)
	must.OK(t, err)
	_, err = consumer.Read(0, func(ringbuf.Batch) {})
	must.OK(t, err)
	must.OK(t, consumer.Commit())
	must.OK(t, consumer.Close())
	for _, kind := range []ringbuf.Type{ringbuf.TypeTxBytes, ringbuf.TypeMemoryRegistered, ringbuf.TypeMemoryDeregistered} {
		must.OK(t, ring.Push(ringbuf.NewEvent(kind, 4096)))
		if a := w.only(); a.Memory != nil {
			t.Errorf("after an event of type %v: %d bytes", kind, *a.Memory)
		}
	}
}

func TestErrorsOfADirectoryAreTemporary(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "missing")
	w := newWorld(t, func(c *Config) { c.Directory = dir })
	if f, err := w.source.Next(t.Context()); f != nil || err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("%+v, %v", f, err)
	}
	must.OK(t, os.Mkdir(dir, 0o700))
	must.Eventually(t, func() string {
		if _, err := w.source.Next(t.Context()); err != nil {
			return err.Error()
		}
		return ""
	})
	if _, err := NewRings(Config{Directory: "/", Include: []string{"["}}); err == nil {
		t.Error("invalid pattern was accepted")
	}
}

func TestWarningsAreShownForAMinute(t *testing.T) {
	w := newWorld(t)
	header := "\x63\x00\x00\x00\x63\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x0f\x00\x00\x00\x00\x00\x00\x00"
	must.OK(t, os.WriteFile(filepath.Join(w.dir, "new"), append(make([]byte, 16), header+strings.Repeat("\x00", 16*16)...), 0o600))
	w.ring("a", ringbuf.V4, 16)
	notes := func() string {
		f, err := w.source.Next(t.Context())
		must.OK(t, err)
		return strings.Join(f.Notes, "\n")
	}
	must.EventuallyTrue(t, "warning", func() bool { return strings.Contains(notes(), "version") })
	for _, shown := range []bool{true, false} {
		if w.now = w.now.Add(31 * time.Second); (notes() != "") != shown {
			t.Errorf("after %v: %q", w.now.Sub(begin), notes())
		}
	}
}

// A pod has a name only on its node, in the names of the directories of its logs.
func TestAgentInAPodHasItsName(t *testing.T) {
	proc := t.TempDir()
	must.OK(t, os.MkdirAll(filepath.Join(proc, "1", "root", "var", "log", "pods", "inference_decode-0_0f6d8a52-7a3b"), 0o700))
	p := pods{proc: proc}
	for uid, want := range map[string]string{"0f6d8a52-7a3b": `"decode-0/vllm/\x1b"`, "0f6d8a52-9999": `"0f6d8a52/vllm/\x1b"`} {
		a := diagnose.Agent{Identity: diagnose.Identity{Name: "\x1b"}, Attributes: map[string]string{
			"k8s.pod.uid": uid, "k8s.container.name": "vllm", "container.id": "abcdef", "service.name": "decode",
		}}
		p.name(&a, begin)
		identify(&a)
		if a.Name != want || a.Service != "decode" {
			t.Errorf("%q of %q, want %q", a.Name, a.Service, want)
		}
		where := []string{"service decode", "pod " + uid, "container vllm", "container abcdef"}
		if diff := cmp.Diff(where, Where(&a), cmpopts.IgnoreSliceElements(func(s string) bool { return strings.HasPrefix(s, "namespace") || s == "pod decode-0" })); diff != "" {
			t.Error(diff)
		}
	}
}

// Beside a Collector, the ring has few events that aren't consumed. Its name needn't be text.
func TestFirstFrameHasWhatTheRingRemembers(t *testing.T) {
	w := newWorld(t)
	ring := w.ring("a\xff", ringbuf.V4, 64)
	consumer, err := ringbuf.OpenReader(ring.Path(), ringbuf.Consume)
	must.OK(t, err)
	defer consumer.Close()
	for i := range 20 {
		push(t, ring, tally.Transmit, 1+i, 1)
		if i == 18 {
			break // not consumed
		}
		_, err = consumer.Read(0, func(ringbuf.Batch) {})
		must.OK(t, err)
		must.OK(t, consumer.Commit())
	}
	// Of 64 slots, one is free and one may be written, so 15 transfers remain.
	want := diagnose.Agent{
		Identity: diagnose.Identity{ID: w.dir + `/a\xff`, Name: `"a\xff"`, Job: diagnose.Job{Service: w.dir}}, Path: w.dir + `/a\xff`, Layout: "v4",
		Moved: [2]diagnose.Moved{{Bytes: 1 << 20, Transfers: 1, Seconds: 0.019}}, Post: 7e-6, Events: 4,
		Ring: &diagnose.Ring{Capacity: 64, Peak: 4}, Before: 15, Remembered: [2]diagnose.Moved{{Bytes: 7 << 20, Transfers: 7, Seconds: 0.056}},
	}
	for range 2 { // it stays
		a := w.only()
		want.Up, want.Ring.Consumer = a.Up, a.Ring.Consumer // TestFramesSayWho… tests them
		if diff := difference(&want, a); diff != "" {
			t.Error(diff)
		}
	}
}

func TestFrameAfterALateOneIsNotHastened(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Interval = time.Second })
	for _, late := range []time.Duration{0, 0, time.Hour, 0} {
		w.now = w.now.Add(late)
		w.next()
		if want := w.now.Add(time.Second); !w.source.due.Equal(want) {
			t.Errorf("%v late: the next frame is due at %v, want %v", late, w.source.due, want)
		}
	}
}

func TestFramesHaveTheTotalsOfStores(t *testing.T) {
	w := newWorld(t)
	store := storetest.Create(t, w.dir, storetest.Config{Agent: "decode-0", Host: "gpu-1", PID: 4711})
	store.Transfer(0, 4096, 50, 5)
	w.next()
	store.Transfer(0, 1<<20, 50, 5)
	want := diagnose.Agent{
		Identity: diagnose.Identity{ID: w.dir + "/decode-0 " + store.Name(), Name: "decode-0", Job: diagnose.Job{Service: w.dir}}, Path: store.Path(),
		Attributes: map[string]string{"process.pid": "4711"}, Layout: "prometheus_mp_v1", Up: diagnose.Yes, Store: true, Undivided: true,
		Moved: [2]diagnose.Moved{{Bytes: 4096 + 1<<20, Transfers: 2, Seconds: 100e-6}}, Post: 10e-6, Events: 6, Memory: new(int64),
	}
	a := w.only()
	if diff := difference(&want, a); diff != "" || a.Times.Quantile(0.5) <= 0 {
		t.Error(a.Times, diff)
	}
}

// A store has the time of all transfers only. What it contained at first must not hide what changes later.
func TestTimeOfAStoreIsDividedAsItsIncreases(t *testing.T) {
	var seen transfers
	for _, step := range []struct {
		writes, reads uint64
		all           float64
		want          [2]float64
	}{
		{1000, 1000, 36_000, [2]float64{18_000, 18_000}},
		{1000, 1100, 36_010, [2]float64{18_000, 18_010}},
		{1300, 1200, 36_014, [2]float64{18_003, 18_011}},
		{1300, 1200, 36_014, [2]float64{18_003, 18_011}},
		{10, 30, 4, [2]float64{1, 3}}, // a new process
	} {
		moved := [2]diagnose.Moved{{Bytes: step.writes}, {Bytes: step.reads}}
		seen.divide(&moved, step.all)
		if got := [2]float64{moved[0].Seconds, moved[1].Seconds}; got != step.want {
			t.Errorf("after %v: got %v, want %v", step.all, got, step.want)
		}
	}
}
