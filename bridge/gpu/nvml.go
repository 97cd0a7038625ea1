// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build cgo && linux && (amd64 || arm64)

package gpu

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// newSource returns the system's NVML, libnvidia-ml.so.1.
func newSource() source { return openNVML(nvml.New()) }

// library is NVML. It has no devices if NVML returns an error, for example because there
// is no driver.
type library struct {
	nvml    nvml.Interface
	open    bool
	devices []device
}

type device struct {
	handle     nvml.Device
	uuid, name string
}

func openNVML(n nvml.Interface) *library {
	l := &library{nvml: n, open: n.Init() == nvml.SUCCESS}
	if !l.open {
		return l
	}
	count, ret := n.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return l
	}
	for i := range count {
		handle, ret := n.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue // no permission, or a lost GPU
		}
		// Without a UUID, the GPU couldn't be distinguished from others.
		if uuid, ret := handle.GetUUID(); ret == nvml.SUCCESS {
			name, _ := handle.GetName() // empty if unknown
			l.devices = append(l.devices, device{handle, uuid, name})
		}
	}
	return l
}

func (l *library) samples() []Sample {
	var all []Sample
	for _, d := range l.devices {
		all = append(all, d.sample())
	}
	return all
}

func (l *library) close() {
	if l.open {
		_ = l.nvml.Shutdown() // an error would have no effect
	}
}

func (d *device) sample() Sample {
	s := Sample{UUID: d.uuid, Name: d.name}
	memory, ret := d.handle.GetMemoryInfo()
	s.MemoryUsed, s.MemoryTotal = convert(memory.Used, 1, ret), convert(memory.Total, 1, ret)
	rates, ret := d.handle.GetUtilizationRates()
	s.Utilization = convert(rates.Gpu, 100, ret)
	celsius, ret := d.handle.GetTemperature(nvml.TEMPERATURE_GPU)
	s.Temperature = convert(celsius, 1, ret)
	milliwatts, ret := d.handle.GetPowerUsage()
	s.Power = convert(milliwatts, 1e3, ret)
	millijoules, ret := d.handle.GetTotalEnergyConsumption()
	s.Energy = convert(millijoules, 1e3, ret)
	return s
}

// convert returns v in another unit, or nil if NVML returned an error.
func convert[N uint32 | uint64](v N, perUnit float64, ret nvml.Return) *float64 {
	if ret != nvml.SUCCESS {
		return nil
	}
	return new(float64(v) / perUnit)
}
