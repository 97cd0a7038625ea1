// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package parity

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

const agentName = "worker 0"

// capacity is the capacity of the rings. A ring has space for a whole stream.
const capacity = 1 << 14

// batches holds the exported batches, in order.
type batches struct {
	mu   sync.Mutex
	list []pmetric.Metrics
	came chan struct{} // receives one value for each batch, unless nil
}

func (b *batches) add(_ context.Context, m pmetric.Metrics) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := pmetric.NewMetrics()
	m.CopyTo(own)
	b.list = append(b.list, own)
	if b.came != nil {
		b.came <- struct{}{}
	}
	return nil
}

func (b *batches) all() []pmetric.Metrics {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.list
}

// collector is a receiver of one directory, created by its factory.
type collector struct {
	dir string
	batches
	stop func()
}

// startReceiver starts a receiver that drains every 2 ms and collects when it
// shuts down.
func startReceiver(t *testing.T, dir string, change ...func(*nixlshmreceiver.Config)) *collector {
	t.Helper()
	c := &collector{dir: dir, batches: batches{came: make(chan struct{}, 1<<10)}}
	factory := nixlshmreceiver.NewFactory()
	cfg, ok := factory.CreateDefaultConfig().(*nixlshmreceiver.Config)
	if !ok {
		t.Fatalf("the default configuration is a %T", factory.CreateDefaultConfig())
	}
	cfg.Directories = []string{dir}
	cfg.RunInterval = 2 * time.Millisecond
	cfg.InitialDelay, cfg.CollectionInterval = time.Hour, time.Hour
	for _, f := range change {
		f(cfg)
	}
	next, err := consumer.NewMetrics(c.add)
	must.OK(t, err)
	r, err := factory.CreateMetrics(t.Context(), receivertest.NewNopSettings(factory.Type()), cfg, next)
	must.OK(t, err)
	must.OK(t, r.Start(t.Context(), componenttest.NewNopHost()))
	c.stop = func() {
		if err := r.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}
	return c
}

// throughRing writes a stream of operations to a ring and returns the metrics of
// the receiver.
func throughRing(t *testing.T, layout ringbuf.Layout, ops []operation) pmetric.Metrics {
	t.Helper()
	dir := t.TempDir()
	w, err := ringbuf.Create(filepath.Join(dir, agentName), layout, capacity)
	must.OK(t, err)
	defer w.Close()
	c := startReceiver(t, dir)
	for _, op := range ops {
		for _, e := range op.events {
			if layout.Named() && !e.Named {
				// Without this, the writer uses the names of errors in NIXL's first releases.
				e = ringbuf.NewNamedEvent(e.Category, e.Type.String(), e.Value)
			}
			must.OK(t, w.Push(e))
		}
	}
	c.stop()
	return only(t, c.all())
}

// pipeline returns a meter provider that exports to a backend, only on ForceFlush
// and Shutdown.
func pipeline(t *testing.T, b *otlpfile.Sink, opts ...sdkmetric.PeriodicReaderOption) *sdkmetric.MeterProvider {
	t.Helper()
	exporter, err := otlpmetricgrpc.New(t.Context(), otlpmetricgrpc.WithInsecure(), otlpmetricgrpc.WithEndpoint(b.Address))
	must.OK(t, err)
	return sdkmetric.NewMeterProvider(
		sdkmetric.WithResource(resource.NewSchemaless(attribute.String(semconv.AgentName, agentName))),
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter, append(opts, sdkmetric.WithInterval(time.Hour))...)),
	)
}

// throughBridge returns the metrics that the SDK exports for a stream of
// operations.
func throughBridge(t *testing.T, ops []operation) pmetric.Metrics {
	t.Helper()
	b := otlpfile.NewSink(t)
	provider := pipeline(t, b)
	a, err := agent.New(agentName, agent.WithMeterProvider(provider))
	must.OK(t, err)
	for _, op := range ops {
		op.do(a)
	}
	must.OK(t, provider.Shutdown(t.Context()))
	must.OK(t, a.Close())
	return only(t, b.Collections())
}

func only(t *testing.T, list []pmetric.Metrics) pmetric.Metrics {
	t.Helper()
	if len(list) != 1 {
		t.Fatalf("%d batches were exported, want 1", len(list))
	}
	return list[0]
}
