// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// benchAgent returns an agent whose metrics aren't collected, or whose ring isn't
// read.
func benchAgent(b *testing.B, name string, opts ...Option) *Agent {
	b.Helper()
	if len(opts) == 0 {
		opts = []Option{WithProducer(NewProducer())}
	}
	a, err := New(name, opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := a.Close(); err != nil {
			b.Error(err)
		}
	})
	return a
}

const (
	postTime  = 15 * time.Microsecond
	totalTime = 120 * time.Microsecond
)

// BenchmarkAgentRatios measures each call relative to Record of the SDK's
// histogram, alternately, with one goroutine and with two.
func BenchmarkAgentRatios(b *testing.B) {
	ctx := context.Background()
	sdk, a := metrictest.NewSDK(b), benchAgent(b, "a")
	peer := a.With(attribute.NewSet(attribute.String(semconv.PeerAgentName, "p"), attribute.String(semconv.BackendName, "UCX")))
	sampled := trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled,
	}))
	ring := benchAgent(b, "ring", WithRing(Ring{Dir: b.TempDir()}))
	for _, c := range []struct {
		name string
		ours func()
	}{
		{"Transfer", func() { a.Transfer(ctx, Transmit, 4096, postTime, totalTime) }},
		{"TransferWithAttributes", func() { peer.Transfer(ctx, Transmit, 4096, postTime, totalTime) }},
		{"TransferToARing", func() { ring.Transfer(ctx, Transmit, 4096, postTime, totalTime) }},
		{"TransferInASampledSpan", func() { a.Transfer(sampled, Transmit, 4096, postTime, totalTime) }},
		{"MemoryRegistered", func() { a.MemoryRegistered(ctx, 4096) }},
		{"Error", func() { a.Error(ctx, StatusBackend) }},
		{"Event", func() { a.Event(ctx, EventBackend, "retries", 1) }},
	} {
		for _, goroutines := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", c.name, goroutines), func(b *testing.B) {
				t := metrictest.InterleaveParallel(b, goroutines, 2000, func(int) { sdk.Record(totalTime) }, func(int) { c.ours() })
				b.ReportMetric(t[0], "SDK-ns")
				b.ReportMetric(t[1], "ns")
				b.ReportMetric(t[1]/t[0], "x-record")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkNilAgent measures a call while telemetry is off.
func BenchmarkNilAgent(b *testing.B) {
	var a *Agent
	for b.Loop() {
		a.Transfer(context.Background(), Transmit, 4096, postTime, totalTime)
	}
}

// BenchmarkProduce measures a collection of 100 agents.
func BenchmarkProduce(b *testing.B) {
	p := NewProducer()
	for i := range 100 {
		a := benchAgent(b, "a", WithProducer(p), WithClock(func() time.Time { return time.Unix(int64(i), 0) }))
		a.With(attribute.NewSet(attribute.Int("agent", i))).Transfer(context.Background(), Transmit, 4096, postTime, totalTime)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Produce(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
