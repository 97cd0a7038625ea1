package ringkernel

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
)

// The benchmarks name what they compare with in the same run, as the machine
// may be busier in the next:
//
//	go test -run '^$' -bench . ./bridge/ringkernel

// benchKernel is a kernel of an enabled Runtime with a reader.
func benchKernel(b *testing.B, opts ...Option) (*Runtime, *Kernel) {
	b.Helper()
	latencies := NewLatencyProducer()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(
		sdkmetric.NewManualReader(sdkmetric.WithProducer(latencies))))
	rt, err := NewRuntime(append([]Option{WithMeterProvider(provider), WithLatencyProducer(latencies)}, opts...)...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = rt.Close() })
	return rt, rt.Register("bench")
}

// latency is one of many, so that buckets and branches are not always the same.
func latency(i int) time.Duration { return time.Duration(500 + i*37&0xffff) }

// BenchmarkCounters is the price of a count.
func BenchmarkCounters(b *testing.B) {
	own := metrictest.NewSDK(b)
	rt, k := benchKernel(b)
	_, exact := benchKernel(b, WithClock(time.Now))
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"SDK", own.Add},
		{"Received", k.Received},
		{"Sent", k.Sent},
		{"Dropped", k.Dropped},
		{"RecordReceive", func() { rt.RecordReceive("bench") }},
		{"ReceivedExactTimes", exact.Received},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.f()
			}
		})
	}
	b.Run("Processed", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			k.Processed(latency(i))
			i++
		}
	})
}

// BenchmarkLatency is the price of a latency: Processed with the
// LatencyProducer, with the SDK's histogram, and that histogram alone.
func BenchmarkLatency(b *testing.B) {
	own := metrictest.NewSDK(b)
	_, producer := benchKernel(b)
	_, histogram := benchKernel(b, WithLatencyProducer(nil))
	for _, c := range []struct {
		name string
		f    func(time.Duration)
	}{
		{"SDK", own.Record},
		{"Producer", producer.Processed},
		{"Histogram", histogram.Processed},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				c.f(latency(i))
				i++
			}
		})
	}
}

// BenchmarkDisabled is the price of each call when there is no telemetry.
func BenchmarkDisabled(b *testing.B) {
	rt, err := NewRuntime(WithEnabled(false))
	if err != nil {
		b.Fatal(err)
	}
	k := rt.Register("bench")
	b.Run("Received", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			k.Received()
		}
	})
	b.Run("Processed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			k.Processed(time.Microsecond)
		}
	})
	b.Run("RecordReceive", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			rt.RecordReceive("bench")
		}
	})
}

// BenchmarkGoroutines is the price of a call for a goroutine alone, and while
// another one makes the same call on the same kernel all the time.
func BenchmarkGoroutines(b *testing.B) {
	own := metrictest.NewSDK(b)
	_, k := benchKernel(b)
	for _, c := range []struct {
		name string
		f    func(i int)
	}{
		{"SDK", func(int) { own.Add() }},
		{"Received", func(int) { k.Received() }},
		{"Sent", func(int) { k.Sent() }},
		{"Processed", func(i int) { k.Processed(latency(i)) }},
	} {
		b.Run(c.name+"/1", func(b *testing.B) {
			b.ReportMetric(metrictest.InTurns(b, 1000, c.f)[0], "ns/call")
			b.ReportMetric(0, "ns/op")
		})
		b.Run(c.name+"/2", func(b *testing.B) {
			stop := keepCalling(c.f)
			b.ReportMetric(metrictest.InTurns(b, 1000, c.f)[0], "ns/call")
			b.ReportMetric(0, "ns/op")
			stop()
		})
	}
}

// keepCalling calls f from another goroutine until it is stopped.
func keepCalling(f func(int)) (stop func()) {
	var (
		wg      sync.WaitGroup
		stopped atomic.Bool
		started = make(chan struct{})
	)
	wg.Go(func() {
		close(started)
		for i := 0; !stopped.Load(); i++ {
			f(i)
		}
	})
	<-started
	return func() {
		stopped.Store(true)
		wg.Wait()
	}
}

// BenchmarkRatios is what the package promises, measured in turns so that both
// sides have the same machine: how many times cheaper than the SDK's
// instruments the calls are.
func BenchmarkRatios(b *testing.B) {
	own := metrictest.NewSDK(b)
	_, k := benchKernel(b)
	add := func(int) { own.Add() }
	for _, c := range []struct {
		name      string
		sdk, ours func(int)
	}{
		{"Received", add, func(int) { k.Received() }},
		{"Sent", add, func(int) { k.Sent() }},
		{"Processed", add, func(i int) { k.Processed(latency(i)) }},
		{"Latency", func(i int) { own.Record(latency(i)) }, func(i int) { k.Processed(latency(i)) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			t := metrictest.InTurns(b, 2000, c.sdk, c.ours)
			b.ReportMetric(t[0], "SDK-ns")
			b.ReportMetric(t[1], "ns")
			b.ReportMetric(t[0]/t[1], "times-cheaper")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkLoop is a kernel's loop with 1 µs of work for a message: how much
// longer it takes with telemetry than with a disabled Runtime. The latency is
// known to the loop in both cases.
func BenchmarkLoop(b *testing.B) {
	disabled, err := NewRuntime(WithEnabled(false))
	if err != nil {
		b.Fatal(err)
	}
	_, producer := benchKernel(b)
	_, histogram := benchKernel(b, WithLatencyProducer(nil))
	work := microsecond()
	loop := func(k *Kernel) func(int) {
		return func(i int) {
			k.Received()
			work()
			k.Processed(latency(i))
			k.Sent()
		}
	}
	off, on, onSDK := loop(disabled.Register("bench")), loop(producer), loop(histogram)
	t := metrictest.InTurns(b, 500, off, on, onSDK)
	b.ReportMetric(t[0], "off-ns")
	b.ReportMetric(t[1], "on-ns")
	b.ReportMetric(100*(t[1]/t[0]-1), "%-slower")
	b.ReportMetric(100*(t[2]/t[0]-1), "%-slower-SDK-histogram")
	b.ReportMetric(0, "ns/op")
}

var spent uint64

// microsecond is a function that computes for a microsecond.
func microsecond() func() {
	spin := func(n int) {
		x := spent | 1
		for range n {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		spent = x
	}
	const trial = 1000
	best := time.Hour
	for range 200 {
		start := time.Now()
		spin(trial)
		best = min(best, time.Since(start))
	}
	n := int(trial * time.Microsecond / best)
	return func() { spin(n) }
}
