package ringkernel_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

// A kernel doubles numbers, and a reader collects what it did. A program has a
// reader that exports, such as sdkmetric.NewPeriodicReader.
func Example() {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	rt, err := ringkernel.NewRuntime(ringkernel.WithMeterProvider(provider))
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()

	in, out := make(chan int, 3), make(chan int, 3)
	k := rt.Register("double")
	k.SetState(ringkernel.StateActive)
	for i := range 3 {
		in <- i
	}
	close(in)
	for n := range in {
		k.Received()
		start := time.Now()
		n *= 2
		k.Processed(time.Since(start))
		out <- n
		k.Sent()
	}

	var collected metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &collected); err != nil {
		log.Fatal(err)
	}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && sum.IsMonotonic {
			fmt.Println(m.Name, sum.DataPoints[0].Value)
		}
	}
	// Output:
	// ringkernel.messages.received 3
	// ringkernel.messages.sent 3
	// ringkernel.messages.processed 3
	// ringkernel.messages.dropped 0
}

// The clock stands for the time that passes in a real program.
func exampleClock() (now func() time.Time, advance func(time.Duration)) {
	t := time.Date(2025, time.January, 15, 14, 30, 0, 0, time.UTC)
	return func() time.Time { return t }, func(d time.Duration) { t = t.Add(d) }
}

func ExampleRuntime_Telemetry() {
	now, advance := exampleClock()
	rt, err := ringkernel.NewRuntime(ringkernel.WithClock(now))
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()

	rt.Register("worker")
	for i := range 100 {
		rt.RecordReceive("worker")
		if i%50 == 7 {
			rt.RecordError("worker", errors.New("bad message"))
			continue
		}
		rt.RecordProcess("worker", 2*time.Millisecond)
		rt.RecordSend("worker")
	}
	advance(4 * time.Second)

	if t, ok := rt.Telemetry("worker"); ok {
		fmt.Printf("%d of %d processed, %.1f msg/s, %v each\n",
			t.MessagesProcessed, t.MessagesReceived, t.Throughput(), t.AverageLatency())
		if t.ErrorRate() > 0.01 {
			fmt.Printf("error rate %.1f %%, the last: %v\n", 100*t.ErrorRate(), t.LastError)
		}
	}
	// Output:
	// 98 of 100 processed, 24.5 msg/s, 2ms each
	// error rate 2.0 %, the last: bad message
}

func ExampleRuntime_Summary() {
	now, advance := exampleClock()
	rt, err := ringkernel.NewRuntime(ringkernel.WithClock(now))
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()

	for i := range 3 {
		k := rt.Register(fmt.Sprint("worker_", i))
		k.SetState(ringkernel.StateActive)
		for range 10 * (i + 1) {
			k.Processed(time.Millisecond)
		}
	}
	advance(10 * time.Second)
	fmt.Print(rt.Summary())
	// Output:
	// === Telemetry @ 1736951410 ===
	// Kernels: 3
	// Messages: 60
	// Throughput: 6.0 msg/s
	// Errors: 0
	// Dropped: 0
	//   worker_0: active, 10 processed, 1.0 msg/s, latency 1ms avg, 1ms max, 0 errors
	//   worker_1: active, 20 processed, 2.0 msg/s, latency 1ms avg, 1ms max, 0 errors
	//   worker_2: active, 30 processed, 3.0 msg/s, latency 1ms avg, 1ms max, 0 errors
}

// A summary is printed every five seconds until the context is cancelled.
func ExampleRuntime_Monitor() {
	rt, err := ringkernel.NewRuntime()
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- rt.Monitor(ctx, 5*time.Second, ringkernel.PrintTo(os.Stdout)) }()
	cancel() // at the end of the program
	fmt.Println(<-done)
	// Output: <nil>
}

func ExampleRuntime_Reset() {
	rt, err := ringkernel.NewRuntime()
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()

	k := rt.Register("worker")
	k.Sent()
	rt.Reset("worker") // rt.Reset() resets all kernels
	k.Sent()
	t, _ := rt.Telemetry("worker")
	fmt.Println(t.MessagesSent)
	// Output: 1
}

// The queues of a kernel are channels.
func ExampleKernel_ObserveQueue() {
	rt, err := ringkernel.NewRuntime()
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()

	in := make(chan string, 8)
	rt.Register("worker").ObserveQueue(ringkernel.InputQueue, func() (size, capacity int) {
		return len(in), cap(in)
	})
	in <- "message"
	t, _ := rt.Telemetry("worker")
	fmt.Printf("%d of %d\n", t.Input.Size, t.Input.Capacity)
	// Output: 1 of 8
}

// Latencies of kernels whose messages take microseconds: the producer goes to
// the reader and to the Runtime.
func ExampleLatencyProducer() {
	latencies := ringkernel.NewLatencyProducer()
	reader := sdkmetric.NewManualReader(sdkmetric.WithProducer(latencies))
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	rt, err := ringkernel.NewRuntime(ringkernel.WithMeterProvider(provider), ringkernel.WithLatencyProducer(latencies))
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()

	k := rt.Register("worker")
	for us := range 1000 {
		k.Processed(time.Duration(us) * time.Microsecond)
	}

	var collected metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &collected); err != nil {
		log.Fatal(err)
	}
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			if h, ok := m.Data.(metricdata.ExponentialHistogram[float64]); ok {
				p := h.DataPoints[0]
				fmt.Printf("%s: %d in %d buckets at scale %d, and %d of zero\n",
					m.Name, p.Count-p.ZeroCount, len(p.PositiveBucket.Counts), p.Scale, p.ZeroCount)
			}
		}
	}
	// Output: ringkernel.message.duration: 999 in 160 buckets at scale 4, and 1 of zero
}

// Two runtimes of a program report through one provider.
func ExampleWithAttributes() {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	for _, device := range []string{"gpu0", "gpu1"} {
		rt, err := ringkernel.NewRuntime(
			ringkernel.WithMeterProvider(provider),
			ringkernel.WithAttributes(attribute.String("device", device)),
		)
		if err != nil {
			log.Fatal(err)
		}
		defer rt.Close()
		rt.Register("worker").Sent()
	}
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &collected); err != nil {
		log.Fatal(err)
	}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "ringkernel.messages.sent" {
			fmt.Println(len(sum.DataPoints), "series")
		}
	}
	// Output: 2 series
}

// Sentinel errors all have the same Go type, so they are given names.
func ExampleWithErrorType() {
	errFull := errors.New("queue is full")
	name := ringkernel.WithErrorType(func(err error) string {
		if errors.Is(err, errFull) {
			return "queue_full"
		}
		return "" // by its Go type
	})
	rt, err := ringkernel.NewRuntime(name)
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	k := rt.Register("worker")
	k.Error(fmt.Errorf("worker: %w", errFull)) // error.type = queue_full
	k.Error(os.ErrNotExist)                    // error.type = *errors.errorString
	t, _ := rt.Telemetry("worker")
	fmt.Println(t.Errors)
	// Output: 2
}
