// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package parity

import (
	"path/filepath"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

const agentName = "worker 0"

// ringOf returns a directory with an agent's ring, which has space for all events and holds them.
func ringOf(t *testing.T, layout ringbuf.Layout, events ...ringbuf.Event) string {
	t.Helper()
	dir := t.TempDir()
	w, err := ringbuf.Create(filepath.Join(dir, agentName), layout, 1<<14)
	must.OK(t, err)
	t.Cleanup(func() { _ = w.Close() })
	if n, err := w.PushBatch(events); n < len(events) {
		t.Fatalf("only %d events fit: %v", n, err)
	}
	return dir
}

// throughReceiver returns the metrics that the receiver exports for a directory when it
// shuts down.
func throughReceiver(t *testing.T, dir string, change ...func(*nixlshmreceiver.Config)) pmetric.Metrics {
	t.Helper()
	factory := nixlshmreceiver.NewFactory()
	cfg, ok := factory.CreateDefaultConfig().(*nixlshmreceiver.Config)
	if !ok {
		t.Fatalf("the default configuration is a %T", factory.CreateDefaultConfig())
	}
	cfg.Directories = []string{dir}
	cfg.InitialDelay, cfg.CollectionInterval = time.Hour, time.Hour
	m := &cfg.Metrics // off by default
	m.NixlMemoryLastSize.Enabled, m.NixlTransferLastSize.Enabled = true, true
	m.NixlTransferLastDuration.Enabled, m.NixlTransferLastPostDuration.Enabled = true, true
	for _, f := range change {
		f(cfg)
	}
	var sink consumertest.MetricsSink
	r, err := factory.CreateMetrics(t.Context(), receivertest.NewNopSettings(factory.Type()), cfg, &sink)
	must.OK(t, err)
	must.OK(t, r.Start(t.Context(), componenttest.NewNopHost()))
	must.OK(t, r.Shutdown(t.Context()))
	return only(t, sink.AllMetrics())
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
