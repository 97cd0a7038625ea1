// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
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

func newBackend() *backend {
	reader := sdkmetric.NewManualReader()
	return &backend{sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), reader}
}

// agent returns an agent with the name a.
func (b *backend) agent(t *testing.T, opts ...agent.Option) *agent.Agent {
	t.Helper()
	return newAgent(t, "a", append(opts, agent.WithMeterProvider(b.provider))...)
}

// newAgent returns an agent that is closed when the test ends.
func newAgent(t *testing.T, name string, opts ...agent.Option) *agent.Agent {
	t.Helper()
	a, err := agent.New(name, opts...)
	must.OK(t, err)
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// all collects the current values by metric and attributes, without the name of agent a.
func (b *backend) all(t *testing.T) map[string]float64 {
	t.Helper()
	name := strings.NewReplacer("nixl.agent.name=a,", "", ",nixl.agent.name=a}", "}", "nixl.agent.name=a}", "}", ",nixl.agent.name=a,", ",")
	values := make(map[string]float64)
	for key, v := range metrictest.Values(metrictest.Collect(t, b.reader)) {
		values[name.Replace(key)] = v
	}
	return values
}

func (b *backend) expect(t *testing.T, want map[string]float64) {
	t.Helper()
	if d := cmp.Diff(want, b.all(t)); d != "" {
		t.Errorf("values (-want +got):\n%s", d)
	}
}

// with returns values in addition to what an agent reports before the first call: errors and drops start at 0.
func with(values map[string]float64) map[string]float64 {
	all := map[string]float64{"nixl.agent.up{}": 1, "nixl.telemetry.events.dropped{}": 0}
	for _, name := range []string{
		"not_posted", "invalid_param", "backend", "not_found", "mismatch", "not_allowed", "repost_active", "unknown",
		"not_supported", "remote_disconnect", "canceled", "no_telemetry",
	} {
		all["nixl.errors{error.type="+name+"}"] = 0
	}
	maps.Copy(all, values)
	return all
}

// do calls every method that records.
func do(a *agent.Agent) {
	a.Transfer(ctx, agent.Transmit, 4096, 15*us, 120*us)
	a.Transfer(ctx, agent.Receive, 1<<20, 3*us, 10*us)
	a.MemoryRegistered(ctx, 300)
	a.MemoryDeregistered(ctx, 100)
	a.Error(ctx, semconv.ErrorBackend)
	a.EventsDropped(ctx, 3)
	a.Event(ctx, ringbuf.CategoryBackend, "ucx_retries", 2)
}
