// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rings_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/rings"
)

// This example collects the metrics of all rings in a directory with a ManualReader;
// a real program uses a PeriodicReader with an exporter.
func Example() {
	dir, err := os.MkdirTemp("", "nixl")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	// The agents can be written in any language. This one is written in Go.
	a, err := agent.New("worker-0", agent.WithRing(dir))
	if err != nil {
		log.Fatal(err)
	}
	a.MemoryRegistered(context.Background(), 1<<30)
	a.MemoryDeregistered(context.Background(), 1<<29)
	if err := a.Close(); err != nil { // flushes
		log.Fatal(err)
	}

	producer, err := rings.Open(rings.Config{Directories: []string{dir}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer producer.Close()
	reader := sdkmetric.NewManualReader(sdkmetric.WithProducer(producer))
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	defer func() { _ = provider.Shutdown(context.Background()) }()

	var collected metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &collected); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(collected.ScopeMetrics[0].Metrics), "metrics")
	// Output:
	// 13 metrics
}
