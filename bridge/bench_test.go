package bridge

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// The benchmarks name what they compare with in the same run, as the machine
// may be busier in the next:
//
//	go test -run '^$' -bench . ./bridge

// sdk is the instruments of the SDK, with the attribute set made beforehand.
type sdk struct {
	counter   metric.Int64Counter
	histogram metric.Float64Histogram
	add       []metric.AddOption
	record    []metric.RecordOption
}

func newSDK(b *testing.B) sdk {
	b.Helper()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())).Meter("bench")
	counter, err := meter.Int64Counter("counter")
	if err != nil {
		b.Fatal(err)
	}
	histogram, err := meter.Float64Histogram("histogram",
		metric.WithExplicitBucketBoundaries(semconv.DurationBounds()...))
	if err != nil {
		b.Fatal(err)
	}
	set := metric.WithAttributeSet(attribute.NewSet(attribute.String(semconv.KernelID, "bench")))
	return sdk{counter, histogram, []metric.AddOption{set}, []metric.RecordOption{set}}
}

func (s sdk) Add() { s.counter.Add(context.Background(), 1, s.add...) }

func (s sdk) Record(d time.Duration) {
	s.histogram.Record(context.Background(), d.Seconds(), s.record...)
}

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
	own := newSDK(b)
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
	own := newSDK(b)
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
	own := newSDK(b)
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
			b.ReportMetric(inTurns(b, 1000, c.f)[0], "ns/call")
			b.ReportMetric(0, "ns/op")
		})
		b.Run(c.name+"/2", func(b *testing.B) {
			stop := keepCalling(c.f)
			b.ReportMetric(inTurns(b, 1000, c.f)[0], "ns/call")
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
	own := newSDK(b)
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
			t := inTurns(b, 2000, c.sdk, c.ours)
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
	t := inTurns(b, 500, off, on, onSDK)
	b.ReportMetric(t[0], "off-ns")
	b.ReportMetric(t[1], "on-ns")
	b.ReportMetric(100*(t[1]/t[0]-1), "%-slower")
	b.ReportMetric(100*(t[2]/t[0]-1), "%-slower-SDK-histogram")
	b.ReportMetric(0, "ns/op")
}

// inTurns runs batches of each function in turns, and returns the median ns
// that a call of each took.
func inTurns(b *testing.B, batch int, fs ...func(int)) []float64 {
	b.Helper()
	times := make([][]float64, len(fs))
	for b.Loop() {
		for j, f := range fs {
			start := time.Now()
			for i := range batch {
				f(i)
			}
			times[j] = append(times[j], float64(time.Since(start))/float64(batch))
		}
	}
	medians := make([]float64, len(fs))
	for j := range times {
		slices.Sort(times[j])
		medians[j] = times[j][len(times[j])/2]
	}
	return medians
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
