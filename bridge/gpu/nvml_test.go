// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build cgo && linux && (amd64 || arm64)

package gpu

import (
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/google/go-cmp/cmp"
)

// mocked returns a mock GPU. All its functions except those for UUID and name return
// ret.
func mocked(uuid string, used uint64, utilization uint32, ret nvml.Return) *mock.Device {
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

func TestNVMLProvidesTheKnownValues(t *testing.T) {
	nameless := mocked("", 1, 1, nvml.SUCCESS)
	nameless.GetUUIDFunc = func() (string, nvml.Return) { return "", nvml.ERROR_NOT_SUPPORTED }
	l := openNVML(machine(mocked("GPU-0", 250, 40, nvml.SUCCESS), nil, nameless, mocked("GPU-1", 0, 100, nvml.ERROR_NOT_SUPPORTED)))
	want := []Sample{
		{
			UUID: "GPU-0", Name: "NVIDIA H200", MemoryUsed: new(float64(250)), MemoryTotal: new(float64(1000)),
			Utilization: new(float64(0.4)), Temperature: new(float64(41)), Power: new(float64(75.5)), Energy: new(float64(1234)),
		},
		{UUID: "GPU-1", Name: "NVIDIA H200"},
	}
	if d := cmp.Diff(want, l.samples()); d != "" {
		t.Errorf("samples (-want +got):\n%s", d)
	}
	l.close()
}

func TestNVMLWithoutADriverHasNoGPUs(t *testing.T) {
	noDriver, noCount := machine(), machine(mocked("GPU-0", 1, 1, nvml.SUCCESS))
	noDriver.InitFunc = func() nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND }
	noCount.DeviceGetCountFunc = func() (int, nvml.Return) { return 1, nvml.ERROR_UNKNOWN } // the number isn't valid
	for name, n := range map[string]*mock.Interface{"no driver": noDriver, "no count": noCount, "no GPU": machine()} {
		l := openNVML(n)
		if got := l.samples(); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
		l.close()
		if opened := name != "no driver"; len(n.ShutdownCalls()) == 1 != opened {
			t.Errorf("%s: shut down %d times", name, len(n.ShutdownCalls()))
		}
	}
}
