// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs/procstest"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/oracle"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// world is a source, a directory with simulated agents, and a fake clock.
type world struct {
	t      *testing.T
	dir    string
	now    time.Time
	source *Rings
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), now: begin}
	var err error
	w.source, err = NewRings(RingsConfig{Directory: w.dir, Now: func() time.Time { return w.now }})
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, w.source.Close()) })
	return w
}

// start starts the source.
func (w *world) start() {
	w.t.Helper()
	must.OK(w.t, w.source.Start())
}

// drain reads the rings.
func (w *world) drain() {
	w.t.Helper()
	if _, err := w.source.host.Collect(w.t.Context(), false); err != nil {
		w.t.Error(err)
	}
}

// find finds new rings and reads them.
func (w *world) find() {
	w.source.host.Refresh(w.t.Context())
	w.drain()
}

func (w *world) agents(prefix string, n int, cfg simulate.Config) *simulate.Fleet {
	w.t.Helper()
	cfg.Seed = 1
	cfg.Now = func() time.Time { return w.now }
	if cfg.Traffic == (simulate.Traffic{}) {
		cfg.Traffic = simulate.KVCache()
	}
	fleet, err := simulate.NewFleet(simulate.FleetConfig{
		Dir: w.dir, Prefix: prefix, Agents: n, Layouts: ringbuf.Layouts(), Agent: cfg, Journals: true,
	})
	must.OK(w.t, err)
	must.OK(w.t, fleet.Start())
	w.t.Cleanup(func() { must.OK(w.t, fleet.Stop()) })
	return fleet
}

// second advances the clock by one second. After each of the ten run intervals, it reads the
// rings and calls consume.
func (w *world) second(fleet *simulate.Fleet, consume func()) {
	w.t.Helper()
	for range 10 {
		w.now = w.now.Add(100 * time.Millisecond)
		must.OK(w.t, fleet.Interval())
		w.drain()
		if consume != nil {
			consume()
		}
	}
}

func TestSourceReportsWhatTheAgentsWrote(t *testing.T) {
	w := newWorld(t)
	fleet := w.agents("sim", 5, simulate.Config{Rate: 200, Traffic: func() simulate.Traffic {
		traffic := simulate.KVCache()
		traffic.ErrorShare = 0.05
		return traffic
	}()})
	for range 10 { // before the source starts
		w.now = w.now.Add(100 * time.Millisecond)
		must.OK(t, fleet.Interval())
	}
	before := fleet.Report()
	w.start()
	board := NewBoard(2*time.Second, 3)
	board.Add(w.source.Sample())
	w.second(fleet, nil)
	board.Add(w.source.Sample())
	after := fleet.Report()
	if len(board.Rows()) != 5 {
		t.Fatalf("%d rows", len(board.Rows()))
	}
	for _, r := range board.Rows() {
		old, now := before.Agents[r.Path], after.Agents[r.Path]
		got := []float64{r.Out, r.In, r.Transfers, r.Errors, float64(r.Since.Events)}
		since := func(point string) float64 {
			first, _ := old.Points[point].(int64)
			last, _ := now.Points[point].(int64)
			return float64(last - first)
		}
		const transmit, receive = "{nixl.transfer.direction=transmit}", "{nixl.transfer.direction=receive}"
		want := []float64{
			since("nixl.transfer.io" + transmit), since("nixl.transfer.io" + receive),
			since("nixl.transfer.requests"+transmit) + since("nixl.transfer.requests"+receive),
			float64(now.Failed - old.Failed),
			float64(now.Written - old.Written),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, layout %s: %s", r.Name, r.Layout, diff)
		}
		if r.Layout != now.Layout || r.Memory <= 0 || r.Reader != Nobody || len(r.Failures) == 0 || r.P99 < r.P50 || r.PostP50 >= r.P50 {
			t.Errorf("%+v", r)
		}
	}
}

