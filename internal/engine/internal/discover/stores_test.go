// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/semconv"
)

func withStores(c *options) {
	c.Stores = &Stores{Limit: 1000, StaleAfter: time.Minute, Histograms: true}
}

// storesFixture is a fixture whose clock shows the time.
func storesFixture(t *testing.T) *fixture {
	t.Helper()
	x := newFixture(t)
	x.advance(time.Since(x.clock()))
	return x
}

// line describes the snapshot of a store, except for its ID.
func line(s drain.Snapshot) string {
	rank, _ := s.Resource.Value(semconv.LocalRank)
	pid, _ := s.Process.Value(semconv.ProcessPID)
	up := map[drain.Up]string{drain.UpYes: "runs", drain.UpNo: "exited"}[s.Up]
	return fmt.Sprintf("%s process %d rank %q %s: %d bytes", s.Name, pid.AsInt64(), rank.AsString(), up, s.Totals.Size(tally.Transmit).Total().Int64())
}

// wantStores does the periodic work of a directory, and compares what a collection gets.
func (x *fixture) wantStores(d *Directory, want ...string) {
	x.t.Helper()
	x.round(d)
	var got []string
	for _, s := range d.readAll() {
		got = append(got, line(s))
	}
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		x.t.Errorf("stores (-want +got)\n%s", d)
	}
}

func wantRefusals(t *testing.T, d *Directory, want map[string]string) {
	t.Helper()
	got := make(map[string]string)
	for path, r := range d.state().Refused {
		got[path] = r.Reason
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refused (-want +got)\n%s", diff)
	}
}

// A removed store is reported like any other.
func TestStoreIsReportedUntilItsProcessExitedAndItsLastValuesAreOld(t *testing.T) {
	x := storesFixture(t)
	d := x.directory(withStores)
	w := storetest.Create(t, x.dir, storetest.Config{PID: 7})
	w.Count(storetest.TxBytes, 7)
	x.wantStores(d, `agent process 7 rank "" runs: 7 bytes`)
	w.Count(storetest.TxBytes, 3)
	w.Updated(storetest.Uptime(t) - time.Hour)
	x.wantStores(d, `agent process 7 rank "" runs: 10 bytes`) // it is idle
	w.Count(storetest.TxBytes, 1)
	w.Exit()
	must.OK(t, os.Remove(w.Path()))
	x.round(d)
	if n := d.state().Open; n != 1 {
		t.Errorf("%d stores are reported, want 1", n)
	}
	if _, err := d.records[w.Path()].store.Running(); !errors.Is(err, os.ErrClosed) && !errors.Is(err, syscall.EBADF) {
		t.Errorf("error is %v, but an open file keeps its volume in use", err)
	}
	x.wantStores(d, `agent process 7 rank "" exited: 11 bytes`) // no collection had the last values
	x.wantStores(d)
	x.wantStores(d)
	if n := d.state().Open; n != 0 || len(d.records) != 0 {
		t.Errorf("%d stores are reported, %d files are known", n, len(d.records))
	}
}

// An open file keeps its volume in use.
func TestStoresThatAreNotReportedAreClosed(t *testing.T) {
	x := storesFixture(t)
	d := x.directory(withStores)
	other, w := storetest.Create(t, x.dir, storetest.Config{PID: 1}), storetest.Create(t, x.dir, storetest.Config{PID: 2})
	x.round(d)
	kept, dropped := d.records[other.Path()].store, d.records[w.Path()].store
	must.OK(t, os.Truncate(w.Path(), 100))
	d.readAll()
	if _, err := dropped.Running(); !errors.Is(err, os.ErrClosed) && !errors.Is(err, syscall.EBADF) {
		t.Errorf("after a store was truncated, the error is %v", err)
	}
	d.end()
	if _, err := kept.Running(); !errors.Is(err, os.ErrClosed) && !errors.Is(err, syscall.EBADF) {
		t.Errorf("at the end, the error is %v", err)
	}
}

