// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/ringbuf"
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

// This MeterProvider serves one agent, with the same resource as in the Collector.
func ExampleResourceAttributes() {
	attributes, err := agent.ResourceAttributes("decode-0", "/run/nixl")
	if err != nil {
		log.Fatal(err)
	}
	provider := sdkmetric.NewMeterProvider(
		sdkmetric.WithResource(resource.NewSchemaless(attributes...)),
		sdkmetric.WithReader(sdkmetric.NewManualReader()),
	)
	defer func() { _ = provider.Shutdown(context.Background()) }()
	a, err := agent.New("decode-0", agent.WithMeterProvider(provider), agent.WithNameInResource())
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	for _, kv := range attributes {
		fmt.Println(kv.Key)
	}
	// Output:
	// host.name
	// nixl.agent.name
	// service.instance.id
	// service.name
}

// This agent records the peer and the backend of its transfers.
func ExampleAgent_With() {
	ctx := context.Background()
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	defer func() { _ = provider.Shutdown(ctx) }()
	a, err := agent.New("decode-0", agent.WithMeterProvider(provider))
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	peer := a.With(attribute.NewSet(
		attribute.String(semconv.PeerAgentName, "prefill-3"),
		attribute.String(semconv.BackendName, "UCX"),
	))
	peer.Transfer(ctx, agent.Receive, 1<<20, 12*time.Microsecond, 340*time.Microsecond)

	var collected metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &collected); err != nil {
		log.Fatal(err)
	}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == semconv.TransferIO.Name {
			for _, kv := range sum.DataPoints[0].Attributes.ToSlice() {
				fmt.Println(kv.Key, "=", kv.Value.AsString())
			}
		}
	}
	// Output:
	// nixl.agent.name = decode-0
	// nixl.agent.peer.name = prefill-3
	// nixl.backend.name = UCX
	// nixl.transfer.direction = receive
}

// This agent needs no exporter: it writes to a ring, as NIXL agents do.
func ExampleWithRing() {
	dir, err := os.MkdirTemp("", "nixl")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	a, err := agent.New("worker-0", agent.WithRing(dir))
	if err != nil {
		log.Fatal(err)
	}
	a.Transfer(context.Background(), agent.Transmit, 1<<20, 12*time.Microsecond, 340*time.Microsecond)
	if err := a.Close(); err != nil { // flushes
		log.Fatal(err)
	}
	fmt.Println(a.RingTelemetry().Written, "events written")

	reader, err := ringbuf.OpenReader(filepath.Join(dir, "worker-0"), ringbuf.Consume)
	if err != nil {
		log.Fatal(err)
	}
	defer reader.Close()
	_, err = reader.Read(0, func(b ringbuf.Batch) {
		for i := range b.Len() {
			e := b.Event(i)
			fmt.Println(e.EventName(), e.Value)
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 4 events written
	// agent_xfer_post_time 12
	// agent_xfer_time 340
	// agent_tx_bytes 1048576
	// agent_tx_requests_num 1
}
