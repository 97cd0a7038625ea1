// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package flight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// plain is a compressor that doesn't compress.
type plain struct{ io.Writer }

func (plain) Flush() error { return nil }
func (plain) Close() error { return nil }

// cockpit is a recorder, and what it reports. It must run in a synctest bubble.
type cockpit struct {
	*Recorder
	t       *testing.T
	handler engine.Handler
	watch   *engine.Watch
	dir     string

	mu      sync.Mutex
	notices []notice.Notice
	wrote   []error
}

// board starts a recorder.
func board(t *testing.T, change func(*Config)) *cockpit {
	t.Helper()
	c := &cockpit{t: t, dir: filepath.Join(t.TempDir(), "recordings")}
	cfg := Config{
		Limits: Defaults, Directory: c.dir, Tool: "test", Host: "gpu-7",
		Compress: func(w io.Writer) (recording.Compressor, error) { return plain{w}, nil },
		Report: func(n notice.Notice) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.notices = append(c.notices, n)
		},
		Wrote: func(_ recording.CauseKind, err error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.wrote = append(c.wrote, err)
		},
	}
	if change != nil {
		change(&cfg)
	}
	c.Recorder = New(cfg)
	c.handler, c.watch = c.Handler(), c.Watch(tally.Slow{}, true)
	c.Start()
	t.Cleanup(func() { must.OK(t, c.Stop(context.Background())) }) // the test's context has ended
	return c
}

func named(name string) engine.Agent {
	return engine.Agent{ID: "/run/nixl/" + name, Name: name, Path: "/run/nixl/" + name, Holder: engine.Holder{Place: "/run/nixl", Shared: true}}
}

// contained returns an agent of a container.
func contained(name, container string) engine.Agent {
	a := named(name)
	a.Holder = engine.Holder{Container: container}
	return a
}

func (c *cockpit) open(list ...engine.Agent) {
	for _, a := range list {
		c.handler.Opened(a, ringbuf.V4, 4096)
	}
}

// transfer passes transfers of a size.
func (c *cockpit) transfer(a engine.Agent, count int, size uint64) {
	c.t.Helper()
	c.handler.Events(a, transfers(c.t, count, size))
}

func transfers(tb testing.TB, count int, size uint64) ringbuf.Batch {
	tb.Helper()
	b, err := ringbuf.MakeBatch(ringbuf.V4, slices.Repeat([]ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeXferPostTime, 10), ringbuf.NewEvent(ringbuf.TypeXferTime, 300),
		ringbuf.NewEvent(ringbuf.TypeTxBytes, size), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
	}, count))
	must.OK(tb, err)
	return b
}

// slow reports a slow transfer.
func (c *cockpit) slow(a engine.Agent) {
	c.watch.Transfer(a, tally.Transfer{Bytes: 1 << 20, Duration: 2_500_000, Direction: tally.Receive})
}

func pass(d time.Duration) { time.Sleep(d) } // synctest

// settle waits until a recording that is due was written.
func (c *cockpit) settle() {
	pass(after)
	synctest.Wait()
}

// files returns the names in the directory.
func (c *cockpit) files() (names []string) {
	c.t.Helper()
	entries, err := os.ReadDir(c.dir)
	must.OK(c.t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// content reads a recording.
func (c *cockpit) content(name string) (h recording.Header, list []recording.Record) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, name))
	must.OK(c.t, err)
	r, err := recording.NewReader(bytes.NewReader(text))
	must.OK(c.t, err)
	for {
		var rec recording.Record
		if err := r.Next(&rec); err != nil {
			if !errors.Is(err, io.EOF) {
				c.t.Error(err)
			}
			return *r.Header(), list
		}
		list = append(list, rec)
	}
}

// only returns the content of the only recording.
func (c *cockpit) only() (recording.Header, []recording.Record) {
	c.t.Helper()
	names := c.files()
	if len(names) != 1 {
		c.t.Fatalf("files %q", names)
	}
	return c.content(names[0])
}

// lines returns records as text: the time since the beginning, the agent, and the state or the size of a transfer.
func lines(h recording.Header, list []recording.Record) (text []string) {
	for i := range list {
		r := &list[i]
		what := string(r.State)
		if r.State == "" {
			if r.Event.Type != ringbuf.TypeTxBytes {
				continue
			}
			what = fmt.Sprint(r.Event.Value)
		}
		text = append(text, fmt.Sprintf("%v %s %s", r.At.Sub(h.Start), r.About.Name, what))
	}
	return text
}

func TestARecordingHasAllAgentsAroundItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := board(t, nil)
		a, b, idle := named("a"), named("b"), named("idle")
		c.open(a, b, idle)
		c.transfer(a, 1, 1)
		pass(20 * time.Second)
		c.transfer(a, 1, 2)
		pass(20 * time.Second)
		c.transfer(b, 1, 3)
		c.handler.Full(b)
		c.handler.Closed(idle, errors.New("agent exited"))
		c.transfer(a, 1, 4)
		pass(time.Second)
		c.handler.Missed(a, errors.New("lapped"))
		c.transfer(a, 1, 5)
		c.settle()
		c.transfer(a, 1, 6)

		h, list := c.only()
		want := []string{
			"0s b opened", "0s a opened", "0s idle opened", "10s a 2", "30s b 3", "30s b full", "30s idle closed", "30s a 4",
			"31s a missed", "31s a 5",
		}
		got := lines(h, list)
		slices.Sort(got) // at the same time, the order doesn't matter
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if h.Cause == nil || h.Cause.Kind != recording.FullRing || h.Cause.Agent != "b" || h.Cause.Path != b.Path || h.Cause.Time.Sub(h.Start) != Window ||
			h.Tool != "test" || h.Host != "gpu-7" {
			t.Errorf("%+v, cause %+v", h, h.Cause)
		}
		for path, mode := range map[string]fs.FileMode{c.dir: fs.ModeDir | 0o700, filepath.Join(c.dir, c.files()[0]): 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode() != mode {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		}
		if len(c.notices) != 1 || !strings.Contains(c.notices[0].String(), `because of a full ring of agent "b": the ring was full`) || len(c.wrote) != 1 {
			t.Errorf("%v, %v", c.notices, c.wrote)
		}
	})
}

func TestSlowTransfersAndErrorsCauseRecordings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := board(t, nil)
		a, b := named("a"), named("b")
		c.open(a, b)
		c.watch.Error(b, tally.Error{Type: ringbuf.TypeErrCanceled})
		c.settle()
		if names := c.files(); len(names) > 0 {
			t.Errorf("a canceled operation caused %q", names)
		}
		c.watch.Error(b, tally.Error{Type: ringbuf.TypeErrBackend})
		pass(between)
		c.slow(a)
		c.settle()
		var causes []string
		for _, name := range c.files() {
			h, _ := c.content(name)
			causes = append(causes, fmt.Sprintf("%s of %s: %s", h.Cause.Kind, h.Cause.Agent, h.Cause.Why))
		}
		want := []string{"an error of b: backend", "a slow transfer of a: receiving 1.05 MB took 2.5s"}
		if diff := cmp.Diff(want, causes); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAProblemIsRecordedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := board(t, nil)
		began := time.Now()
		a := named("a")
		hostile := make([]engine.Agent, 100)
		for i := range hostile {
			hostile[i] = contained(fmt.Sprintf("h%d", i), "hostile")
		}
		c.open(a)
		c.open(hostile...)
		for range 25 * 60 {
			for i := range hostile {
				c.slow(hostile[i])
				c.handler.Full(hostile[i])
			}
			c.slow(a)
			pass(time.Second)
		}
		c.settle()
		var got []string
		for _, name := range c.files() {
			h, _ := c.content(name)
			who := "hostile"
			if h.Cause.Path == a.Path {
				who = "a"
			}
			got = append(got, fmt.Sprintf("%s %v", who, h.Cause.Time.Sub(began)))
		}
		want := []string{"hostile 0s", "a 1m0s", "hostile 10m0s", "a 11m0s", "hostile 20m0s", "a 21m0s"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if len(c.causes) > 2 {
			t.Errorf("%d causes are remembered", len(c.causes))
		}
	})
}

// held checks the memory, and returns the bytes of each agent.
func (c *cockpit) held() map[string]int {
	c.t.Helper()
	sizes, sum, groups := make(map[string]int), 0, make(map[group]int)
	for _, a := range c.memory.agents {
		for _, k := range a.chunks {
			sizes[a.Name] += cap(k.data)
		}
		if sizes[a.Name] != a.size || a.size > c.memory.perAgent {
			c.t.Errorf("%s holds %d bytes, counted %d", a.Name, sizes[a.Name], a.size)
		}
		sum += a.size
		if a.size > 0 {
			groups[a.group] += a.size
		}
	}
	if diff := cmp.Diff(groups, c.memory.groups, cmp.AllowUnexported(group{})); diff != "" || sum != c.memory.used || sum > c.memory.limit {
		c.t.Errorf("%d bytes, counted %d, %s", sum, c.memory.used, diff)
	}
	return sizes
}

func TestTheMemoryOfAnAgentIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := board(t, func(cfg *Config) { cfg.AgentBytes = minAgentBytes })
		a, b := named("a"), named("b")
		c.open(a, b)
		c.transfer(b, 1, 7)
		for range 30 {
			pass(time.Second)
			c.transfer(a, 1000, 1<<20)
			if got := c.held(); got["a"] > minAgentBytes || got["b"] != minChunk {
				t.Fatalf("%v", got)
			}
		}
		c.slow(a)
		c.settle()
		h, list := c.only()
		transfers, missed := 0, 0
		for i := range list {
			switch {
			case list[i].State == recording.Missed:
				missed++
			case list[i].About.Name == "a" && list[i].Event.Type == ringbuf.TypeTxBytes && list[i].State == "":
				transfers++
			}
		}
		if last := list[len(list)-1].At; missed != 1 || transfers < 7000 || last.Sub(h.Start) != Window {
			t.Errorf("%d transfers until %v, %d times missed", transfers, last.Sub(h.Start), missed)
		}
	})
}

func TestAContainerCantPushOutOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const agents = 64
		c := board(t, func(cfg *Config) { cfg.AgentBytes, cfg.MemoryBytes = minAgentBytes, 16*minAgentBytes })
		a := named("a")
		c.open(a)
		hostile := make([]engine.Agent, agents)
		for i := range hostile {
			hostile[i] = contained(fmt.Sprintf("h%d", i), "hostile")
		}
		c.open(hostile...)
		want, flood := 0, transfers(t, 2000, 1<<40)
		for range 25 {
			c.transfer(a, 250, 7)
			want += 250
			for i := range hostile {
				c.handler.Events(hostile[i], flood)
			}
			c.held()
			pass(time.Second)
		}
		c.slow(a)
		c.settle()
		h, list := c.only()
		got := 0
		for _, line := range lines(h, list) {
			if strings.HasSuffix(line, " a 7") {
				got++
			}
		}
		if got != want {
			t.Errorf("%d transfers, want %d", got, want)
		}
	})
}

// The memory of an idle fleet is freed, and agents that have exited are forgotten.
func TestOldEventsAreFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := board(t, nil)
		a, gone := named("a"), named("gone")
		c.open(a, gone)
		c.transfer(a, 5000, 1)
		c.transfer(gone, 5000, 1)
		c.handler.Closed(gone, errors.New("agent exited"))
		pass(keep + time.Second)
		c.transfer(a, 1, 1)
		if got := c.held(); got["a"] > maxChunk || got["gone"] != 0 || len(c.memory.agents) != 1 {
			t.Errorf("%v, %d agents", got, len(c.memory.agents))
		}
	})
}

func TestChunksAreReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := board(t, nil)
		a := named("a")
		c.open(a)
		b, err := ringbuf.MakeBatch(ringbuf.V4, slices.Repeat([]ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)}, 1000))
		must.OK(t, err)
		step := func() {
			pass(500 * time.Millisecond)
			c.handler.Events(a, b)
		}
		for range 200 {
			step()
		}
		if n := testing.AllocsPerRun(100, step); n >= 1 {
			t.Errorf("%v allocations", n)
		}
	})
}