func TestSourceDoesNotConsumeEvents(t *testing.T) {
	w := newWorld(t)
	fleet := w.agents("sim", 5, simulate.Config{Rate: 100})
	w.start()
	w.second(fleet, nil)
	w.source.Sample()
	for _, a := range fleet.Agents() {
		if h := ringtest.ReadHeader(t, a.Path()); h.ReadPos != 0 || h.WritePos == 0 {
			t.Errorf("%s: %+v", a.Path(), h)
		}
	}
}

func TestSourceReportsTheConsumerOfARing(t *testing.T) {
	w := newWorld(t)
	fleet := w.agents("sim", 1, simulate.Config{Rate: 100})
	path := fleet.Agents()[0].Path()
	reader, err := ringbuf.OpenReader(path, ringbuf.Consume)
	must.OK(t, err)
	defer reader.Close()
	w.start()
	board := NewBoard(time.Minute, 3)
	board.Add(w.source.Sample())
	consume := func() {
		_, err := reader.Read(0, func(ringbuf.Batch) {})
		must.OK(t, err)
		must.OK(t, reader.Commit())
	}
	w.second(fleet, consume)
	w.now = w.now.Add(100 * time.Millisecond)
	must.OK(t, fleet.Interval()) // not consumed yet
	board.Add(w.source.Sample())
	r := board.Row(path)
	if r.Since.Transfers < 99 || r.Fill <= 0 || r.Fill > 0.02 {
		t.Errorf("%d transfers, fill %v", r.Since.Transfers, r.Fill)
	}
	// Some kernels don't list the lock. Then the reader is foreign.
	if list, err := os.ReadFile("/proc/locks"); err == nil && strings.Contains(string(list), "FLOCK") {
		if r.Reader != Locked || r.Lock.PID != os.Getpid() || !strings.HasSuffix(r.ReaderName(), ".test") {
			t.Errorf("reader %v, %+v", r.Reader, r.Lock)
		}
	}
	consume()
	w.source.Sample() // contains the peak before consuming
	if peak := w.source.Sample().Agents[0].Peak; peak != 0 {
		t.Errorf("peak of an empty ring is %d", peak)
	}
	must.OK(t, reader.Close())
	w.now = w.now.Add(time.Hour) // after the next scan of /proc, which is late if the last one was slow
	if lock := w.source.Sample().Agents[0].Lock; lock != (Lock{}) {
		t.Errorf("after closing the consumer, the lock is %+v", lock)
	}
}

func TestNewAgentIsInTheSampleAfterItsDiscovery(t *testing.T) {
	w := newWorld(t)
	w.start()
	if s := w.source.Sample(); len(s.Agents) != 0 || s.Err != nil {
		t.Errorf("%+v", s)
	}
	fleet := w.agents("late", 1, simulate.Config{Rate: 100})
	w.second(fleet, nil)
	w.source.host.Refresh(t.Context())
	if s := w.source.Sample(); len(s.Agents) != 0 {
		t.Errorf("first sample after the discovery: %+v", s.Agents)
	}
	w.second(fleet, nil)
	s := w.source.Sample()
	if len(s.Agents) != 1 || s.Agents[0].Totals.Transfers < 190 {
		t.Fatalf("%+v", s.Agents)
	}
}

func TestSourceReportsWhetherAnAgentIsRunning(t *testing.T) {
	w := newWorld(t)
	path, ring := w.create("a", 16)
	must.OK(t, ring.Push(ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 1<<30)))
	w.start()
	alive := func() procs.Alive {
		w.now = w.now.Add(procsInterval)
		w.find()
		s := w.source.Sample()
		if len(s.Agents) != 1 || s.Agents[0].Memory != 1<<30 {
			t.Fatalf("%+v", s.Agents)
		}
		return s.Agents[0].Alive
	}
	for range 2 {
		if got := alive(); got != procs.Yes {
			t.Errorf("running agent is alive: %v", got)
		}
	}
	must.OK(t, ring.Close())
	skipUnlessKnown(t, path)
	if got := alive(); got != procs.No {
		t.Errorf("exited agent is alive: %v", got)
	}
	_, ring = w.create("a", 16) // it restarts
	defer ring.Close()
	must.OK(t, ring.Push(ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 1<<30)))
	w.find() // reopens the ring
	if got := alive(); got != procs.Yes {
		t.Errorf("restarted agent is alive: %v", got)
	}
}

