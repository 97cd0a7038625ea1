// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/bridge/session"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// call is one of the calls that a benchmark compares.
type call struct {
	metric string // the unit of its time in the results
	do     func(int)
}

// compare alternately makes batches of each call, each in several goroutines at a time. It
// reports the time per call, and the ratio of the last call to the first one, with its quartiles over
// the pairs of batches. Other load on the machine only adds time, so a call's time is the lower quartile
// of its batches. It includes that goroutines wait for a processor.
func compare(b *testing.B, goroutines, batch int, calls ...call) {
	b.Helper()
	times := make([][]float64, len(calls))
	for b.Loop() {
		for i, c := range calls {
			times[i] = append(times[i], float64(timeBatches(goroutines, batch, c.do))/float64(batch))
		}
	}
	quartile := func(i int) float64 { return quantile(times[i], 0.25) }
	for i, c := range calls {
		b.ReportMetric(quartile(i), c.metric)
	}
	last := len(calls) - 1
	b.ReportMetric(quartile(last)/quartile(0), "times")
	b.ReportMetric(quartile(last)-quartile(0), "ns-more")
	ratios := make([]float64, len(times[0]))
	for i := range ratios {
		ratios[i] = times[last][i] / times[0][i]
	}
	b.ReportMetric(quantile(ratios, 0.25), "times-p25")
	b.ReportMetric(quantile(ratios, 0.75), "times-p75")
	b.ReportMetric(0, "ns/op")
}

// timeBatches returns the time from the first call to the end of the last goroutine.
func timeBatches(goroutines, batch int, do func(int)) time.Duration {
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	ready.Add(goroutines)
	for range goroutines {
		done.Go(func() {
			ready.Done()
			<-begin
			for i := range batch {
				do(i)
			}
		})
	}
	ready.Wait()
	start := time.Now()
	close(begin)
	done.Wait()
	return time.Since(start)
}

// latency returns different values, to vary buckets and branches.
func latency(i int) time.Duration { return time.Duration(500 + i*37&0xffff) }

func newProvider() metric.MeterProvider {
	return sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
}

// histogram is a histogram of the SDK, and one of client_golang, for a series.
type histogram struct {
	otel metric.Float64Histogram
	set  []metric.RecordOption
	prom prometheus.Observer
}

func newHistogram(b *testing.B, bounds []float64, attributes ...attribute.KeyValue) histogram {
	b.Helper()
	h, err := newProvider().Meter("bench").Float64Histogram("h", metric.WithExplicitBucketBoundaries(bounds...))
	must.OK(b, err)
	return histogram{
		h,
		[]metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attributes...))},
		prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "h", Buckets: bounds}, []string{"l"}).WithLabelValues("v"),
	}
}

// counter is a counter of the SDK, and one of client_golang, for a series.
type counter struct {
	otel metric.Int64Counter
	set  []metric.AddOption
	prom prometheus.Counter
}

func newCounter(b *testing.B, attributes ...attribute.KeyValue) counter {
	b.Helper()
	c, err := newProvider().Meter("bench").Int64Counter("c")
	must.OK(b, err)
	return counter{
		c,
		[]metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attributes...))},
		prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c"}, []string{"l"}).WithLabelValues("v"),
	}
}

// BenchmarkKernel measures how much longer the calls take than an atomic addition, or than
// the SDK's histogram, with several goroutines calling one kernel; and how much longer a message
// with 10 µs of work takes with telemetry.
func BenchmarkKernel(b *testing.B) {
	ctx := context.Background()
	k := ringkernel.NewRuntime(ringkernel.WithMeterProvider(newProvider())).Register("bench")
	var word atomic.Int64
	add := call{"atomic-ns", func(int) { word.Add(1) }}
	c, h := newCounter(b), newHistogram(b, semconv.KernelMessageDuration.Bounds, attribute.String(semconv.KernelID, "bench"))
	inc := call{"client_golang-ns", func(int) { c.prom.Inc() }}
	record := call{"SDK-ns", func(i int) { h.otel.Record(ctx, latency(i).Seconds(), h.set...) }}
	observe := call{"client_golang-ns", func(i int) { h.prom.Observe(latency(i).Seconds()) }}
	message := func(k *ringkernel.Kernel, i int) {
		k.Received(ctx)
		for begin := time.Now(); ; {
			if time.Since(begin) >= 10*time.Microsecond {
				break
			}
		}
		k.Processed(ctx, latency(i))
		k.Sent(ctx)
	}
	for _, x := range []struct {
		name  string
		batch int // should take longer than starting the goroutines
		calls []call
	}{
		{"Received", 20_000, []call{add, inc, {"ns", func(int) { k.Received(ctx) }}}},
		{"Processed", 1000, []call{record, observe, {"ns", func(i int) { k.Processed(ctx, latency(i)) }}}},
		{"Message", 100, []call{{"off-ns", func(i int) { message(nil, i) }}, {"ns", func(i int) { message(k, i) }}}},
	} {
		for _, goroutines := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/%d", x.name, goroutines), func(b *testing.B) { compare(b, goroutines, x.batch, x.calls...) })
		}
	}
}

const (
	postTime  = 15 * time.Microsecond
	totalTime = 120 * time.Microsecond
)