// A backend tells the processes of an agent apart, so a sum over all series is that over all processes.
func TestEachProcessIsReportedByItself(t *testing.T) {
	x := storesFixture(t)
	d := x.directory(func(c *options) {
		withStores(c)
		c.Stores.Stream = func(s *drain.Snapshot) attribute.Set { return attribute.NewSet(attribute.String("id", s.ID)) }
		c.IdentifyStore = func(a drain.Agent, pid int64) drain.Agent {
			if a.ID = "pod"; pid == 2 {
				a.Process = attribute.NewSet(attribute.Int(semconv.ProcessPID, 1002)) // on the host
			}
			return a
		}
	})
	started := x.now.Add(-time.Hour)
	first := storetest.Create(t, x.dir, storetest.Config{PID: 1, Rank: "0", Started: started})
	first.Count(storetest.TxBytes, 1)
	first.Exit() // the agent restarts
	for i, c := range []storetest.Config{
		{PID: 1, Rank: "0"}, {PID: 2, Rank: "1", Started: started}, {PID: 2, Agent: "other", Started: started, Instance: 1},
	} {
		storetest.Create(t, x.dir, c).Count(storetest.TxBytes, uint64(10*(i+1)))
	}
	x.wantStores(d, `agent process 1 rank "0" exited: 1 bytes`, `agent process 1 rank "0" runs: 10 bytes`,
		`agent process 1002 rank "1" runs: 20 bytes`, `other process 1002 rank "" runs: 30 bytes`)
	ids := make(map[string]bool)
	for _, s := range d.readAll() {
		ids[s.ID] = true
		id, _ := s.Stream.Value("id")
		if s.ID != "pod "+filepath.Base(s.Path) || id.AsString() != s.ID || !s.Store || s.Dir != x.dir || s.Start.After(x.now) {
			t.Errorf("snapshot is %+v", s)
		}
		if s.ID == "pod "+first.Name() && !s.Start.Equal(started) {
			t.Errorf("values start at %v, want the start of the process, %v", s.Start, started)
		}
	}
	if len(ids) != 4 {
		t.Errorf("IDs are %v", ids)
	}
}

// Otherwise, all points would be in the future.
func TestStoreStartsAgainWhenTheClockIsSetBackToBeforeItsStart(t *testing.T) {
	x := storesFixture(t)
	d := x.directory(withStores)
	storetest.Create(t, x.dir, storetest.Config{Started: x.now})
	x.advance(-time.Hour)
	x.round(d)
	for range 2 {
		if s := d.readAll(); len(s) != 1 || !s[0].Start.Equal(x.now) {
			t.Errorf("snapshots are %v, want one from %v on", s, x.now)
		}
		defer x.advance(time.Minute)
	}
}