func TestFirstSampleReportsThatAnAgentExited(t *testing.T) {
	w := newWorld(t)
	path, ring := w.create("a", 16)
	must.OK(t, ring.Push(ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 1<<30)))
	must.OK(t, ring.Close())
	skipUnlessKnown(t, path)
	w.start()
	board := NewBoard(time.Minute, 3)
	for range 2 {
		board.Add(w.source.Sample())
		if r := board.Row(path); r.Alive != procs.No || len(r.Problems) != 1 || r.Problems[0].Text != "agent exited" {
			t.Errorf("%v, %+v", r.Alive, r.Problems)
		}
		w.now = w.now.Add(time.Second)
	}
}

func TestSourceDistinguishesAConsumerFromTheAgent(t *testing.T) {
	for name, tt := range map[string]struct {
		namespace string
		agent     bool
		want      procs.Alive
	}{
		"running":                {procstest.Initial, true, procs.Yes},
		"exited":                 {procstest.Initial, false, procs.No},
		"exited, in a container": {procstest.Inner, false, procs.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			path, ring := w.create("a", 16)
			must.OK(t, ring.Close())
			consumer, err := ringbuf.OpenReader(path, ringbuf.Consume)
			must.OK(t, err)
			defer consumer.Close()
			list := []procstest.Process{{PID: 30, Lock: true}}
			if tt.agent {
				list = append(list, procstest.Process{PID: 31})
			}
			w.source.users.proc = procs.FS(procstest.Make(t, path, tt.namespace, list...))
			w.start()
			s := w.source.Sample()
			if len(s.Agents) != 1 || s.Agents[0].Alive != tt.want || s.Agents[0].Lock.PID != 30 {
				t.Errorf("%+v, want alive: %v", s.Agents, tt.want)
			}
		})
	}
}

// A container can hold so many locks that the list of locks is too long to read. The Collector is then no
// foreign reader.
func TestConsumerIsUnknownAmongTooManyLocks(t *testing.T) {
	w := newWorld(t)
	fleet := w.agents("sim", 1, simulate.Config{Rate: 100})
	path := fleet.Agents()[0].Path()
	consumer, err := ringbuf.OpenReader(path, ringbuf.Consume)
	must.OK(t, err)
	defer consumer.Close()
	proc := procstest.Make(t, path, procstest.Initial, procstest.Process{PID: 20}, procstest.Process{PID: 30, Lock: true})
	w.source.users.proc = procs.FS(proc)
	procstest.Flood(t, proc)
	w.start()
	board := NewBoard(time.Second, 3)
	for range 2 {
		board.Add(w.source.Sample())
		w.second(fleet, func() {
			_, err := consumer.Read(0, func(ringbuf.Batch) {})
			must.OK(t, err)
			must.OK(t, consumer.Commit())
		})
	}
	board.Add(w.source.Sample())
	r := board.Row(path)
	if r.Reader != Hidden || r.ReaderName() != "unknown" || len(r.Problems)+len(board.Findings()) > 0 {
		t.Errorf("reader %v, %s: %v %v", r.Reader, r.ReaderName(), r.Problems, board.Findings())
	}
	if board.Warning() != procs.ManyLocks {
		t.Errorf("warning %q", board.Warning())
	}
}