// While a recording is written, its events stay in memory, the limit still applies, and draining doesn't wait.
func TestEventsArriveWhileARecordingIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := board(t, func(cfg *Config) {
			cfg.AgentBytes, cfg.MemoryBytes = minAgentBytes, 2*minAgentBytes
			cfg.Compress = func(w io.Writer) (recording.Compressor, error) {
				<-release
				return plain{w}, nil
			}
		})
		a := named("a")
		c.open(a)
		c.transfer(a, 5000, 1)
		c.slow(a)
		c.settle() // it is being written
		for range 10 {
			c.transfer(a, 5000, 2)
			if c.memory.used > c.memory.limit {
				t.Fatalf("%d bytes", c.memory.used)
			}
		}
		close(release)
		synctest.Wait()
		c.transfer(a, 1, 3)
		c.held()
		count := make(map[string]int)
		h, list := c.only()
		for _, line := range lines(h, list) {
			_, what, _ := strings.Cut(line, " a ")
			count[what]++
		}
		if diff := cmp.Diff(map[string]int{"opened": 1, "1": 5000}, count); diff != "" {
			t.Error(diff)
		}
		pass(Defaults.Interval)
		c.transfer(a, 1, 4)
		c.slow(a)
		pass(time.Second)
		c.transfer(a, 1, 5)
		c.settle()
		h, list = c.content(c.files()[1])
		if diff := cmp.Diff([]string{"0s a opened", "30s a 4", "31s a 5"}, lines(h, list)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWhatIsBeingWrittenIsntDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := board(t, func(cfg *Config) {
			cfg.AgentBytes, cfg.MemoryBytes = minAgentBytes, minAgentBytes+maxChunk
			cfg.Compress = func(w io.Writer) (recording.Compressor, error) {
				<-release
				return plain{w}, nil
			}
		})
		a, b := named("a"), named("b")
		c.open(a)
		c.transfer(a, 20000, 1)
		before := c.held()["a"]
		c.slow(a)
		c.settle()
		c.open(b)
		for range 20 {
			c.transfer(b, 500, 2)
		}
		if after := c.held(); after["a"] != before || after["b"] > maxChunk || c.memory.used > c.memory.limit {
			t.Errorf("%v, before %d", after, before)
		}
		close(release)
		synctest.Wait()
		pass(Defaults.Interval)
		c.transfer(b, 1, 3)
		c.slow(b)
		c.settle()
		h, list := c.content(c.files()[1])
		if diff := cmp.Diff([]string{"0s b opened", "0s a opened", "30s b opened", "30s b missed", "30s b 3"}, lines(h, list)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTheLimitOfTheDirectoryHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 3 << 20
		c := board(t, func(cfg *Config) { cfg.Bytes = limit })
		other := filepath.Join(c.dir, "nixl-notes.jsonl.zst")
		must.OK(t, os.WriteFile(other, make([]byte, 2*limit), 0o600))
		old := "nixl-19990101T000000.000Z-error-x.jsonl.zst" + unfinished
		must.OK(t, os.WriteFile(filepath.Join(c.dir, old), make([]byte, 1000), 0o600))
		odd := "nixl-19980101T000000.000Z-error-x.jsonl.zst"
		must.OK(t, os.MkdirAll(filepath.Join(c.dir, odd, "x"), 0o700))
		a := named("../a b")
		c.open(a)
		var all []string
		for range 8 {
			c.transfer(a, 2500, 1<<20) // about 1 MB
			c.slow(a)
			c.settle()
			sum, names := int64(0), c.files()
			for _, name := range names {
				info, err := os.Stat(filepath.Join(c.dir, name))
				must.OK(t, err)
				if name != filepath.Base(other) && name != odd {
					sum += info.Size()
				}
			}
			if sum > limit || sum < limit/5 || !slices.Contains(names, filepath.Base(other)) {
				t.Errorf("%d bytes: %q", sum, names)
			}
			all = append(all, slices.DeleteFunc(names, func(n string) bool {
				return n == old || n == odd || slices.Contains(all, n) || n == filepath.Base(other)
			})...)
			pass(Defaults.Interval)
		}
		names := slices.DeleteFunc(c.files(), func(n string) bool { return n == odd })
		kept := len(names) - 1
		if len(all) != 8 || kept < 2 || kept > 3 || !slices.Equal(names[:kept], all[8-kept:]) {
			t.Errorf("written %q, left %q", all, names)
		}
		if !strings.HasSuffix(all[0], "-slow_transfer-.._a_b.jsonl.zst") {
			t.Errorf("name %q", all[0])
		}
		if errs := slices.DeleteFunc(c.wrote, func(err error) bool { return err == nil }); len(errs) > 0 {
			t.Error(errs)
		}
	})
}

func TestARecordingThatIsTooLargeIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := board(t, func(cfg *Config) { cfg.Bytes = MinBytes })
		a := named("a")
		c.open(a)
		c.transfer(a, 4000, 1<<20)
		c.slow(a)
		c.settle()
		if names := c.files(); len(names) > 0 || len(c.wrote) != 1 || !errors.Is(c.wrote[0], ErrTooLarge) {
			t.Errorf("%q, %v", names, c.wrote)
		}
	})
}

