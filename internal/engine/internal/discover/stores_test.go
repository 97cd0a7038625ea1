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
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/storetest"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// stores does the periodic work of a directory, and describes the stores that a collection gets.
func (x *fixture) stores(d *Directory) (list []string) {
	x.round(d)
	for _, s := range d.readAll() {
		list = append(list, describe(s))
	}
	return list
}

func withStores(c *options) {
	c.Stores = &Stores{Limit: 1000, StaleAfter: time.Minute, Histograms: true}
}

// An open file keeps its volume in use.
func TestStoresThatAreNotReadAreClosed(t *testing.T) {
	x := newFixture(t)
	d := x.directory(withStores)
	writers := make(map[string]*storetest.Writer)
	for i, what := range []string{"exited", "truncated", "at the end"} {
		writers[what] = storetest.Create(t, x.dir, storetest.Config{PID: int64(i + 1)})
	}
	x.round(d)
	stores := make(map[string]*store)
	for what, w := range writers {
		stores[what] = d.records[w.Path()].store
	}
	writers["exited"].Exit()
	must.OK(t, os.Truncate(writers["truncated"].Path(), 100))
	d.readAll()
	closed := func() (list []string) {
		for what, s := range stores {
			if _, err := s.Running(); errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EBADF) {
				list = append(list, what)
			}
		}
		slices.Sort(list)
		return list
	}
	before := closed()
	d.end()
	want := [][]string{{"exited", "truncated"}, {"at the end", "exited", "truncated"}}
	if diff := cmp.Diff(want, [][]string{before, closed()}); diff != "" {
		t.Errorf("closed before and after the end (-want +got):\n%s", diff)
	}
}

// Neither a store that isn't selected nor a directory that was removed with its container is kept open.
func TestNothingIsKeptOpenInVain(t *testing.T) {
	x := newFixture(t)
	storetest.Create(t, x.dir, storetest.Config{Agent: "other"})
	d := x.directory(func(o *options) {
		withStores(o)
		o.Include, o.Hold = []string{"agent"}, true
	})
	open := func() (n int) {
		list, err := os.ReadDir("/proc/self/fd")
		must.OK(t, err)
		for _, fd := range list {
			if path, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.HasPrefix(path, x.dir) {
				n++
			}
		}
		return n
	}
	before := open()
	x.round(d)
	if n := open(); n != before+1 || d.opened == nil {
		t.Errorf("%d files are open, %d before", n, before)
	}
	d.abandon()
	d.runCalls()
	if n := open(); n != before {
		t.Errorf("%d files are open after the container was removed, %d before", n, before)
	}
}

// A backend tells the processes of an agent apart, so a sum over all series is that over all processes.
func TestEachProcessIsReportedByItself(t *testing.T) {
	x := newFixture(t)
	d := x.directory(func(c *options) {
		withStores(c)
		c.Stores.Stream = func(s *drain.Snapshot) attribute.Set { return attribute.NewSet(attribute.String("id", s.ID)) }
		c.Identify = func(a drain.Agent, _ files.ID, _ time.Time) attributed {
			if a.ID = "pod"; strings.Contains(a.Path, "nixl.2.") {
				a.Process = attribute.NewSet(attribute.Int(semconv.ProcessPID, 1002)) // on the host
			}
			return attributed{Agent: a}
		}
	})
	want, got := make(map[string]string), make(map[string]string)
	hour := x.now.Add(-time.Hour)
	for i, p := range []struct {
		storetest.Config
		want string
	}{
		{storetest.Config{PID: 1, Rank: "0", Started: hour}, "agent 1 exited 0 rank 0 for 1h0m0s"}, // and restarts
		{storetest.Config{PID: 1, Rank: "0", Started: x.now}, "agent 1 runs 10 rank 0 for 0s"},
		{storetest.Config{PID: 2, Rank: "1", Started: hour}, "agent 1002 runs 20 rank 1 for 1h0m0s"},
		{storetest.Config{PID: 2, Agent: "other", Started: hour, Instance: 1}, "other 1002 runs 30 rank  for 1h0m0s"},
	} {
		w := storetest.Create(t, x.dir, p.Config)
		if w.Count(storetest.TxBytes, uint64(10*i)); i == 0 {
			w.Exit()
		}
		id := "pod " + w.Name()
		want[id] = p.want + ", stream " + id + " in " + x.dir
	}
	x.round(d)
	for _, s := range d.readAll() {
		rank, _ := s.Resource.Value(semconv.LocalRank)
		id, _ := s.Stream.Value("id")
		got[s.ID] = fmt.Sprintf("%s %s rank %s for %v, stream %s in %s", s.Name, describe(s), rank.AsString(), x.now.Sub(s.Start), id.AsString(), s.Dir)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stores (-want +got):\n%s", diff)
	}
}

