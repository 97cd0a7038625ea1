// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"path/filepath"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/simulate"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// BenchmarkInterval measures one run interval of an agent at 10,000 transfers/s, including a
// reader that drains the ring.
func BenchmarkInterval(b *testing.B) {
	for _, layout := range ringbuf.Layouts() {
		b.Run(layout.String(), func(b *testing.B) {
			a, err := simulate.New(simulate.Config{
				Path:  filepath.Join(b.TempDir(), "agent"),
				Lives: []simulate.Life{{Layout: layout, Capacity: 8192}}, Rate: 10_000,
			})
			must.OK(b, err)
			must.OK(b, a.Start())
			r, err := ringbuf.OpenReader(a.Path(), ringbuf.Consume)
			must.OK(b, err)
			defer r.Close()
			b.ReportAllocs()
			for b.Loop() {
				must.OK(b, a.Interval())
				if _, err := r.Read(0, func(ringbuf.Batch) {}); err != nil {
					b.Fatal(err)
				}
				must.OK(b, r.Commit())
			}
			t := a.Totals()
			if t.Dropped() > 0 {
				b.Errorf("%d events dropped", t.Dropped())
			}
			b.ReportMetric(float64(t.Written.Events.Events)/b.Elapsed().Seconds(), "events/s")
			must.OK(b, a.Stop())
		})
	}
}
