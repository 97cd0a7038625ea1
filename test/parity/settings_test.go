// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package parity

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/bridge/session"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// limit is the cardinality limit of the MeterProvider of these tests.
const limit = 3

// changingProvider returns a MeterProvider that exports to a backend on ForceFlush: it
// renames all metrics, drops an attribute, and exports deltas of few series, with
// exponential histograms.
func changingProvider(t *testing.T, b *backend, drop attribute.Key) *sdkmetric.MeterProvider {
	t.Helper()
	exporter, err := otlpmetricgrpc.New(t.Context(), otlpmetricgrpc.WithInsecure(), otlpmetricgrpc.WithEndpoint(b.address),
		otlpmetricgrpc.WithTemporalitySelector(func(sdkmetric.InstrumentKind) metricdata.Temporality { return metricdata.DeltaTemporality }),
		otlpmetricgrpc.WithAggregationSelector(func(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
			if k == sdkmetric.InstrumentKindHistogram {
				return sdkmetric.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 20}
			}
			return sdkmetric.DefaultAggregationSelector(k)
		}))
	must.OK(t, err)
	provider := sdkmetric.NewMeterProvider(
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithInterval(time.Hour))),
		sdkmetric.WithCardinalityLimit(limit),
		sdkmetric.WithView(func(i sdkmetric.Instrument) (sdkmetric.Stream, bool) {
			return sdkmetric.Stream{
				Name: "go." + i.Name, Unit: i.Unit, Description: i.Description,
				AttributeFilter: attribute.NewDenyKeysFilter(drop),
			}, true
		}))
	t.Cleanup(func() {
		if err := provider.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return provider
}

// checkChanges checks the metrics of a changingProvider, and returns the sum of the
// counts of each.
func checkChanges(t *testing.T, batch pmetric.Metrics, drop attribute.Key) map[string]int64 {
	t.Helper()
	sums := make(map[string]int64)
	for _, m := range normalizeAll(t, batch) {
		name, renamed := strings.CutPrefix(m.Name, "go.")
		if !renamed || len(m.Points) > limit {
			t.Errorf("%s has %d points", m.Name, len(m.Points))
		}
		if m.Kind != pmetric.MetricTypeGauge && m.Temporality != pmetric.AggregationTemporalityDelta {
			t.Errorf("%s is %v", m.Name, m.Temporality)
		}
		if m.Kind == pmetric.MetricTypeHistogram {
			t.Errorf("%s isn't exponential", m.Name)
		}
		for _, p := range m.Points {
			if strings.Contains(p.Attributes, string(drop)) {
				t.Errorf("%s has %s", m.Name, p.Attributes)
			}
			sums[name] += p.Int
		}
	}
	return sums
}

// An OTLP server gets the metrics of Go agents as the program's MeterProvider is set up.
func TestSettingsOfTheMeterProviderApplyToGoAgents(t *testing.T) {
	b := startBackend(t)
	provider := changingProvider(t, b, semconv.BackendName)
	var agents []*agent.Agent
	for i := range limit + 2 {
		a, err := agent.New(fmt.Sprint("agent ", i), agent.WithMeterProvider(provider))
		must.OK(t, err)
		defer a.Close()
		agents = append(agents, a.With(attribute.NewSet(attribute.String(semconv.BackendName, "UCX"))))
	}
	const rounds, transfers = 2, 7
	for range rounds {
		for _, a := range agents {
			for range transfers {
				a.Transfer(context.Background(), agent.Transmit, 4096, 15*time.Microsecond, 120*time.Microsecond)
			}
			registered(1).do(a)
			failed(0).do(a)
			event(0, "x", 1).do(a)
		}
		must.OK(t, provider.ForceFlush(t.Context()))
	}
	sums := checkChanges(t, b.all()[rounds-1], semconv.BackendName)
	if got, want := sums[semconv.TransferRequests.Name], int64(len(agents)*transfers); got != want {
		t.Errorf("%d requests in round %d, want %d", got, rounds, want)
	}
	if len(sums) < 16 {
		t.Errorf("only %d metrics", len(sums))
	}
}

// The same for ring kernels and sessions.
func TestSettingsOfTheMeterProviderApplyToKernelsAndSessions(t *testing.T) {
	b := startBackend(t)
	provider := changingProvider(t, b, semconv.QueueName)
	rt := ringkernel.NewRuntime(ringkernel.WithMeterProvider(provider))
	s, err := session.Open(t.TempDir(), session.WithMeterProvider(provider))
	must.OK(t, err)
	const rounds, kernels, packets = 2, 5, 10
	for range rounds {
		for i := range kernels {
			k := rt.Register(fmt.Sprint("kernel ", i))
			k.Received(t.Context())
			k.Processed(t.Context(), time.Millisecond)
			k.Sent(t.Context())
			k.Dropped(t.Context(), ringkernel.InputQueue)
			k.Error(t.Context(), context.Canceled)
			k.SetQueueSize(ringkernel.InputQueue, 1)
			k.SetQueueCapacity(ringkernel.InputQueue, 2)
		}
		for i := range packets {
			if err := s.Record(t.Context(), session.Packet{
				Operation: "expert_ffn", Expert: fmt.Sprint(i), Device: fmt.Sprint("npu", i), DeviceTarget: session.CPU, Memory: 1,
			}); err != nil {
				t.Fatal(err)
			}
		}
		s.AddPromptTokens(t.Context(), 1)
		must.OK(t, provider.ForceFlush(t.Context()))
	}
	sums := checkChanges(t, b.all()[rounds-1], semconv.QueueName)
	for name, want := range map[string]int64{
		semconv.KernelMessagesReceived.Name: kernels, semconv.KernelMessagesDropped.Name: kernels, semconv.KernelErrors.Name: kernels,
		semconv.Packets.Name: packets, semconv.PacketFallbacks.Name: packets, semconv.ExpertSelections.Name: packets,
	} {
		if sums[name] != want {
			t.Errorf("%s increased by %d in round %d, want %d", name, sums[name], rounds, want)
		}
	}
	if want := len(semconv.RingKernel()) + len(semconv.SplitInference()); len(sums) != want {
		t.Errorf("%d metrics, want %d", len(sums), want)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// normalizeAll returns the metrics of a batch, whose resource doesn't describe an agent.
func normalizeAll(t *testing.T, batch pmetric.Metrics) (list []metric) {
	t.Helper()
	for _, rm := range batch.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				list = append(list, normalizeMetric(t, m, ""))
			}
		}
	}
	return list
}
