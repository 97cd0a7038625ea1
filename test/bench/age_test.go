// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package bench

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// BenchmarkAge measures the age of an event when the backend receives it. A ring
// gets one event each millisecond, and the backend records when it receives each
// total. It runs for BENCH_SECONDS at a collection interval of 2 s.
func BenchmarkAge(b *testing.B) {
	const interval = 2 * time.Second
	duration := time.Duration(number(b, "BENCH_SECONDS", 30)) * time.Second
	for b.Loop() {
		var pushed []time.Time
		s, dir := otlpfile.NewSink(b), ringtest.MemoryDir(b)
		start(b, dir, s.URL(), fmt.Sprintf("receivers: {nixl_shm: {collection_interval: %v}}", interval))
		w, err := ringbuf.Create(filepath.Join(dir, "agent"), ringbuf.V4, slots)
		must.OK(b, err)
		each := time.NewTicker(time.Millisecond)
		for began := time.Now(); time.Since(began) < duration; <-each.C {
			pushed = append(pushed, time.Now())
			must.OK(b, w.Push(ringbuf.NewEvent(ringbuf.TypeTxRequests, 1)))
		}
		each.Stop()
		must.OK(b, w.Close())
		var ages []float64
		received := s.Received()
		for i, m := range s.Collections() {
			for events := int(eventsIn(m)); len(ages) < events; {
				ages = append(ages, float64(received[i].Sub(pushed[len(ages)]))/float64(time.Millisecond))
			}
		}
		if len(ages) == 0 {
			b.Fatal("the backend received no events")
		}
		b.ReportMetric(quantile(ages, 0.99)-float64(interval.Milliseconds()), "ms-p99-beyond")
		b.ReportMetric(quantile(ages, 0.5), "ms-p50")
		b.ReportMetric(float64(interval.Milliseconds()), "ms-interval")
		b.ReportMetric(0, "ns/op")
	}
}
