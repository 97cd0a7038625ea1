// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
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
	for i := range n {
		w := storetest.Create(b, dir, storetest.Config{Agent: fmt.Sprint(i), PID: int64(i + 1), Bounds: nixlBounds})
		w.Transfer(0, 10, 20, 5)
	}
	reporter := notice.New(func(notice.Notice) {}, time.Now)
	d, err := New(Config{Dir: dir, Rings: discover.NewRings(n), StaleAfter: time.Hour, Histograms: true, Notices: reporter})
	if err != nil {
		b.Fatal(err)
	}
	defer reporter.Close()
	defer d.end()
	collect := func(walk bool) {
		c := &Collection{from: d, read: make(chan struct{}), stored: make(chan bool, 1)}
		if d.collect(c, walk); len(c.buffers.snapshots) != n {
			b.Fatalf("%d agents", len(c.buffers.snapshots))
		}
		c.Release()
	}
	collect(true)
	b.ReportAllocs()
	for b.Loop() {
		for _, a := range d.order {
			if busy {
				a.processes[0].values.Sums[0] = tally.Sum{}
			}
		}
		collect(false)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/store")
}

var nixlBounds = []float64{
	10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1e6, 5e6, 1e7,
}