func TestADirectoryThatCantBeUsedIsReported(t *testing.T) {
	for name, prepare := range map[string]func(dir string) error{
		"a file":             func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"parent is missing":  func(dir string) error { return os.Remove(filepath.Dir(dir)) },
		"others can write":   func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)) },
		"a link":             func(dir string) error { return os.Symlink("/tmp", dir) },
		"read-only (procfs)": func(dir string) error { return os.Symlink("/proc/self", dir) },
	} {
		t.Run(name, func(t *testing.T) {
			parent := filepath.Join(t.TempDir(), "parent")
			dir := filepath.Join(parent, "recordings")
			must.OK(t, errors.Join(os.Mkdir(parent, 0o700), prepare(dir)))
			synctest.Test(t, func(t *testing.T) {
				c := board(t, func(cfg *Config) { cfg.Directory = dir })
				a := named("a")
				c.open(a)
				c.slow(a)
				c.settle()
				if len(c.wrote) != 2 || !errors.Is(c.wrote[0], ErrDirectory) || !errors.Is(c.wrote[1], ErrDirectory) {
					t.Errorf("%v", c.wrote)
				}
				if len(c.notices) != 2 || c.notices[0].Path != dir || c.notices[0].Kind != notice.RecordingFailed {
					t.Errorf("%v", c.notices)
				}
			})
		})
	}
}

func TestStopWritesTheRecordingThatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := board(t, nil)
		a := named("a")
		c.open(a)
		c.slow(a)
		began := time.Now()
		must.OK(t, c.Stop(t.Context()))
		if time.Since(began) > time.Second || len(c.files()) != 1 {
			t.Errorf("%q after %v", c.files(), time.Since(began))
		}
		c.ending = make(chan struct{}) // for the cleanup
	})
}

// A file that shrinks must not block the recorder, or leave half of an entry.
func TestAFaultLeavesNoEntry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	w, err := ringbuf.Create(path, ringbuf.V4, 4096)
	must.OK(t, err)
	_, err = w.PushBatch(slices.Repeat([]ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)}, 4000))
	must.OK(t, err)
	reader, err := ringbuf.OpenReader(path, ringbuf.Consume)
	must.OK(t, err)
	synctest.Test(t, func(t *testing.T) {
		c := board(t, nil)
		a := named("a")
		c.open(a)
		_, err := reader.Read(0, func(b ringbuf.Batch) {
			must.OK(t, os.Truncate(path, 4096))
			c.handler.Events(a, b)
		})
		if !errors.Is(err, ringbuf.ErrShrunk) {
			t.Fatal(err)
		}
		c.transfer(a, 1, 9)
		c.slow(a)
		c.settle()
		h, list := c.only()
		if got := lines(h, list); got[0] != "0s a opened" || got[len(got)-1] != "0s a 9" {
			t.Errorf("%q", got)
		}
	})
	must.OK(t, errors.Join(reader.Close(), w.Close()))
}

func TestChunksRestoreEventsOfEachLayout(t *testing.T) {
	for _, l := range ringbuf.Layouts() {
		var list []ringbuf.Event
		for n := range 3000 {
			e := ringbuf.Event{Type: ringbuf.Type(n % 30), Category: ringbuf.Category(n%9 - 2), Value: 1<<63 + uint64(n)}
			if l.Named() {
				e = ringbuf.Event{Category: e.Category, Named: true, Name: ringbuf.MakeName(strings.Repeat("x", n%33)), Value: uint64(n)}
			}
			if l == ringbuf.V1 {
				e.TimestampMicros = uint64(n) + 1<<62
			}
			list = append(list, e)
		}
		b, err := ringbuf.MakeBatch(l, list)
		must.OK(t, err)
		var chunks []*chunk
		for next := 0; next < b.Len(); {
			c := &chunk{layout: l, data: make([]byte, 0, maxChunk)}
			next = c.addEvents(5, b, next)
			c.addState(7, missed, strings.Repeat("y", 1000))
			chunks = append(chunks, c)
		}
		var got []ringbuf.Event
		for _, c := range chunks {
			var e entry
			r := reader{c.data, c.first}
			for r.next(&e, l) {
				if e.kind == missed {
					if e.at != 7 || len(e.why) != maxWhy {
						t.Errorf("%+v", e)
					}
					continue
				}
				back, err := ringbuf.MakeBatch(l, e.events)
				must.OK(t, err)
				for i := range back.Len() {
					got = append(got, back.Event(i))
				}
			}
		}
		want := make([]ringbuf.Event, b.Len())
		for i := range want {
			want[i] = b.Event(i)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: %s", l, diff)
		}
	}
}
