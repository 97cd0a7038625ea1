// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// observed returns the series that end with an agent.
func observed(t *testing.T, b *backend) map[string]float64 {
	t.Helper()
	all := b.all(t)
	maps.DeleteFunc(all, func(key string, _ float64) bool { return !endsWithAgent(key) })
	return all
}

func endsWithAgent(key string) bool {
	switch name, _, _ := strings.Cut(key, "{"); name {
	case semconv.AgentUp.Name, semconv.MemoryUsage.Name, semconv.TransferLastSize.Name,
		semconv.TransferLastDuration.Name, semconv.TransferLastPostDuration.Name, semconv.MemoryLastSize.Name:
		return true
	default:
		return false
	}
}

// A value of 0 is a value, and negative ones count as 0.
func TestLastValuesOfZeroAreReported(t *testing.T) {
	b := newBackend()
	a := b.agent(t)
	a.Transfer(ctx, agent.Receive, -1, -us, -us)
	a.MemoryRegistered(ctx, -1)
	a.MemoryDeregistered(ctx, -1)
	want := map[string]float64{
		"nixl.agent.up{}": 1, "nixl.memory.usage{}": 0,
		"nixl.transfer.last.size{nixl.transfer.direction=receive}": 0, "nixl.transfer.last.duration{}": 0, "nixl.transfer.last.post_duration{}": 0,
		"nixl.memory.last.size{nixl.memory.operation=register}": 0, "nixl.memory.last.size{nixl.memory.operation=deregister}": 0,
	}
	if d := cmp.Diff(want, observed(t, b)); d != "" {
		t.Errorf("observed (-want +got):\n%s", d)
	}
	for _, h := range []string{semconv.TransferDuration.Name, semconv.TransferPostDuration.Name, semconv.TransferSize.Name} {
		data := metrictest.Data[metricdata.Histogram[float64]](t, metrictest.Collect(t, b.reader), h)
		if sum := data.DataPoints[0].Sum; sum != 0 {
			t.Errorf("the sum of %s is %v", h, sum)
		}
	}
}

// An agent of the same name continues the counters and the histograms.
func TestObservedSeriesEndWithClose(t *testing.T) {
	b := newBackend()
	var values map[string]float64
	for n := 1.0; n <= 2; n++ {
		a := b.agent(t)
		if d := cmp.Diff(map[string]float64{"nixl.agent.up{}": 1}, observed(t, b)); d != "" {
			t.Errorf("created (-want +got):\n%s", d)
		}
		do(a)
		if open := observed(t, b); len(open) != 8 || open["nixl.agent.up{}"] != 1 || open["nixl.memory.usage{}"] != 200 {
			t.Errorf("open: %v", open)
		}
		must.OK(t, a.Close())
		if got := observed(t, b); len(got) > 0 {
			t.Errorf("closed: %v", got)
		}
		values = b.values(t)
		for key, want := range map[string]float64{
			"nixl.transfer.io{nixl.transfer.direction=transmit}": 4096, "nixl.memory.registered{}": 300,
			"nixl.errors{error.type=backend}": 1, "nixl.transfer.duration{}": 2,
		} {
			if values[key] != n*want {
				t.Errorf("%s is %v, want %v", key, values[key], n*want)
			}
		}
		do(a) // is ignored
		must.OK(t, a.Close())
	}
	b.expect(t, values)
}

// A collection can begin while an agent is created.
func TestAgentsAreCreatedAndClosedDuringCollections(t *testing.T) {
	b := newBackend()
	stop := make(chan struct{})
	var collectors sync.WaitGroup
	for range 4 {
		collectors.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = b.reader.Collect(ctx, new(metricdata.ResourceMetrics))
				}
			}
		})
	}
	for range 200 {
		must.OK(t, b.agent(t).Close())
	}
	close(stop)
	collectors.Wait()
}

// The agent and its provider can be closed in either order, apart from the series that
// end with the agent.
func TestLastExportIsCompleteInAnyOrderOfShutdown(t *testing.T) {
	run := func(agentFirst bool) map[string]float64 {
		b := newBackend()
		a := b.agent(t)
		do(a)
		if agentFirst {
			must.OK(t, a.Close())
		}
		values := b.all(t)
		must.OK(t, b.provider.Shutdown(t.Context()))
		must.OK(t, a.Close())
		maps.DeleteFunc(values, func(key string, _ float64) bool { return endsWithAgent(key) })
		return values
	}
	agentFirst, providerFirst := run(true), run(false)
	if len(agentFirst) < 20 {
		t.Errorf("only %d series were exported", len(agentFirst))
	}
	if d := cmp.Diff(providerFirst, agentFirst); d != "" {
		t.Errorf("last export (-provider closed first +agent closed first):\n%s", d)
	}
}