func TestMemoryIsUnknownAfterAConsumerTookARegistration(t *testing.T) {
	w := newWorld(t)
	ring, err := ringbuf.Create(filepath.Join(w.dir, "a"), ringbuf.V4, 16)
	must.OK(t, err)
	defer ring.Close()
	push := func(kind ringbuf.Type, bytes uint64) {
		t.Helper()
		must.OK(t, ring.Push(ringbuf.NewEvent(kind, bytes)))
	}
	push(ringbuf.TypeMemoryRegistered, 1<<33)
	consumer, err := ringbuf.OpenReader(ring.Path(), ringbuf.Consume)
	must.OK(t, err)
	_, err = consumer.Read(0, func(ringbuf.Batch) {})
	must.OK(t, err)
	must.OK(t, consumer.Commit())
	must.OK(t, consumer.Close())
	w.start()
	for _, event := range []ringbuf.Type{ringbuf.TypeTxBytes, ringbuf.TypeMemoryRegistered, ringbuf.TypeMemoryDeregistered} {
		push(event, 4096)
		w.now = w.now.Add(100 * time.Millisecond)
		w.drain()
		if s := w.source.Sample(); len(s.Agents) != 1 || !s.Agents[0].MemoryUnknown {
			t.Errorf("after an event of type %v: %+v", event, s.Agents)
		}
	}
}

// warning waits for a warning. Notices are delayed so that similar ones can be merged.
func (w *world) warning() (got string) {
	w.t.Helper()
	must.EventuallyTrue(w.t, "warning", func() bool {
		got = w.source.Sample().Warning
		return got != ""
	})
	return got
}

func (w *world) create(name string, capacity int) (path string, ring *ringbuf.Writer) {
	w.t.Helper()
	path = filepath.Join(w.dir, name)
	ring, err := ringbuf.Create(path, ringbuf.V4, capacity)
	must.OK(w.t, err)
	return path, ring
}

func skipUnlessKnown(t *testing.T, path string) {
	t.Helper()
	if !procs.Attend(path).Known {
		t.Skip("the file system doesn't support it")
	}
}

func TestSourceReportsErrorsAndRecentWarnings(t *testing.T) {
	s, err := NewRings(RingsConfig{Directory: filepath.Join(t.TempDir(), "missing")})
	must.OK(t, err)
	must.OK(t, s.Start())
	defer func() { must.OK(t, s.Close()) }()
	if got := s.Sample(); got.Err == nil || !strings.Contains(got.Err.Error(), "missing") {
		t.Errorf("%+v", got)
	}
	if _, err := NewRings(RingsConfig{Directory: "/", Include: []string{"["}}); err == nil {
		t.Error("invalid pattern was accepted")
	}
	w := newWorld(t)
	must.OK(t, os.WriteFile(filepath.Join(w.dir, "new"), append(make([]byte, 16), "\x63\x00\x00\x00\x63\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x0f\x00\x00\x00\x00\x00\x00\x00"+strings.Repeat("\x00", 16*16)...), 0o600))
	w.start()
	if got := w.warning(); !strings.Contains(got, "version") {
		t.Errorf("warning %q", got)
	}
	w.now = w.now.Add(warnFor + time.Second)
	if got := w.source.Sample().Warning; got != "" {
		t.Errorf("warning after %v: %q", warnFor, got)
	}
}

func TestSourceKeepsTheSlowestTransfersInAllLayouts(t *testing.T) {
	w := newWorld(t)
	fleet := w.agents("sim", len(ringbuf.Layouts()), simulate.Config{Rate: 200})
	w.start()
	w.source.Sample()
	w.second(fleet, nil)
	for _, a := range fleet.Agents() {
		list, totals := w.source.Slowest(a.Path()), a.Totals()
		durations, _ := totals.Points["nixl.transfer.duration"].(oracle.Distribution)
		if len(list) != slowestKept || list[0].Took.Seconds() != durations.Max {
			t.Errorf("%s: %+v, want a transfer of %v s", totals.Layout, list, durations.Max)
			continue
		}
		if !slices.IsSortedFunc(list, byTime) {
			t.Errorf("%s: %+v", totals.Layout, list)
		}
		for _, one := range list {
			if one.Bytes == 0 || one.Post == 0 || one.Post > one.Took {
				t.Errorf("%s: %+v", totals.Layout, one)
			}
			if at := one.At; totals.Layout == "v1" && (at.Before(begin) || at.After(w.now)) {
				t.Errorf("the time of a transfer is %v, not the timestamp in the ring", at)
			}
		}
	}
}

