// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

// This kernel doubles numbers. The example collects its metrics with a
// ManualReader; a real program uses a reader that exports, such as a
// PeriodicReader.
func Example() {
	ctx := context.Background()
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	rt := ringkernel.NewRuntime(ringkernel.WithMeterProvider(provider))
	defer func() {
		if err := provider.Shutdown(ctx); err != nil { // exports the last values
			log.Print(err)
		}
	}()

	k := rt.Register("double")
	in, out := make(chan int, 3), make(chan int, 3)
	for i := range 3 {
		in <- i
		k.Received(ctx)
	}
	close(in)
	for n := range in {
		start := time.Now()
		n *= 2
		k.Processed(ctx, time.Since(start))
		out <- n
		k.Sent(ctx)
	}

	var collected metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &collected); err != nil {
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

func ExampleRuntime_Telemetry() {
	ctx := context.Background()
	rt := ringkernel.NewRuntime()
	k := rt.Register("worker")
	for i := range 100 {
		k.Received(ctx)
		if i%50 == 7 {
			k.Error(ctx, errors.New("bad message"))
			continue
		}
		k.Processed(ctx, 2*time.Millisecond)
		k.Sent(ctx)
	}

	if t, ok := rt.Telemetry("worker"); ok {
		fmt.Printf("%d of %d processed, %v each\n", t.MessagesProcessed, t.MessagesReceived, t.AverageLatency())
		if t.ErrorRate() > 0.01 {
			fmt.Printf("error rate %.1f%%, last error: %v\n", 100*t.ErrorRate(), t.LastError)
		}
	}
	// Output:
	// 98 of 100 processed, 2ms each
	// error rate 2.0%, last error: bad message
}

// The input queue of this kernel is a channel.
func ExampleKernel_ObserveQueue() {
	rt := ringkernel.NewRuntime()
	in := make(chan string, 8)
	rt.Register("worker").ObserveQueue(ringkernel.InputQueue, func() (size, capacity int) {
		return len(in), cap(in)
	})
	in <- "message"
	t, _ := rt.Telemetry("worker")
	fmt.Printf("%d of %d\n", t.InputSize, t.InputCapacity)
	// Output: 1 of 8
}

// Errors created by errors.New all have the same Go type. WithErrorType gives them
// distinct names.
func ExampleWithErrorType() {
	ctx := context.Background()
	errFull := errors.New("queue is full")
	rt := ringkernel.NewRuntime(ringkernel.WithErrorType(func(err error) string {
		if errors.Is(err, errFull) {
			return "queue_full"
		}
		return "" // by its Go type
	}))
	k := rt.Register("worker")
	k.Error(ctx, fmt.Errorf("worker: %w", errFull)) // error.type = queue_full
	k.Error(ctx, os.ErrNotExist)                    // error.type = *errors.errorString
	t, _ := rt.Telemetry("worker")
	fmt.Println(t.Errors)
	// Output: 2
}
