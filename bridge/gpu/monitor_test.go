// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/bridge/gpu"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// card returns a mock GPU. All its functions except those for UUID and name return
// ret.
func card(uuid string, used uint64, utilization uint32, ret nvml.Return) *mock.Device {
	return &mock.Device{
		GetUUIDFunc: func() (string, nvml.Return) { return uuid, nvml.SUCCESS },
		GetNameFunc: func() (string, nvml.Return) { return "NVIDIA H200", nvml.SUCCESS },
		GetMemoryInfoFunc: func() (nvml.Memory, nvml.Return) {
			return nvml.Memory{Total: 1000, Used: used, Free: 1000 - used}, ret
		},
		GetUtilizationRatesFunc:       func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{Gpu: utilization}, ret },
		GetTemperatureFunc:            func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 41, ret },
		GetPowerUsageFunc:             func() (uint32, nvml.Return) { return 75_500, ret },
		GetTotalEnergyConsumptionFunc: func() (uint64, nvml.Return) { return 1_234_000, ret },
	}
}

// machine returns a mock NVML with some GPUs. A nil device is a lost GPU.
func machine(devices ...*mock.Device) *mock.Interface {
	return &mock.Interface{
		InitFunc:           func() nvml.Return { return nvml.SUCCESS },
		ShutdownFunc:       func() nvml.Return { return nvml.SUCCESS },
		DeviceGetCountFunc: func() (int, nvml.Return) { return len(devices), nvml.SUCCESS },
		DeviceGetHandleByIndexFunc: func(i int) (nvml.Device, nvml.Return) {
			if devices[i] == nil {
				return nil, nvml.ERROR_GPU_IS_LOST
			}
			return devices[i], nvml.SUCCESS
		},
	}
}

func newMonitor(t *testing.T, library nvml.Interface) (*gpu.Monitor, *sdkmetric.ManualReader) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	m, err := gpu.New(gpu.WithLibrary(library),
		gpu.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	if err != nil {
		t.Fatal(err)
	}
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
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &rm); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			put := func(set attribute.Set, v float64) {
				all[fmt.Sprintf("%s %s{%s}", m.Name, m.Unit, set.Encoded(attribute.DefaultEncoder()))] = v
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					put(p.Attributes, float64(p.Value))
				}
			case metricdata.Sum[float64]:
				for _, p := range data.DataPoints {
					put(p.Attributes, p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					put(p.Attributes, p.Value)
				}
			default:
				t.Errorf("%s is a %T", m.Name, data)
			}
		}
	}
	return all
}

func series(metric, more, id string) string {
	return metric + "{" + more + "hw.id=" + id + ",hw.name=NVIDIA H200,hw.type=gpu,hw.vendor=NVIDIA}"
}

func TestEachGPUHasItsMetrics(t *testing.T) {
	_, reader := newMonitor(t, machine(card("GPU-0", 250, 40, nvml.SUCCESS), nil, card("GPU-1", 0, 100, nvml.SUCCESS)))
	want := make(map[string]float64)
	for id, v := range map[string][2]float64{"GPU-0": {250, 0.4}, "GPU-1": {0, 1}} {
		want[series("hw.gpu.memory.usage By", "", id)] = v[0]
		want[series("hw.gpu.memory.limit By", "", id)] = 1000
		want[series("hw.gpu.memory.utilization 1", "", id)] = v[0] / 1000
		want[series("hw.gpu.utilization 1", "hw.gpu.task=general,", id)] = v[1]
		want[series("hw.temperature Cel", "", id)] = 41
		want[series("hw.power W", "", id)] = 75.5
		want[series("hw.energy J", "", id)] = 1234
	}
	if d := cmp.Diff(want, collect(t, reader)); d != "" {
		t.Errorf("series (-want +got):\n%s", d)
	}
}

