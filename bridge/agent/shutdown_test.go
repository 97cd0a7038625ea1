// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
)

// exporter records the values of the last export.
type exporter struct{ values map[string]float64 }

func (*exporter) Temporality(sdkmetric.InstrumentKind) metricdata.Temporality {
	return metricdata.CumulativeTemporality
}

func (*exporter) Aggregation(kind sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(kind)
}

func (e *exporter) Export(_ context.Context, rm *metricdata.ResourceMetrics) error {
	e.values = make(map[string]float64)
	for _, sm := range rm.ScopeMetrics {
		maps.Copy(e.values, metrictest.Values(sm.Metrics))
	}
	return nil
}

func (*exporter) ForceFlush(context.Context) error { return nil }
func (*exporter) Shutdown(context.Context) error   { return nil }

// The agent and its provider can be closed in either order, also with several
// readers.
func TestLastExportIsCompleteInAnyOrderOfShutdown(t *testing.T) {
	run := func(t *testing.T, shutdown func(*agent.Agent, *sdkmetric.MeterProvider) error) map[string]float64 {
		t.Helper()
		first, second, producer := &exporter{}, &exporter{}, agent.NewProducer()
		provider := sdkmetric.NewMeterProvider(
			sdkmetric.WithReader(sdkmetric.NewPeriodicReader(first, sdkmetric.WithInterval(time.Hour), sdkmetric.WithProducer(producer))),
			sdkmetric.WithReader(sdkmetric.NewPeriodicReader(second, sdkmetric.WithInterval(time.Hour), sdkmetric.WithProducer(producer))),
		)
		a, err := agent.New("a", agent.WithProducer(producer))
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range []*agent.Agent{a, a.With(peer("p"))} {
			a.Transfer(ctx, agent.Transmit, 4096, us, us)
			a.MemoryRegistered(ctx, 300)
			a.MemoryDeregistered(ctx, 100)
			a.Event(ctx, agent.EventCustom, "x", 7)
			a.Error(ctx, agent.StatusBackend)
			a.EventsDropped(ctx, 3)
		}
		if err := shutdown(a, provider); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(first.values, second.values); d != "" {
			t.Errorf("two readers differ:\n%s", d)
		}
		return first.values
	}
	providerFirst := run(t, func(a *agent.Agent, p *sdkmetric.MeterProvider) error {
		if err := p.Shutdown(t.Context()); err != nil {
			return err
		}
		return a.Close()
	})
	agentFirst := run(t, func(a *agent.Agent, p *sdkmetric.MeterProvider) error {
		if err := a.Close(); err != nil {
			return err
		}
		return p.Shutdown(t.Context())
	})
	if len(providerFirst) < 40 {
		t.Errorf("only %d series were exported", len(providerFirst))
	}
	if d := cmp.Diff(providerFirst, agentFirst); d != "" {
		t.Errorf("last export (-provider closed first +agent closed first):\n%s", d)
	}
}
