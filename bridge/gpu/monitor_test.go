// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cards are the GPUs of a machine.
type cards struct {
	all    []Sample
	closed int
}

func (c *cards) samples() []Sample { return c.all }

func (c *cards) close() { c.closed++ }

// card returns a GPU with 1000 bytes of memory.
func card(uuid string, used, utilization float64) Sample {
	return Sample{
		UUID: uuid, Name: "NVIDIA H200", MemoryUsed: new(used), MemoryTotal: new(1000.0),
		Utilization: new(utilization), Temperature: new(41.0), Power: new(75.5), Energy: new(1234.0),
	}
}

func monitor(t *testing.T, s source) (*Monitor, *sdkmetric.ManualReader) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	m := newMonitor(s, WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	t.Cleanup(func() { must.OK(t, m.Close()) })
	return m, reader
}

// collect returns the value of each series by metric name, unit and attributes.
func collect(t *testing.T, reader sdkmetric.Reader) map[string]float64 {
	t.Helper()
	all := make(map[string]float64)
	for _, m := range metrictest.Collect(t, reader) {
		metrictest.EachPoint(m, func(set attribute.Set, v float64) {
			all[fmt.Sprintf("%s %s{%s}", m.Name, m.Unit, set.Encoded(attribute.DefaultEncoder()))] = v
		})
	}
	return all
}

func series(metric, more, id string) string {
	return metric + "{" + more + "hw.id=" + id + ",hw.name=NVIDIA H200,hw.type=gpu,hw.vendor=NVIDIA}"
}

func TestEachGPUHasItsMetrics(t *testing.T) {
	unknown := []Sample{
		{UUID: "GPU-2"},
		{UUID: "GPU-3", MemoryUsed: new(1.0)},
		{UUID: "GPU-4", MemoryTotal: new(1.0)},
		{UUID: "GPU-5", MemoryUsed: new(0.0), MemoryTotal: new(0.0)},
	}
	m, reader := monitor(t, &cards{all: append(unknown, card("GPU-0", 250, 0.5), card("GPU-1", 0, 1))})
	want := make(map[string]float64)
	for id, v := range map[string][2]float64{"GPU-0": {250, 0.5}, "GPU-1": {0, 1}} {
		want[series("hw.gpu.memory.usage By", "", id)] = v[0]
		want[series("hw.gpu.memory.limit By", "", id)] = 1000
		want[series("hw.gpu.memory.utilization 1", "", id)] = v[0] / 1000
		want[series("hw.gpu.utilization 1", "hw.gpu.task=general,", id)] = v[1]
		want[series("hw.temperature Cel", "", id)] = 41
		want[series("hw.power W", "", id)] = 75.5
		want[series("hw.energy J", "", id)] = 1234
	}
	for range 2 {
		if d := cmp.Diff(want, collect(t, reader)); d != "" {
			t.Errorf("series (-want +got):\n%s", d)
		}
	}
	if u, ok := m.Utilization(); u != 0.75 || !ok {
		t.Errorf("Utilization: %v, %v", u, ok)
	}
}

func TestNothingIsReportedWithoutGPUs(t *testing.T) {
	m, reader := monitor(t, &cards{})
	if got := collect(t, reader); len(got) > 0 {
		t.Errorf("series %v", got)
	}
	if u, ok := m.Utilization(); ok || m.Samples() != nil {
		t.Errorf("Utilization: %v", u)
	}
}

func TestLastValuesAreReportedAfterClose(t *testing.T) {
	s := &cards{all: []Sample{card("GPU-0", 1, 1)}}
	m, reader := monitor(t, s)
	want := collect(t, reader)
	for range 2 {
		if err := m.Close(); err != nil || s.closed != 1 {
			t.Errorf("closed %d times: %v", s.closed, err)
		}
		if d := cmp.Diff(want, collect(t, reader)); d != "" {
			t.Errorf("series after Close (-want +got):\n%s", d)
		}
	}
}

// hanging is an NVML whose calls don't return until it is closed.
type hanging chan struct{}

func (h hanging) samples() []Sample {
	<-h
	return []Sample{card("GPU-0", 1, 1)}
}

func (hanging) close() {}

// The SDK holds a lock during a callback, so one that hung would stop all metrics of the program.
func TestHangingNVMLDoesNotHoldCollections(t *testing.T) {
	errs, nvml := metrictest.Handled(t), make(hanging)
	m, reader := monitor(t, nvml)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if got := m.samples(canceled); got != nil {
		t.Errorf("samples %v", got)
	}
	for range 3 {
		if got := collect(t, reader); len(got) > 0 {
			t.Errorf("series %v", got)
		}
	}
	if got := errs(); len(got) != 1 || !strings.Contains(got[0], "NVML doesn't answer") {
		t.Errorf("errors %q, want one", got)
	}
	close(nvml)
	must.EventuallyTrue(t, "metric after NVML has answered", func() bool { return len(collect(t, reader)) > 0 })
	must.OK(t, m.Close())

	stuck := make(hanging)
	defer close(stuck)
	if err := newMonitor(stuck, WithMeterProvider(noop.NewMeterProvider())).Close(); err == nil || !strings.Contains(err.Error(), "NVML doesn't answer") {
		t.Errorf("Close: %v", err)
	}
}

// A program turns telemetry off with a nil Monitor.
func TestNilMonitorHasNoGPUs(t *testing.T) {
	var m *Monitor
	if _, ok := m.Utilization(); ok || m.Samples() != nil || m.Close() != nil {
		t.Error("a nil Monitor has GPUs")
	}
}

// This test uses the NVML of this machine, if it has one.
func TestNewUsesTheNVMLOfTheMachine(t *testing.T) {
	m := New(WithMeterProvider(nil))
	for _, s := range m.Samples() {
		t.Logf("%+v", s)
	}
	must.OK(t, m.Close())
}

func TestMonitorIsSafeForConcurrentUse(t *testing.T) {
	m, reader := monitor(t, &cards{all: []Sample{card("GPU-0", 1, 1)}})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				m.Utilization()
				collect(t, reader)
			}
		})
	}
	wg.Go(func() { _ = m.Close() })
	wg.Wait()
}