func TestEveryCompleteTransferCanBeOneOfTheSlowest(t *testing.T) {
	w := newWorld(t)
	path, ring := w.create("agent", 64)
	defer ring.Close()
	w.start()
	push := func(values map[ringbuf.Type]uint64, types ...ringbuf.Type) {
		for _, kind := range types {
			must.OK(t, ring.Push(ringbuf.NewEvent(kind, values[kind])))
		}
	}
	const post, took = ringbuf.TypeXferPostTime, ringbuf.TypeXferTime
	push(map[ringbuf.Type]uint64{post: 7, took: 1000, ringbuf.TypeRxBytes: 4096, ringbuf.TypeRxRequests: 1}, post, took, ringbuf.TypeRxBytes, ringbuf.TypeRxRequests)
	push(map[ringbuf.Type]uint64{took: 5000, ringbuf.TypeTxRequests: 1}, took, ringbuf.TypeTxRequests) // the others are missing
	push(map[ringbuf.Type]uint64{ringbuf.TypeTxBytes: 1 << 40, ringbuf.TypeTxRequests: 1}, post, took, ringbuf.TypeTxBytes, ringbuf.TypeTxRequests)
	w.drain()
	want := []Transfer{{Receive: true, Bytes: 4096, Took: time.Millisecond, Post: 7 * time.Microsecond}, {Bytes: 1 << 40}}
	got := w.source.Slowest(path)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Transfer{}, "At")); diff != "" {
		t.Error(diff)
	}
	if len(got) > 0 && got[0].Throughput() != 4_096_000 {
		t.Errorf("%v B/s", got[0].Throughput())
	}
}

func TestSlowestTransfersExcludeOldEvents(t *testing.T) {
	w := newWorld(t)
	fleet := w.agents("sim", 1, simulate.Config{Rate: 200})
	must.OK(t, fleet.Interval())
	w.start()
	path := fleet.Agents()[0].Path()
	if list := w.source.Slowest(path); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	w.second(fleet, nil)
	if list := w.source.Slowest(path); len(list) == 0 {
		t.Error("no transfer")
	}
}

// A prefill server and a storage server in one directory aren't peers.
func TestAgentHasTheServiceOfItsProcess(t *testing.T) {
	w := newWorld(t)
	fleet := w.agents("sim", 1, simulate.Config{Rate: 100})
	proc := procstest.Make(t, fleet.Agents()[0].Path(), procstest.Initial, procstest.Process{PID: 20})
	dir := filepath.Join(proc, "20")
	must.OK(t, os.Mkdir(filepath.Join(dir, "ns"), 0o755))
	for name, text := range map[string]string{
		"stat":   "20 (python3) S 1 1 1 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 1234 1 1 1",
		"status": "Name:\tpython3\nNSpid:\t20\n", "cgroup": "0::/\n", "environ": "OTEL_SERVICE_NAME=storage\x00",
	} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	must.OK(t, os.Symlink("/usr/bin/python3", filepath.Join(dir, "exe")))
	must.OK(t, os.Symlink("/", filepath.Join(dir, "root")))
	must.OK(t, os.Symlink("mnt:[1]", filepath.Join(dir, "ns", "mnt")))
	w.source.users.proc = procs.FS(proc)
	w.source.scanner = process.New(process.Config{Proc: proc})
	w.start()
	sample := w.source.Sample()
	if got := sample.Agents[0].Service; got != "storage" {
		t.Errorf("service %q", got)
	}
	if got := sample.Diagnose().Agents[0].Job; got.Service != "storage" {
		t.Errorf("job %+v", got)
	}
}
