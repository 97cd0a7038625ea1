// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

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
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	defer func() { _ = provider.Shutdown(ctx) }()
	a, err := agent.New("worker-0", agent.WithMeterProvider(provider))
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
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Unit == "By" {
			var total int64
			for _, p := range sum.DataPoints {
				total += p.Value
			}
			fmt.Println(m.Name, total)
		}
	}
	// Output:
	// nixl.transfer.io 1310720
	// nixl.memory.registered 1073741824
	// nixl.memory.usage 1073741824
}