func TestStoreThatCannotBeReportedAffectsNoOther(t *testing.T) {
	write := func(b []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			t.Helper()
			must.OK(t, os.WriteFile(path, b, 0o600))
		}
	}
	bytes := storetest.Bytes(t)
	const name = storetest.Real
	for _, tt := range []struct {
		what, name string
		create     func(t *testing.T, path string)
		reason     string // "" if the file is ignored
		text       string // of the notice
	}{
		{"truncated", name, write(bytes[:1000]), "invalid", "file has 1000 bytes"},
		{"other version", name, write(append(append([]byte("NIXLMPS1"), 2), bytes[9:]...)), "version", "update the reader"},
		{"link", name, func(t *testing.T, path string) {
			t.Helper()
			elsewhere := filepath.Join(t.TempDir(), name)
			write(bytes)(t, elsewhere)
			must.OK(t, os.Symlink(elsewhere, path))
		}, "", ""},
		{"FIFO", name, func(t *testing.T, path string) { t.Helper(); must.OK(t, syscall.Mkfifo(path, 0o600)) }, "", ""},
		{"other owner", name, func(t *testing.T, path string) {
			t.Helper()
			write(bytes)(t, path)
			if err := os.Chown(path, 12345, -1); err != nil {
				t.Skip(err)
			}
		}, "owner", "retrying: the file belongs to uid 12345"},
		{"directory", name, func(t *testing.T, path string) { t.Helper(); must.OK(t, os.Mkdir(path, 0o700)) }, "", ""},
		{"no instance", "nixl.1.2.mmap", write(bytes), "", ""},
		{"no PID", "nixl.a.2.3.mmap", write(bytes), "", ""},
		{"staging", "nixl.1.2.3.mmap.staging", write(bytes), "", ""},
		{"lock", "nixl-owner.0.0.0.0:9400.lock", write(nil), "", ""},
		{"process exited long ago", name, write(bytes), "", ""},
		{"from before the machine was started", name, func(t *testing.T, path string) {
			t.Helper()
			w := storetest.Create(t, filepath.Dir(path), storetest.Config{PID: 2})
			w.Updated(2 * storetest.Uptime(t))
			w.Exit()
		}, "", ""},
		{"not included", name, func(t *testing.T, path string) {
			t.Helper()
			storetest.Create(t, filepath.Dir(path), storetest.Config{PID: 2, Agent: "another"})
		}, "", ""},
		{"excluded", name, func(t *testing.T, path string) {
			t.Helper()
			storetest.Create(t, filepath.Dir(path), storetest.Config{PID: 2, Agent: "agent-x"})
		}, "", ""},
	} {
		t.Run(tt.what, func(t *testing.T) {
			x := storesFixture(t)
			d := x.directory(func(c *options) {
				withStores(c)
				c.Include, c.Exclude, c.AllowedUIDs = []string{"agent*"}, []string{"*-x"}, []uint32{uint32(os.Getuid())}
			})
			path := x.path(tt.name)
			tt.create(t, path)
			storetest.Create(t, x.dir, storetest.Config{PID: 1})
			x.wantStores(d, `agent process 1 rank "" runs: 0 bytes`)
			x.advance(2 * time.Minute) // the file is tried again, and a line may be repeated
			x.wantStores(d, `agent process 1 rank "" runs: 0 bytes`)
			want, notices := map[string]string{}, 0
			if tt.reason != "" {
				want[path], notices = tt.reason, 1
			}
			wantRefusals(t, d, want)
			reported := x.noticesOf(notice.MPStoreRefused)
			if len(reported) != notices {
				t.Errorf("notices are %v, want %d", reported, notices)
			}
			for _, n := range reported {
				if n.Path != path || !strings.Contains(n.String(), tt.text) {
					t.Errorf("notice is %v, want %q about %s", n, tt.text, path)
				}
			}
			must.OK(t, os.RemoveAll(path))
			x.round(d)
			wantRefusals(t, d, map[string]string{})
		})
	}
}

func TestStoreThatIsTruncatedLaterIsNotReportedUntilItIsReplaced(t *testing.T) {
	x := storesFixture(t)
	d := x.directory(withStores)
	w := storetest.Create(t, x.dir, storetest.Config{Started: x.now})
	x.wantStores(d, `agent process 1000 rank "" runs: 0 bytes`)
	must.OK(t, os.Truncate(w.Path(), 1024))
	x.wantStores(d)
	x.wantStores(d)
	wantRefusals(t, d, map[string]string{w.Path(): "invalid"})
	if n := d.state().Open; n != 0 {
		t.Errorf("%d stores are reported, want none", n)
	}
	must.OK(t, os.Remove(w.Path()))
	storetest.Create(t, x.dir, storetest.Config{Started: x.now}).Count(storetest.TxBytes, 1)
	x.wantStores(d, `agent process 1000 rank "" runs: 1 bytes`)
	wantRefusals(t, d, map[string]string{})
}

