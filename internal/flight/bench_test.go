// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package flight

import (
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// BenchmarkDrain drains a ring with 1,000 transfers, without and with a recorder, in turn,
// so that other load on the machine affects both.
func BenchmarkDrain(b *testing.B) {
	const count = 1000
	path := filepath.Join(b.TempDir(), "a")
	w, err := ringbuf.Create(path, ringbuf.V4, 8192)
	must.OK(b, err)
	reader, err := ringbuf.OpenReader(path, ringbuf.Consume)
	must.OK(b, err)
	shape, err := tally.NewShape(tally.Config{})
	must.OK(b, err)
	agent := tally.NewAgent(shape)
	r := New(Config{
		Limits: Defaults, Directory: b.TempDir(), Report: func(notice.Notice) {},
		Compress: func(w io.Writer) (recording.Compressor, error) { return plain{w}, nil },
	})
	handler, a := r.Handler(), named("a")
	handler.Opened(a, ringbuf.V4, 8192)
	var list []ringbuf.Event
	batch := transfers(b, count, 1<<20)
	for i := range batch.Len() {
		list = append(list, batch.Event(i))
	}
	var took [2]time.Duration
	b.ReportAllocs()
	for b.Loop() {
		for i, drain := range []func(ringbuf.Batch){agent.Add, func(batch ringbuf.Batch) {
			agent.Add(batch)
			handler.Events(a, batch)
		}} {
			if _, err := w.PushBatch(list); err != nil {
				b.Fatal(err)
			}
			began := time.Now()
			if _, err := reader.Read(0, drain); err != nil {
				b.Fatal(err)
			}
			took[i] += time.Since(began)
			must.OK(b, reader.Commit())
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, unit := range []string{"ns/event-off", "ns/event-on"} {
		b.ReportMetric(float64(took[i].Nanoseconds())/float64(b.N*len(list)), unit)
	}
	must.OK(b, reader.Close())
	must.OK(b, w.Close())
}