// Two containers may see the same directory.
func TestStoreInTwoDirectoriesIsReportedByOne(t *testing.T) {
	x := newFixture(t)
	stores, again := &Stores{Limit: 1000}, t.TempDir()
	with := func(dir string) *Directory {
		return x.directory(func(c *options) { c.Path, c.Stores = dir, stores })
	}
	one, two := with(x.dir), with(again)
	w := storetest.Create(t, x.dir, storetest.Config{PID: 1})
	must.OK(t, os.Link(w.Path(), filepath.Join(again, w.Name())))
	first, second := x.stores(one), x.stores(two)
	if n := len(two.state().Refused); n != 0 {
		t.Errorf("%d files are refused", n)
	}
	one.end()
	x.advance(maxRetry)
	want := [][]string{{"1 runs 0"}, nil, {"1 runs 0"}}
	if diff := cmp.Diff(want, [][]string{first, second, x.stores(two)}); diff != "" {
		t.Errorf("stores of one, of two, and of two after the end of one (-want +got):\n%s", diff)
	}
}

// Otherwise, all points would be in the future.
func TestStoreStartsAgainWhenTheClockIsSetBackToBeforeItsStart(t *testing.T) {
	x := newFixture(t)
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

func TestContainerCannotUseTheStoresOfOthers(t *testing.T) {
	c := &Stores{Limit: 1000}
	claim := func(h drain.Holder, from, n uint64) (claimed int) {
		for i := range n {
			if c.claim(storeKey{file: files.ID{Ino: from + i}}, h) == nil {
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
	c.release(storeKey{})
	if n := claim(hostile, 30_000, 2); n != 1 {
		t.Errorf("a container gets %d stores for one that it no longer has", n)
	}
}

func TestDirectoriesOfAContainerShareItsLimitOnStores(t *testing.T) {
	x := newFixture(t)
	stores, reported := &Stores{Limit: 1000}, 0
	for dir, n := range map[string]int{x.dir: maxStores, t.TempDir(): 2} {
		for i := range n {
			storetest.Create(t, dir, storetest.Config{PID: int64(i + 1)})
		}
		d := x.directory(func(c *options) { c.Path, c.Stores = dir, stores })
		d.at.Holder = drain.Holder{Container: "c"}
		x.round(d)
		reported += len(d.readAll())
	}
	if reported != maxStores {
		t.Errorf("%d stores are reported, want %d", reported, maxStores)
	}
}

func TestStoreMayHaveTheInodeOfARemovedOne(t *testing.T) {
	c := &Stores{Limit: 2}
	var got []error
	for _, name := range []string{"first", "second", "second"} {
		got = append(got, c.claim(storeKey{files.ID{Ino: 1}, name}, drain.Holder{}))
	}
	if want := []error{nil, nil, errTaken}; !slices.Equal(got, want) {
		t.Errorf("errors are %v, want %v", got, want)
	}
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

func TestUnknownTypesOfAStoreAreReportedOnce(t *testing.T) {
	x := newFixture(t)
	d := x.directory(withStores)
	w := storetest.Create(t, x.dir, storetest.Config{Slots: 23})
	for _, change := range []func(){func() {}, func() { w.Count(21, 1) }, func() { w.Count(22, 1) }} {
		change()
		x.stores(d)
		x.stores(d)
	}
	var texts []string
	for _, n := range x.noticesOf(notice.EventsUnknown) {
		text, _, _ := strings.Cut(strings.TrimPrefix(n.String(), w.Path()), ",")
		texts = append(texts, text)
	}
	want := []string{
		`: agent reports events that this version doesn't know ("unknown_event_21")`,
		`: agent reports events that this version doesn't know ("unknown_event_22")`,
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