func TestStoreBeyondLimitIsReportedOnceAnotherIsNot(t *testing.T) {
	x := storesFixture(t)
	d := x.directory(func(c *options) {
		withStores(c)
		c.Stores.Limit = 1
	})
	first := storetest.Create(t, x.dir, storetest.Config{PID: 1})
	x.round(d)
	second := storetest.Create(t, x.dir, storetest.Config{PID: 2})
	x.wantStores(d, `agent process 1 rank "" runs: 0 bytes`)
	wantRefusals(t, d, map[string]string{second.Path(): "limit"})
	if reported := x.noticesOf(notice.RingLimit); len(reported) != 1 || reported[0].Path != x.dir {
		t.Errorf("notices are %v", reported)
	}
	first.Updated(storetest.Uptime(t) - time.Hour)
	first.Exit()
	x.wantStores(d, `agent process 1 rank "" exited: 0 bytes`)
	x.round(d)
	x.advance(maxRetry)
	x.wantStores(d, `agent process 2 rank "" runs: 0 bytes`)
	wantRefusals(t, d, map[string]string{})
}

func TestContainerCannotUseTheStoresOfOthers(t *testing.T) {
	c := &Stores{Limit: 1000}
	claim := func(h drain.Holder, from, n uint64) (claimed int) {
		for i := range n {
			if c.claim(files.ID{Ino: from + i}, "", h) == nil {
				claimed++
			}
		}
		return claimed
	}
	hostile, other := drain.Holder{Container: "hostile"}, drain.Holder{Container: "other"}
	if n := claim(hostile, 0, 2*maxStores); n != maxStores {
		t.Errorf("a container has %d stores, want %d", n, maxStores)
	}
	if n := claim(other, 10_000, 1); n != 1 {
		t.Error("another container has no store")
	}
	if n := claim(drain.Holder{Place: "/stores", Shared: true}, 20_000, 1000); n != 1000-maxStores-1 {
		t.Errorf("a directory has %d stores, want all that are left", n)
	}
	c.release(files.ID{}, "")
	if n := claim(hostile, 30_000, 2); n != 1 {
		t.Errorf("a container gets %d stores for one that it no longer has", n)
	}
}

func TestStoreMayHaveTheInodeOfARemovedOne(t *testing.T) {
	c := &Stores{Limit: 2}
	var got []error
	for _, name := range []string{"first", "second", "second"} {
		got = append(got, c.claim(files.ID{Ino: 1}, name, drain.Holder{}))
	}
	if want := []error{nil, nil, errTaken}; !slices.Equal(got, want) {
		t.Errorf("errors are %v, want %v", got, want)
	}
}

// Two containers may see the same directory.
func TestStoreInTwoDirectoriesIsReportedByOne(t *testing.T) {
	x := storesFixture(t)
	stores, again := &Stores{Limit: 1000}, t.TempDir()
	with := func(dir string) *Directory {
		return x.directory(func(c *options) { c.Path, c.Stores = dir, stores })
	}
	one, two := with(x.dir), with(again)
	w := storetest.Create(t, x.dir, storetest.Config{PID: 1})
	must.OK(t, os.Link(w.Path(), filepath.Join(again, w.Name())))
	x.wantStores(one, `agent process 1 rank "" runs: 0 bytes`)
	x.wantStores(two)
	wantRefusals(t, two, map[string]string{})
	one.end()
	x.advance(maxRetry)
	x.wantStores(two, `agent process 1 rank "" runs: 0 bytes`)
}

// A collection doesn't wait for a directory whose file system hangs.
func TestStoresOfAHungDirectoryAreNotRead(t *testing.T) {
	x := newFixture(t)
	d := x.directory(withStores)
	storetest.Create(t, x.dir, storetest.Config{})
	x.round(d)
	stores := 0
	read := func() { d.readStores(func(list []drain.Snapshot) { stores += len(list) }, func() {}) }
	read()
	d.do(func() {
		x.advance(hangTimeout)
		read()
	})
	d.runCalls()
	if stores != 1 {
		t.Errorf("got %d stores, want 1", stores)
	}
}
