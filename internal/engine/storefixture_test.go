// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package engine

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// waitLimit is the maximum time that a test waits for an event.
const waitLimit = 30 * time.Second

const staleAfter = 5 * time.Minute

// fixture is a directory of stores with a clock, a storage extension, and the reported
// notices.
type fixture struct {
	t       *testing.T
	dir     string
	storage *storage // nil for none
	late    bool     // the clock was advanced since the last collection

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
	x.now, x.late = x.now.Add(d), true
}

func (x *fixture) report(n notice.Notice) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.notices = append(x.notices, n)
}

// collector is a started Engine.
type collector struct {
	*Engine

	x    *fixture
	stop func()
}

// start starts an Engine, as a starting Collector does. It is stopped at the end of the test,
// or earlier by stop.
func (x *fixture) start(change ...func(*Config)) *collector {
	x.t.Helper()
	cfg := Config{Directories: []string{x.dir}, Stores: true, StaleAfter: staleAfter, Report: x.report, Now: x.clock}
	for _, f := range change {
		f(&cfg)
	}
	h, err := New(cfg)
	if err != nil {
		x.t.Fatal(err)
	}
	var storage checkpoint.Storage
	if x.storage != nil {
		storage = x.storage
	}
	if err := h.Start(storage); err != nil {
		x.t.Fatal(err)
	}
	r := &collector{Engine: h, x: x}
	r.stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		if err := h.Stop(ctx); err != nil {
			x.t.Error(err)
		}
	})
	x.t.Cleanup(r.stop)
	return r
}

// collect collects once, after a search for new stores and exited processes.
func (r *collector) collect() map[string]drain.Snapshot {
	r.x.t.Helper()
	if r.x.late {
		r.x.late = false
		r.hold(true) // does what is due, which this collection may not include yet
	}
	agents, c := r.hold(true)
	r.Delivered(c)
	return agents
}

// hold collects once, and returns the collection too.
func (r *collector) hold(search bool) (map[string]drain.Snapshot, drain.Collection) {
	r.x.t.Helper()
	r.refreshed.Store(!search)
	c, err := r.Collect(r.x.t.Context(), false)
	if err != nil {
		r.x.t.Fatal(err)
	}
	agents := make(map[string]drain.Snapshot)
	for _, s := range c.Snapshots {
		if _, again := agents[s.Name]; again {
			r.x.t.Errorf("agent %s is reported twice", s.Name)
		}
		agents[s.Name] = s
	}
	return agents, c
}

// first collects until an agent is reported, because its checkpoint must be loaded first.
func (r *collector) first() (agents map[string]drain.Snapshot) {
	r.x.t.Helper()
	must.EventuallyTrue(r.x.t, "agent", func() bool {
		agents = r.collect()
		return len(agents) > 0
	})
	return agents
}

// noticesOf returns the notices of a kind.
func (r *collector) noticesOf(k notice.Kind) (list []notice.Notice) {
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

// storage is a storage extension.
type storage struct {
	delay time.Duration // of each transaction

	mu           sync.Mutex
	values       map[string][]byte
	broken       bool
	transactions int
}

func newStorage() *storage { return &storage{values: make(map[string][]byte)} }

func (m *storage) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], nil
}

func (m *storage) Apply(_ context.Context, ops []checkpoint.Op) error {
	<-time.After(m.delay)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.transactions++
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

// count returns the number of transactions.
func (m *storage) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.transactions
}

// copyOf returns a copy of the storage, which a Collector that is killed now leaves.
func (m *storage) copyOf() *storage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &storage{values: maps.Clone(m.values)}
}
