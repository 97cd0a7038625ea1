// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package store

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waitLimit is the maximum time that a test waits for an event.
const waitLimit = 30 * time.Second

const staleAfter = 5 * time.Minute

// fixture is a directory of stores with a clock, a storage extension, and the reported
// notices.
type fixture struct {
	t       *testing.T
	dir     string
	storage *memory // nil for none

	mu      sync.Mutex
	now     time.Time
	notices []notice.Notice
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return &fixture{t: t, dir: t.TempDir(), now: time.Now()}
}

func (x *fixture) clock() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.now
}

func (x *fixture) advance(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now = x.now.Add(d)
}

func (x *fixture) report(n notice.Notice) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.notices = append(x.notices, n)
}

// reader is a started Directory.
type reader struct {
	*Directory

	x     *fixture
	rings *discover.Rings
	stop  func()
}

// read starts a Directory, as a starting Collector does. It is stopped at the end of the
// test, or earlier by stop.
func (x *fixture) read(change ...func(*Config)) *reader {
	x.t.Helper()
	r := &reader{x: x, rings: discover.NewRings(10_000)}
	reporter := notice.New(x.report, x.clock)
	cfg := Config{
		Dir: x.dir, Rings: r.rings, StaleAfter: staleAfter, Histograms: true, Notices: reporter, Now: x.clock,
		ReadTimeout: waitLimit,
	}
	var saver *checkpoint.Saver
	if x.storage != nil {
		saver = checkpoint.NewSaver(checkpoint.Config{Store: x.storage, StaleAfter: staleAfter, Now: x.clock})
		saver.Start()
	}
	cfg.Saver = saver
	for _, f := range change {
		f(&cfg)
	}
	d, err := New(cfg)
	if err != nil {
		x.t.Fatal(err)
	}
	r.Directory = d
	d.Start()
	r.stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		if err := d.Stop(ctx); err != nil {
			x.t.Error(err)
		}
		if saver != nil {
			if err := saver.Stop(ctx); err != nil {
				x.t.Error(err)
			}
		}
		reporter.Close()
	})
	x.t.Cleanup(r.stop)
	return r
}

// collect collects once, after a search for new stores and exited processes.
func (r *reader) collect() map[string]drain.Snapshot {
	r.x.t.Helper()
	agents, c := r.hold(true)
	c.Delivered()
	return agents
}

// hold collects once, and returns the collection too.
func (r *reader) hold(walk bool) (map[string]drain.Snapshot, *Collection) {
	r.x.t.Helper()
	c := r.Collect(walk)
	if c == nil {
		r.x.t.Fatal("an earlier collection hangs")
	}
	agents := make(map[string]drain.Snapshot)
	for _, s := range c.Wait(r.x.t.Context()) {
		if _, again := agents[s.Name]; again {
			r.x.t.Errorf("agent %s is reported twice", s.Name)
		}
		agents[s.Name] = s
	}
	return agents, c
}

// first collects until an agent is reported, because its checkpoint must be loaded first.
func (r *reader) first() map[string]drain.Snapshot {
	r.x.t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(waitLimit); ; <-look.C {
		agents := r.collect()
		switch {
		case len(agents) > 0:
			return agents
		case time.Now().After(end):
			r.x.t.Fatal("no agent was reported")
		}
	}
}

// noticesOf returns the notices of a kind.
func (r *reader) noticesOf(k notice.Kind) (list []notice.Notice) {
	r.notices.Flush()
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	for _, n := range r.x.notices {
		if n.Kind == k {
			list = append(list, n)
		}
	}
	return list
}

// work counts n transfers of 10 bytes that take 20 µs each, including 5 µs for posting.
func work(w *storetest.Writer, n int) {
	for range n {
		w.Transfer(0, 10, 20, 5)
	}
}

// sums are the totals of an agent that tests compare.
type sums struct {
	Bytes, Requests, Transfers int64
	Up                         drain.Up
}

func sumsOf(s drain.Snapshot) sums {
	if s.Totals == nil {
		return sums{}
	}
	return sums{
		Bytes:     s.Totals.Size(tally.Transmit).Total().Int64(),
		Requests:  s.Totals.Requests(tally.Transmit).Sum.Int64(),
		Transfers: int64(s.Totals.Duration().Count()),
		Up:        s.Up,
	}
}

// transfers returns the sums of n transfers by work.
func transfers(n int64, up drain.Up) sums {
	return sums{Bytes: 10 * n, Requests: n, Transfers: n, Up: up}
}

func check(t *testing.T, agents map[string]drain.Snapshot, want map[string]sums) {
	t.Helper()
	got := make(map[string]sums)
	for name, s := range agents {
		got[name] = sumsOf(s)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// memory is a storage extension.
type memory struct {
	mu     sync.Mutex
	values map[string][]byte
	broken bool
}

func newMemory() *memory { return &memory{values: make(map[string][]byte)} }

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], nil
}

func (m *memory) Apply(_ context.Context, ops []checkpoint.Op) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken {
		return errors.New("storage is broken")
	}
	for _, op := range ops {
		if op.Value == nil {
			delete(m.values, op.Key)
		} else {
			m.values[op.Key] = op.Value
		}
	}
	return nil
}

// copyOf returns a copy of the storage, which a Collector that is killed now leaves.
func (m *memory) copyOf() *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &memory{values: maps.Clone(m.values)}
}
