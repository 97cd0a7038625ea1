// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ctx is for calls whose context doesn't matter.
var ctx = context.Background()

const us = time.Microsecond

// backend is a MeterProvider to which agents report.
type backend struct {
	provider *sdkmetric.MeterProvider
	reader   *sdkmetric.ManualReader
}

func newBackend(opts ...sdkmetric.Option) *backend {
	b := &backend{reader: sdkmetric.NewManualReader()}
	b.provider = sdkmetric.NewMeterProvider(append(opts, sdkmetric.WithReader(b.reader))...)
	return b
}

// agent returns an agent whose data points don't carry its name.
func (b *backend) agent(t *testing.T, opts ...agent.Option) *agent.Agent {
	t.Helper()
	return b.named(t, "a", append(opts, agent.WithNameInResource())...)
}

func (b *backend) named(t *testing.T, name string, opts ...agent.Option) *agent.Agent {
	t.Helper()
	return newAgent(t, name, append(opts, agent.WithMeterProvider(b.provider))...)
}

// newAgent returns an agent that is closed when the test ends.
func newAgent(t *testing.T, name string, opts ...agent.Option) *agent.Agent {
	t.Helper()
	a, err := agent.New(name, opts...)
	must.OK(t, err)
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func closeAgent(t *testing.T, a *agent.Agent) {
	t.Helper()
	must.OK(t, a.Close())
}

func collect(t *testing.T, reader sdkmetric.Reader) []metricdata.Metrics {
	t.Helper()
	return metrictest.Collect(t, reader)
}

// values collects the current values and returns those that aren't 0, without
// nixl.agent.up.
func (b *backend) values(t *testing.T) map[string]float64 {
	t.Helper()
	all := metrictest.Values(collect(t, b.reader))
	for key, v := range all {
		if v == 0 || strings.HasPrefix(key, semconv.AgentUp.Name) {
			delete(all, key)
		}
	}
	return all
}

func (b *backend) expect(t *testing.T, want map[string]float64) {
	t.Helper()
	if d := cmp.Diff(want, b.values(t)); d != "" {
		t.Errorf("values (-want +got):\n%s", d)
	}
}

func peer(name string) attribute.Set {
	return attribute.NewSet(attribute.String(semconv.PeerAgentName, name))
}

// do calls every method that records.
func do(a *agent.Agent) {
	a.Transfer(ctx, agent.Transmit, 4096, 15*us, 120*us)
	a.Transfer(ctx, agent.Receive, 1<<20, 3*us, 10*us)
	a.MemoryRegistered(ctx, 300)
	a.MemoryDeregistered(ctx, 100)
	a.Error(ctx, semconv.ErrorBackend)
	a.Event(ctx, 0, "x", 7)
	a.EventsDropped(ctx, 3)
}
