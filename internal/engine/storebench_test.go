// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// BenchmarkStores measures a collection without the search for new stores. All stores or
// none have changed.
func BenchmarkStores(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		for _, state := range []string{"idle", "busy"} {
			b.Run(fmt.Sprintf("%s/stores=%d", state, n), func(b *testing.B) { benchmarkStores(b, n, state == "busy") })
		}
	}
}

func benchmarkStores(b *testing.B, n int, busy bool) {
	dir := b.TempDir()
	writers := make([]*storetest.Writer, n)
	for i := range writers {
		writers[i] = storetest.Create(b, dir, storetest.Config{Agent: fmt.Sprint(i), PID: int64(i + 1), Bounds: nixlBounds})
		writers[i].Transfer(0, 10, 20, 5)
	}
	h := startBench(b, Config{Directories: []string{dir}, Stores: true}, nil)
	collect := func() {
		c, err := h.Collect(b.Context(), false)
		if err != nil || len(c.Snapshots) != n {
			b.Fatalf("%d agents, error %v", len(c.Snapshots), err)
		}
		h.Release(c)
	}
	collect()
	b.ReportAllocs()
	for b.Loop() {
		if busy {
			b.StopTimer()
			for _, w := range writers {
				w.Count(storetest.TxBytes, 1)
			}
			b.StartTimer()
		}
		collect()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/store")
}

var nixlBounds = []float64{
	10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1e6, 5e6, 1e7,
}

// startBench starts an Engine until the end of the benchmark.
func startBench(b testing.TB, cfg Config, storage checkpoint.Storage) *Engine {
	b.Helper()
	h, err := New(cfg)
	if err == nil {
		err = h.Start(storage)
	}
	must.OK(b, err)
	b.Cleanup(func() {
		if err := h.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return h
}

// BenchmarkSavedStores measures a collection of 50 directories with a ring each, alone and
// with 50 directories with a store each. All of them have changed. Each transaction of the
// storage extension takes 5 ms.
func BenchmarkSavedStores(b *testing.B) {
	for _, stores := range []int{0, 50} {
		b.Run(fmt.Sprintf("stores=%d", stores), func(b *testing.B) { benchmarkSavedStores(b, stores) })
	}
}

func benchmarkSavedStores(b *testing.B, stores int) {
	const rings = 50
	x := newMixed(b, rings, stores)
	slow := &storage{values: make(map[string][]byte), delay: 5 * time.Millisecond}
	h := startBench(b, Config{Directories: x.dirs, Stores: true}, slow)
	for {
		c, err := h.Collect(b.Context(), false)
		must.OK(b, err)
		if len(c.Snapshots) == rings+stores {
			break
		}
	}
	before := slow.count()
	for b.Loop() {
		b.StopTimer()
		x.work()
		b.StartTimer()
		c, err := h.Collect(b.Context(), false)
		if err != nil || len(c.Snapshots) != rings+stores {
			b.Fatalf("%d agents, error %v", len(c.Snapshots), err)
		}
		h.Release(c)
	}
	b.ReportMetric(float64(slow.count()-before)/float64(b.N), "transactions")
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/collection")
}

func TestRingsAndStoresOfAllDirectoriesShareTransactions(t *testing.T) {
	const agents = 50
	x := newMixed(t, agents, agents)
	slow := &storage{values: make(map[string][]byte), delay: 5 * time.Millisecond}
	h := startBench(t, Config{Directories: x.dirs, Stores: true}, slow)
	for n := 0; n < 2*agents; {
		c, err := h.Collect(t.Context(), false)
		must.OK(t, err)
		n = len(c.Snapshots)
	}
	x.work()
	before := slow.count()
	_, err := h.Collect(t.Context(), false)
	must.OK(t, err)
	if n := slow.count() - before; n < 1 || n > agents/2 {
		t.Errorf("%d transactions for %d directories", n, 2*agents)
	}
}

// mixed is a number of agents, each in its own directory.
type mixed struct {
	tb     testing.TB
	dirs   []string
	rings  []*ringbuf.Writer
	stores []*storetest.Writer
}

func newMixed(tb testing.TB, rings, stores int) *mixed {
	tb.Helper()
	x := &mixed{tb: tb}
	top := tb.TempDir()
	dir := func(name string) string {
		d := filepath.Join(top, name)
		must.OK(tb, os.Mkdir(d, 0o700))
		x.dirs = append(x.dirs, d)
		return d
	}
	for i := range rings {
		w, err := ringbuf.Create(filepath.Join(dir(fmt.Sprint("ring", i)), "agent"), ringbuf.V4, 4096)
		must.OK(tb, err)
		tb.Cleanup(func() { _ = w.Close() })
		x.rings = append(x.rings, w)
	}
	for i := range stores {
		x.stores = append(x.stores, storetest.Create(tb, dir(fmt.Sprint("store", i)), storetest.Config{PID: int64(i + 1)}))
	}
	return x
}

// work counts a transfer of each agent.
func (x *mixed) work() {
	x.tb.Helper()
	for _, w := range x.rings {
		if err := w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 10)); err != nil {
			x.tb.Fatal(err)
		}
	}
	for _, w := range x.stores {
		w.Transfer(0, 10, 20, 5)
	}
}
