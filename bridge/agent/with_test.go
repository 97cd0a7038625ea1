// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

func TestWithAddsAttributesToItsOwnPointsOnly(t *testing.T) {
	b := newBackend()
	w := b.agent(t)
	ucx := w.With(peer("p")).With(attribute.NewSet(attribute.String(semconv.BackendName, "UCX")))
	ucx.Transfer(ctx, agent.Receive, 4096, 3*us, 7*us)
	ucx.Error(ctx, semconv.ErrorCanceled)
	ucx.MemoryRegistered(ctx, 8)
	ucx.Event(ctx, ringbuf.CategoryBackend, "retries", 3)
	w.Transfer(ctx, agent.Receive, 1, us, us)

	got := b.values(t)
	const attributes = "nixl.agent.peer.name=p,nixl.backend.name=UCX"
	for key, want := range map[string]float64{
		"nixl.transfer.io{" + attributes + ",nixl.transfer.direction=receive}":                     4096,
		"nixl.transfer.size{" + attributes + ",nixl.transfer.direction=receive}":                   1,
		"nixl.transfer.throughput{" + attributes + ",nixl.transfer.direction=receive}":             1,
		"nixl.transfer.duration{" + attributes + "}":                                               1,
		"nixl.transfer.last.duration{" + attributes + "}":                                          7e-6,
		"nixl.errors{error.type=canceled," + attributes + "}":                                      1,
		"nixl.memory.usage{" + attributes + "}":                                                    8,
		"nixl.event.value{" + attributes + ",nixl.event.category=backend,nixl.event.name=retries}": 3,
		"nixl.transfer.io{nixl.transfer.direction=receive}":                                        1,
		"nixl.transfer.duration{}":                                                                 1,
		"nixl.transfer.requests{nixl.agent.peer.name=p,nixl.transfer.direction=receive}":           0,
		"nixl.transfer.requests{nixl.backend.name=UCX,nixl.transfer.direction=receive}":            0,
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	// Errors start at 0 only for the agent itself, not for each peer.
	for key := range metrictest.Values(collect(t, b.reader)) {
		if strings.HasPrefix(key, "nixl.errors{") && strings.Contains(key, "peer") && !strings.Contains(key, "canceled") {
			t.Errorf("%s is reported", key)
		}
	}
}

func TestSameAttributesReturnTheSameAgent(t *testing.T) {
	b := newBackend()
	w := b.agent(t)
	if first, second := w.With(peer("p")), w.With(peer("p")); first != second {
		t.Error("two agents for one set")
	}
	backend := attribute.NewSet(attribute.String(semconv.BackendName, "UCX"))
	if w.With(peer("p")).With(backend) != w.With(backend).With(peer("p")) {
		t.Error("two agents for one set that is added in two calls")
	}
	if w.With(attribute.NewSet()) != w {
		t.Error("another agent for no attributes")
	}
	set := peer("p")
	if n := testing.AllocsPerRun(100, func() { w.With(set) }); n > 0 {
		t.Errorf("looking up a set takes %v allocations", n)
	}
}

func TestAttributeSetsAreBounded(t *testing.T) {
	b := newBackend(sdkmetric.WithCardinalityLimit(0))
	a := b.agent(t)
	for i := range 1010 {
		set := attribute.NewSet(attribute.Int("peer", i))
		a.With(set).MemoryRegistered(ctx, 1)
		a.With(set).With(peer("p")).MemoryDeregistered(ctx, 1)
	}
	got := b.values(t)
	want := []float64{510, 510}
	if d := cmp.Diff(want, []float64{got["nixl.memory.registered{}"], got["nixl.memory.deregistered{}"]}); d != "" {
		t.Errorf("without attributes (-want +got):\n%s", d)
	}
}

func TestCloseAlsoClosesDerivedAgents(t *testing.T) {
	backend := newBackend()
	a := backend.agent(t)
	p := a.With(peer("p"))
	p.MemoryRegistered(ctx, 1)
	closeAgent(t, p)
	for _, late := range []*agent.Agent{a, p, a.With(peer("q"))} {
		late.MemoryRegistered(ctx, 5)
		late.Transfer(ctx, agent.Transmit, 1, us, us)
		late.Event(ctx, ringbuf.CategoryCustom, "late", 1)
	}
	const key = "{nixl.agent.peer.name=p}"
	backend.expect(t, map[string]float64{"nixl.memory.registered" + key: 1})
}

func TestRecordingDoesNotAllocate(t *testing.T) {
	b := newBackend()
	w := b.agent(t)
	for name, a := range map[string]*agent.Agent{"plain": w, "with attributes": w.With(peer("p"))} {
		if n := testing.AllocsPerRun(100, func() {
			a.Transfer(ctx, agent.Transmit, 4096, us, us)
			a.MemoryRegistered(ctx, 1)
			a.MemoryDeregistered(ctx, 1)
			a.Error(ctx, semconv.ErrorBackend)
			a.Event(ctx, ringbuf.CategoryBackend, "retries", 1)
			a.EventsDropped(ctx, 1)
		}); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