func TestSamplesHaveTheKnownValues(t *testing.T) {
	m, _ := newMonitor(t, machine(card("GPU-0", 250, 40, nvml.SUCCESS), card("GPU-1", 0, 100, nvml.ERROR_NOT_SUPPORTED)))
	want := []gpu.Sample{
		{
			UUID: "GPU-0", Name: "NVIDIA H200", MemoryUsed: gpu.NewValue(250), MemoryTotal: gpu.NewValue(1000),
			Utilization: gpu.NewValue(0.4), Temperature: gpu.NewValue(41), Power: gpu.NewValue(75.5), Energy: gpu.NewValue(1234),
		},
		{UUID: "GPU-1", Name: "NVIDIA H200"},
	}
	if d := cmp.Diff(want, m.Samples(), cmp.AllowUnexported(gpu.Value{})); d != "" {
		t.Errorf("samples (-want +got):\n%s", d)
	}
	if u, ok := m.Utilization(); u != 0.4 || !ok {
		t.Errorf("Utilization: %v, %v", u, ok)
	}
}

func TestWithoutAGPUThereAreNoMetricsAndNoError(t *testing.T) {
	failing := machine()
	failing.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_UNKNOWN }
	unloaded := machine()
	unloaded.InitFunc = func() nvml.Return { return nvml.ERROR_DRIVER_NOT_LOADED }
	nameless := card("", 0, 0, nvml.SUCCESS)
	nameless.GetUUIDFunc = func() (string, nvml.Return) { return "", nvml.ERROR_NO_PERMISSION }
	for name, library := range map[string]nvml.Interface{
		"no library":        nvml.New(nvml.WithLibraryPath("/nonexistent/libnvidia-ml.so.1")),
		"driver not loaded": unloaded,
		"no count":          failing,
		"no GPU":            machine(),
		"GPU is lost":       machine(card("GPU-0", 1, 1, nvml.ERROR_GPU_IS_LOST)),
		"no UUID":           machine(nameless),
	} {
		t.Run(name, func(t *testing.T) {
			m, reader := newMonitor(t, library)
			if got := collect(t, reader); len(got) > 0 {
				t.Errorf("series %v", got)
			}
			if u, ok := m.Utilization(); ok {
				t.Errorf("Utilization: %v", u)
			}
		})
	}
}

// This test uses the NVML of this machine, if it has one.
func TestNewWithTheDefaultLibraryReturnsNoError(t *testing.T) {
	m, err := gpu.New()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, s := range m.Samples() {
		t.Logf("%+v", s)
	}
}

// The Monitor and the provider can be closed in either order: the values at Close are
// reported for a minute, without NVML.
func TestLastValuesAreReportedAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		library := machine(card("GPU-0", 1, 1, nvml.SUCCESS))
		m, reader := newMonitor(t, library)
		want := collect(t, reader)
		for range 2 {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
		if n := len(library.ShutdownCalls()); n != 1 {
			t.Errorf("NVML was shut down %d times", n)
		}
		if got := m.Samples(); got != nil {
			t.Errorf("after Close, Samples are %v", got)
		}
		time.Sleep(time.Minute - 1) // in a bubble of synctest
		if d := cmp.Diff(want, collect(t, reader)); d != "" || len(want) == 0 {
			t.Errorf("within a minute after Close (-want +got):\n%s", d)
		}
		time.Sleep(time.Nanosecond) // in a bubble of synctest
		if got := collect(t, reader); len(got) > 0 {
			t.Errorf("a minute after Close: %v", got)
		}
	})
}

// The values of a closed Monitor aren't added to those of the next one.
func TestNextMonitorReplacesAClosedOne(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	provider := gpu.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	for _, used := range []uint64{250, 300} {
		m, err := gpu.New(gpu.WithLibrary(machine(card("GPU-0", used, 1, nvml.SUCCESS))), provider)
		if err != nil {
			t.Fatal(err)
		}
		if got := collect(t, reader)[series("hw.gpu.memory.usage By", "", "GPU-0")]; got != float64(used) {
			t.Errorf("usage is %v, want %d", got, used)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMonitorIsSafeForConcurrentUse(t *testing.T) {
	m, reader := newMonitor(t, machine(card("GPU-0", 1, 1, nvml.SUCCESS)))
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
