package agent

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
)

// benchAgent is an agent whose metrics are collected by nobody, and whose ring,
// if it has one, is read by nobody.
func benchAgent(b *testing.B, opts ...Option) *Agent {
	b.Helper()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	a, err := New("a", append([]Option{WithMeterProvider(provider)}, opts...)...)
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

// BenchmarkRatios is how many times cheaper an agent's counters are than
// one of the SDK, measured in turns.
func BenchmarkRatios(b *testing.B) {
	own, a := metrictest.NewSDK(b), benchAgent(b)
	quiet := benchAgent(b, WithMeterProvider(noop.NewMeterProvider()))
	for _, c := range []struct {
		name string
		ours func(int)
	}{
		{"MemoryRegistered", func(int) { a.MemoryRegistered(4096) }},
		{"Error", func(int) { a.Error(StatusBackend) }},
		{"EventsDropped", func(int) { a.EventsDropped(1) }},
		{"Event", func(int) { a.Event(EventBackend, "retries", 1) }},
		{"Transfer", func(int) { a.Transfer(Transmit, 4096, 15*time.Microsecond, 120*time.Microsecond) }},
		{"Transfer without the SDK", func(int) { quiet.Transfer(Transmit, 4096, 15*time.Microsecond, 120*time.Microsecond) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			t := metrictest.InTurns(b, 2000, func(int) { own.Add() }, c.ours)
			b.ReportMetric(t[0], "SDK-ns")
			b.ReportMetric(t[1], "ns")
			b.ReportMetric(t[0]/t[1], "times-cheaper")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// An agent's calls: a transfer is four events, and records to three histograms
// of the SDK.
func BenchmarkAgent(b *testing.B) {
	for _, c := range []struct {
		name string
		opts func(*testing.B) []Option
	}{
		{"sdk", func(*testing.B) []Option { return nil }},
		{"sdk and ring", func(b *testing.B) []Option { return []Option{WithRing(Ring{Dir: b.TempDir()})} }},
		{"ring alone", func(b *testing.B) []Option {
			return []Option{WithMeterProvider(noop.NewMeterProvider()), WithRing(Ring{Dir: b.TempDir()})}
		}},
	} {
		for _, call := range []struct {
			name string
			do   func(*Agent)
		}{
			{"Transfer", func(a *Agent) { a.Transfer(Transmit, 4096, 15*time.Microsecond, 120*time.Microsecond) }},
			{"MemoryRegistered", func(a *Agent) { a.MemoryRegistered(4096) }},
			{"Error", func(a *Agent) { a.Error(StatusBackend) }},
			{"Event", func(a *Agent) { a.Event(EventBackend, "retries", 1) }},
		} {
			b.Run(c.name+"/"+call.name, func(b *testing.B) {
				a := benchAgent(b, c.opts(b)...)
				b.ReportAllocs()
				for b.Loop() {
					call.do(a)
				}
			})
		}
	}
	b.Run("disabled/Transfer", func(b *testing.B) {
		var a *Agent
		for b.Loop() {
			a.Transfer(Transmit, 4096, 15*time.Microsecond, 120*time.Microsecond)
		}
	})
	b.Run("sdk/Transfer, in parallel", func(b *testing.B) {
		a := benchAgent(b)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				a.Transfer(Transmit, 4096, 15*time.Microsecond, 120*time.Microsecond)
			}
		})
	})
}
