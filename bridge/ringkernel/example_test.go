// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"context"
	"fmt"
	"log"
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