func newAgent(b *testing.B, opts ...agent.Option) *agent.Agent {
	b.Helper()
	a, err := agent.New("bench", opts...)
	must.OK(b, err)
	b.Cleanup(func() {
		if err := a.Close(); err != nil {
			b.Error(err)
		}
	})
	return a
}

// BenchmarkTransfer measures a transfer relative to the records of a program that uses the
// SDK itself: two counters and four histograms.
func BenchmarkTransfer(b *testing.B) {
	ctx := context.Background()
	attributes := []attribute.KeyValue{attribute.String(semconv.AgentName, "bench"), attribute.String(semconv.Direction, semconv.Transmit)}
	io, requests := newCounter(b, attributes...), newCounter(b, attributes...)
	size, throughput := newHistogram(b, semconv.TransferSize.Bounds, attributes...), newHistogram(b, semconv.TransferThroughput.Bounds, attributes...)
	duration, post := newHistogram(b, semconv.TransferDuration.Bounds, attributes...), newHistogram(b, semconv.TransferDuration.Bounds, attributes...)
	records := call{"SDK-ns", func(int) {
		io.otel.Add(ctx, 4096, io.set...)
		requests.otel.Add(ctx, 1, requests.set...)
		size.otel.Record(ctx, 4096, size.set...)
		throughput.otel.Record(ctx, 34133333, throughput.set...)
		duration.otel.Record(ctx, totalTime.Seconds(), duration.set...)
		post.otel.Record(ctx, postTime.Seconds(), post.set...)
	}}
	observes := call{"client_golang-ns", func(int) {
		io.prom.Add(4096)
		requests.prom.Inc()
		size.prom.Observe(4096)
		throughput.prom.Observe(34133333)
		duration.prom.Observe(totalTime.Seconds())
		post.prom.Observe(postTime.Seconds())
	}}
	for _, goroutines := range []int{1, 2} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			a := newAgent(b, agent.WithMeterProvider(newProvider()))
			compare(b, goroutines, 200, records, observes,
				call{"ns", func(int) { a.Transfer(ctx, agent.Transmit, 4096, postTime, totalTime) }})
		})
	}
}

// BenchmarkTransferToRing measures a transfer to a ring. It fails if an event was dropped,
// because dropping is cheaper: between the batches, the events are flushed and read. The
// ring has room for two batches, because a reader may wait before it reads a ring whose
// write position is 0.
func BenchmarkTransferToRing(b *testing.B) {
	h := newHistogram(b, semconv.TransferDuration.Bounds)
	for _, goroutines := range []int{1, 2} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			dir := b.TempDir()
			a := newAgent(b, agent.WithRing(dir), agent.WithRunInterval(time.Hour))
			r, err := ringbuf.OpenReader(filepath.Join(dir, "bench"), ringbuf.Consume)
			must.OK(b, err)
			defer r.Close()
			var mu sync.Mutex
			drain := func(i int) {
				if i > 0 {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if err := a.Flush(); err != nil {
					b.Error(err)
				}
				if _, err := r.Read(0, func(ringbuf.Batch) {}); err != nil {
					b.Error(err)
				}
				if err := r.Commit(); err != nil {
					b.Error(err)
				}
			}
			compare(b, goroutines, 500/goroutines,
				call{"SDK-ns", func(int) { h.otel.Record(context.Background(), totalTime.Seconds(), h.set...) }},
				call{"drain-ns", drain},
				call{"ns", func(int) { a.Transfer(context.Background(), agent.Transmit, 4096, postTime, totalTime) }})
			if got := a.RingTelemetry(); got.DroppedStaging+got.DroppedRing > 0 || got.Written == 0 {
				b.Fatalf("events were dropped: %+v", got)
			}
		})
	}
}

// BenchmarkRecordPacket measures what a session does for a packet: its row in the CSV file,
// and four metrics.
func BenchmarkRecordPacket(b *testing.B) {
	s, err := session.Open(b.TempDir(), session.WithMeterProvider(newProvider()))
	must.OK(b, err)
	defer s.Close()
	var packets []session.Packet
	for layer := range 32 {
		for _, op := range []string{"attention_layernorm", "attention_qkv_proj", "router_logits", "expert_selection", "expert_ffn"} {
			packets = append(packets, session.Packet{
				ID: int64(len(packets) + 1), Layer: layer, Operation: op, Device: session.IGPU,
				Duration: 1056 * time.Microsecond, Memory: 20 << 20,
			})
		}
	}
	file, err := os.Create(filepath.Join(b.TempDir(), "rows"))
	must.OK(b, err)
	defer file.Close()
	row := []byte("1763318069.868178,igpu,igpu_attention_layer_0,0.057,2,0,attention_layernorm,True,20.00,\n")
	h := newHistogram(b, semconv.PacketDuration.Bounds)
	compare(b, 1, 500,
		call{"write-ns", func(int) {
			if _, err := file.Write(row); err != nil {
				b.Error(err)
			}
		}},
		call{"SDK-ns", func(int) { h.otel.Record(context.Background(), 0.001056, h.set...) }},
		call{"ns", func(i int) {
			if err := s.Record(context.Background(), packets[i%len(packets)]); err != nil {
				b.Error(err)
			}
		}})
}
