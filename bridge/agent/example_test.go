// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"log"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// This example records two transfers and collects their metrics.
func ExampleNew() {
	ctx := context.Background()
	reader := sdkmetric.NewManualReader() // or a PeriodicReader with an exporter
	a, err := agent.New("worker-0", agent.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	a.MemoryRegistered(ctx, 1<<30)
	a.Transfer(ctx, agent.Transmit, 1<<20, 12*time.Microsecond, 340*time.Microsecond)
	a.Transfer(ctx, agent.Receive, 1<<18, 9*time.Microsecond, 95*time.Microsecond)
	a.Error(ctx, semconv.ErrorRemoteDisconnect)

	var collected metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &collected); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(collected.ScopeMetrics[0].Metrics), "metrics")
	// Output:
	// 15 metrics
}
