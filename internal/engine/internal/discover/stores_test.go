// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

func withStores(c *Config) { c.Stores = &StoreConfig{StaleAfter: time.Minute} }

// values is what the owner knows about an agent with stores: the bytes that its processes
// have sent, and whether one is running.
type values struct {
	Bytes uint64
	Up    drain.Up
	Old   bool
}

// stores returns the values of all agents, by name.
func (o *owner) stores() map[string]values {
	o.mu.Lock()
	defer o.mu.Unlock()
	agents := make(map[string]values)
	for _, m := range o.messages {
		read, _ := m.(drain.Read)
		for _, m := range read {
			v := agents[m.Store.Agent.Name]
			v.Up, v.Old = m.Up, m.Old
			if m.Values != nil {
				v.Bytes = m.Values.Sums[ringbuf.TypeTxBytes].Lo
			}
			agents[m.Store.Agent.Name] = v
		}
	}
	return agents
}

func (x *fixture) wantStores(want map[string]values) {
	x.t.Helper()
	if d := cmp.Diff(want, x.owner.stores()); d != "" {
		x.t.Errorf("stores (-want +got)\n%s", d)
	}
}

func wantRefusals(t *testing.T, d *Directory, want map[string]string) {
	t.Helper()
	got := make(map[string]string)
	for path, r := range d.State().Refused {
		got[path] = r.Reason
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refused (-want +got)\n%s", diff)
	}
}

func TestValuesOfStoresAreSentWhenTheyChange(t *testing.T) {
	x := newFixture(t)
	x.now = time.Now()
	d := x.directory(withStores)
	w := storetest.Create(t, x.dir, storetest.Config{})
	w.Count(storetest.TxBytes, 7)
	x.round(d)
	x.wantStores(map[string]values{"agent": {Bytes: 7, Up: drain.UpYes}})
	x.round(d)
	d.stores.readAll()
	if n := count[drain.Read](x.owner); n != 1 {
		t.Errorf("%d messages, want one", n)
	}
	w.Count(storetest.TxBytes, 3)
	d.stores.readAll()
	x.wantStores(map[string]values{"agent": {Bytes: 10, Up: drain.UpYes}})
	if n := d.State().Open; n != 1 {
		t.Errorf("%d stores are open", n)
	}
	w.Count(storetest.TxBytes, 1)
	w.Exit()
	must.OK(t, os.Remove(w.Path()))
	x.round(d)
	x.wantStores(map[string]values{"agent": {Bytes: 11, Up: drain.UpNo}})
	x.round(d)
	if n := count[drain.Read](x.owner); n != 3 || d.State().Open != 0 || len(d.stores.files) != 0 {
		t.Errorf("%d messages, %d stores are open, %d files are known", n, d.State().Open, len(d.stores.files))
	}
}

func TestInvalidStoreIsRefusedWithOneNotice(t *testing.T) {
	x := newFixture(t)
	d := x.directory(withStores)
	path := x.path(storetest.Real)
	must.OK(t, os.WriteFile(path, storetest.Bytes(t)[:1000], 0o600))
	storetest.Create(t, x.dir, storetest.Config{}).Count(storetest.TxBytes, 1)
	x.round(d)
	x.round(d)
	x.wantStores(map[string]values{"agent": {Bytes: 1, Up: drain.UpYes}})
	wantRefusals(t, d, map[string]string{path: "invalid"})
	reported := x.noticesOf(notice.MPStoreRefused)
	if len(reported) != 1 || reported[0].Path != path || !strings.Contains(reported[0].String(), "file has 1000 bytes") {
		t.Errorf("notices = %v", reported)
	}
	remove(t, path)
	x.round(d)
	wantRefusals(t, d, map[string]string{})
}

// Links and FIFOs aren't opened. NIXL's other files are ignored, and so is a directory.
func TestOnlyRegularFilesWithStoreNamesAreRead(t *testing.T) {
	x := newFixture(t)
	d := x.directory(withStores)
	elsewhere := filepath.Join(t.TempDir(), storetest.Real)
	must.OK(t, os.WriteFile(elsewhere, storetest.Bytes(t), 0o600))
	link, fifo := x.path("nixl.1.1.1.mmap"), x.path("nixl.2.2.2.mmap")
	for _, err := range []error{os.Symlink(elsewhere, link), syscall.Mkfifo(fifo, 0o600), os.Mkdir(x.path("nixl.3.3.3.mmap"), 0o700)} {
		must.OK(t, err)
	}
	for _, name := range []string{"nixl.1.2.mmap", "nixl.a.2.3.mmap", "nixl.1.99999999999999999999.3.mmap", "nixl.1.2.3.mmap.staging"} {
		touch(t, x.path(name), string(storetest.Bytes(t)))
	}
	touch(t, x.path("nixl-owner.0.0.0.0:9400.lock"), "")
	x.round(d)
	x.advance(startTimeout + time.Second)
	x.round(d)
	x.wantStores(map[string]values{})
	wantRefusals(t, d, map[string]string{link: "invalid", fifo: "invalid"})
	for name := range d.records {
		if strings.HasSuffix(name, ".lock") || strings.HasSuffix(name, ".staging") {
			t.Errorf("%s is treated as a ring", name)
		}
	}
}

// The values that were read before stay in the totals.
func TestTruncatedStoreIsRefused(t *testing.T) {
	x := newFixture(t)
	x.now = time.Now()
	d := x.directory(withStores)
	w := storetest.Create(t, x.dir, storetest.Config{})
	w.Count(storetest.TxBytes, 3)
	x.round(d)
	must.OK(t, os.Truncate(w.Path(), 1024))
	d.stores.readAll()
	x.wantStores(map[string]values{"agent": {Bytes: 3, Up: drain.UpNo}})
	x.round(d)
	wantRefusals(t, d, map[string]string{w.Path(): "invalid"})
	if reported := x.noticesOf(notice.MPStoreRefused); len(reported) != 1 {
		t.Errorf("notices = %v", reported)
	}
}

