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
	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// An agent moves two blocks, and a reader collects what it did.
func ExampleNew() {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	a, err := agent.New("worker-0", agent.WithMeterProvider(provider))
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()

	a.MemoryRegistered(1 << 30)
	a.Transfer(agent.Transmit, 1<<20, 12*time.Microsecond, 340*time.Microsecond)
	a.Transfer(agent.Receive, 1<<18, 9*time.Microsecond, 95*time.Microsecond)
	a.Error(agent.StatusRemoteDisconnect)

	var collected metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &collected); err != nil {
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

// The provider's resource is the agent's own.
func ExampleWithNameInResource() {
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithResource(resource.NewSchemaless(
		attribute.String("service.name", "kv-cache"),
		attribute.String("nixl.agent.name", "worker-0"),
	)))
	a, err := agent.New("worker-0", agent.WithMeterProvider(provider), agent.WithNameInResource())
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	fmt.Println(a.Name())
	// Output: worker-0
}

// An agent without any exporter writes a ring, as NIXL's do.
func ExampleWithRing() {
	dir, err := os.MkdirTemp("", "nixl")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	a, err := agent.New("worker-0", agent.WithRing(agent.Ring{Dir: dir}))
	if err != nil {
		log.Fatal(err)
	}
	a.Transfer(agent.Transmit, 1<<20, 12*time.Microsecond, 340*time.Microsecond)
	if err := a.Close(); err != nil { // flushes
		log.Fatal(err)
	}
	fmt.Println(a.RingTelemetry().Written, "events written")

	reader, err := ringbuf.OpenReader(filepath.Join(dir, "worker-0"), ringbuf.Consume)
	if err != nil {
		log.Fatal(err)
	}
	defer reader.Close()
	events := make([]ringbuf.Event, 8)
	n, err := reader.ReadInto(events)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range events[:n] {
		fmt.Println(e.EventName(), e.Value)
	}
	// Output:
	// 4 events written
	// agent_xfer_post_time 12
	// agent_xfer_time 340
	// agent_tx_bytes 1048576
	// agent_tx_requests_num 1
}

// Every event goes to a sink as well.
func ExampleWithSinks() {
	printer := sink.Func(func(events []sink.Event) error {
		for _, e := range events {
			fmt.Println(e.Agent, e.Category, e.Name, e.Value)
		}
		return nil
	})
	a, err := agent.New("worker-0", agent.WithSinks(printer))
	if err != nil {
		log.Fatal(err)
	}
	a.Event(agent.EventBackend, "retries", 3)
	if err := a.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: worker-0 BACKEND retries 3
}
