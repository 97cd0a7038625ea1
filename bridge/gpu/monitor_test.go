// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"fmt"
	"log"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/bridge/gpu"
	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/internal/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is a list of GPUs.
type source struct {
	samples []gpu.Sample
	closed  int
}

func (s *source) Samples() []gpu.Sample { return s.samples }

func (s *source) Close() error {
	s.closed++
	return nil
}

// card returns a GPU with 1000 bytes of memory.
func card(uuid string, used, utilization float64) gpu.Sample {
	return gpu.Sample{
		UUID: uuid, Name: "NVIDIA H200", MemoryUsed: gpu.NewValue(used), MemoryTotal: gpu.NewValue(1000),
		Utilization: gpu.NewValue(utilization), Temperature: gpu.NewValue(41), Power: gpu.NewValue(75.5), Energy: gpu.NewValue(1234),
	}
}

func newMonitor(t *testing.T, s gpu.Source) (*gpu.Monitor, *sdkmetric.ManualReader) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	m, err := gpu.New(nil, gpu.WithSource(s), gpu.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	must.OK(t, err)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
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
	m, reader := newMonitor(t, &source{samples: []gpu.Sample{card("GPU-0", 250, 0.5), {UUID: "GPU-2"}, card("GPU-1", 0, 1)}})
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

func TestNothingIsReportedWithoutGPUsAndAfterClose(t *testing.T) {
	s := &source{}
	m, reader := newMonitor(t, s)
	for _, state := range []string{"without GPUs", "after Close"} {
		if got := collect(t, reader); len(got) > 0 {
			t.Errorf("%s: series %v", state, got)
		}
		if u, ok := m.Utilization(); ok || m.Samples() != nil {
			t.Errorf("%s: Utilization: %v", state, u)
		}
		s.samples = []gpu.Sample{card("GPU-0", 1, 1)}
		if err := m.Close(); err != nil || s.closed != 1 {
			t.Errorf("closed %d times: %v", s.closed, err)
		}
	}
}

// A program whose monitor couldn't be created still works.
func TestNilMonitorHasNoGPUs(t *testing.T) {
	var m *gpu.Monitor
	if _, ok := m.Utilization(); ok || m.Samples() != nil || m.Close() != nil {
		t.Error("a nil Monitor has GPUs")
	}
}

// This test uses the NVML of this machine, if it has one.
func TestNewWithTheDefaultSourceReturnsNoError(t *testing.T) {
	m, err := gpu.New(gpu.WithSource(nil), gpu.WithMeterProvider(nil))
	must.OK(t, err)
	for _, s := range m.Samples() {
		t.Logf("%+v", s)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

func TestMonitorIsSafeForConcurrentUse(t *testing.T) {
	m, reader := newMonitor(t, &source{samples: []gpu.Sample{card("GPU-0", 1, 1)}})
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

// Without a GPU, this example prints nothing.
func ExampleNew() { //nolint:testableexamples // what it prints depends on the machine
	gpus, err := gpu.New()
	if err != nil {
		log.Fatal(err)
	}
	defer gpus.Close()
	for _, s := range gpus.Samples() {
		if watts, ok := s.Power.Get(); ok {
			fmt.Println(s.Name, s.UUID, watts, "W")
		}
	}
}