func TestStoresAreSelectedByOwnerAndAgentName(t *testing.T) {
	x := newFixture(t)
	for i, name := range []string{"decode-0", "decode-1", "prefill-0"} {
		storetest.Create(t, x.dir, storetest.Config{Agent: name, PID: int64(i + 1)})
	}
	d := x.directory(func(c *Config) {
		withStores(c)
		c.Include, c.Exclude = []string{"decode-*"}, []string{"*-1"}
	})
	x.round(d)
	x.wantStores(map[string]values{"decode-0": {Up: drain.UpYes}})
	wantRefusals(t, d, map[string]string{})
	x.owner.takeMessages()
	others := x.directory(func(c *Config) {
		withStores(c)
		c.AllowedUIDs = []uint32{uint32(os.Getuid()) + 1}
	})
	x.round(others)
	x.wantStores(map[string]values{})
	for path, r := range others.State().Refused {
		if r.Reason != "owner" {
			t.Errorf("%s: %+v", path, r)
		}
	}
	if n := len(others.State().Refused); n != 3 {
		t.Errorf("%d stores are refused, want 3", n)
	}
}

// The limit applies to stores of running processes, and to agents that have exited but are
// still reported.
func TestStoreBeyondLimitIsRefusedUntilAnotherRetires(t *testing.T) {
	x := newFixture(t)
	x.now = time.Now()
	d := x.directory(func(c *Config) {
		withStores(c)
		c.Rings = NewRings(1)
	})
	first := storetest.Create(t, x.dir, storetest.Config{Agent: "first", PID: 1})
	x.round(d)
	second := storetest.Create(t, x.dir, storetest.Config{Agent: "second", PID: 2})
	x.round(d)
	first.Exit()
	x.round(d)
	x.wantStores(map[string]values{"first": {Up: drain.UpNo}})
	wantRefusals(t, d, map[string]string{second.Path(): "limit"})
	if reported := x.noticesOf(notice.MPStoreLimit); len(reported) != 1 {
		t.Errorf("notices = %v", reported)
	}
	// A new process of the agent takes the place of the previous one.
	again := storetest.Create(t, x.dir, storetest.Config{Agent: "first", PID: 3})
	x.round(d)
	again.Exit()
	x.round(d)
	d.Retire(drain.Agent{ID: storeID(x.dir, "host", "first"), Path: again.Path()}, nil)
	x.round(d)
	x.round(d)
	x.wantStores(map[string]values{"first": {Up: drain.UpNo}, "second": {Up: drain.UpYes}})
	wantRefusals(t, d, map[string]string{})
}

func TestOldStoresAreMarked(t *testing.T) {
	x := newFixture(t)
	x.now = time.Now()
	const uptime = time.Hour
	for name, updated := range map[string]time.Duration{
		"long ago": uptime - 2*time.Minute, "just now": uptime - time.Second, "before the start": 2 * uptime,
	} {
		w := storetest.Create(t, x.dir, storetest.Config{Agent: name, PID: int64(updated)})
		w.Updated(updated)
		w.Exit()
	}
	d := x.directory(func(c *Config) {
		withStores(c)
		c.Stores.Uptime = func() (time.Duration, error) { return uptime, nil }
	})
	x.round(d)
	x.wantStores(map[string]values{
		"long ago": {Up: drain.UpNo, Old: true}, "just now": {Up: drain.UpNo}, "before the start": {Up: drain.UpNo, Old: true},
	})
}

// A collection doesn't wait for a directory whose file system still hangs.
func TestReadReturnsAtOnceWhileAnEarlierReadHangs(t *testing.T) {
	x := newFixture(t)
	d := x.directory(withStores)
	storetest.Create(t, x.dir, storetest.Config{})
	x.round(d)
	read := func() (done chan struct{}) {
		done = make(chan struct{})
		d.Read(func() { close(done) })
		return done
	}
	first := read() // the directory's goroutine doesn't run it yet
	select {
	case <-first:
		t.Error("the first call of done came too early")
	default:
	}
	<-read()
	d.runSubmitted()
	<-first
	select {
	case <-read():
		t.Error("a Read after the hang doesn't read")
	default:
	}
}

func TestStoresInVolumesAreReadUntilTheirPodIsDeleted(t *testing.T) {
	x := newPods(t, func(c *WatcherConfig) { withStores(&c.Config) })
	dir := filepath.Join(x.dir, "uid-1", "volumes", "kubernetes.io~empty-dir", "shm")
	must.OK(t, os.MkdirAll(dir, 0o750))
	w := storetest.Create(t, dir, storetest.Config{})
	x.look()
	x.wantStores(map[string]values{"agent": {Up: drain.UpYes}})
	m := await(x.owner, func(drain.Read) bool { return true })
	a := m[0].Store.Agent
	uid, _ := a.Resource.Value(semconv.K8SPodUID)
	if a.ID != storeID("uid-1 shm", "host", "agent") || uid.AsString() != "uid-1" || a.Dir != "shm" {
		t.Errorf("agent = %+v", a)
	}
	w.Count(storetest.TxBytes, 5)
	w.Exit()
	must.OK(t, os.RemoveAll(filepath.Join(x.dir, "uid-1")))
	x.look()
	x.wantStores(map[string]values{"agent": {Bytes: 5, Up: drain.UpNo}})
	x.look() // forgets directories whose stores are closed
	if s := x.watcher.State(); s.Open != 0 {
		t.Errorf("%d stores are open", s.Open)
	}
}
