// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Figures are what NVML says of one GPU. What it doesn't say isn't known.
type Figures struct {
	UUID string
	Name string // of the model, such as NVIDIA H200

	MemoryUsed  Figure // bytes
	MemoryTotal Figure // bytes
	Utilization Figure // 0 to 1
	Temperature Figure // °C
	Power       Figure // W
	Energy      Figure // J, since the driver was loaded
}

// Figure is a number that may not be known.
type Figure struct {
	value float64
	known bool
}

// Known is a figure that is known.
func Known(value float64) Figure { return Figure{value, true} }

// Get is the number, and whether it is known.
func (f Figure) Get() (value float64, ok bool) { return f.value, f.known }

// figure is v in another unit, if NVML said it.
func figure[N uint32 | uint64](v N, perUnit float64, ret nvml.Return) Figure {
	if ret != nvml.SUCCESS {
		return Figure{}
	}
	return Known(float64(v) / perUnit)
}

// device is one GPU, and the attributes of its points, made once.
type device struct {
	handle     nvml.Device
	uuid, name string
	point      metric.ObserveOption
	general    metric.ObserveOption // with hw.gpu.task
}

// newDevice is nil for a GPU that doesn't tell its UUID: its points could be
// another's.
func newDevice(handle nvml.Device) *device {
	uuid, ret := handle.GetUUID()
	if ret != nvml.SUCCESS {
		return nil
	}
	name, _ := handle.GetName() // empty if it isn't told
	d := &device{handle: handle, uuid: valid(uuid), name: valid(name)}
	set := []attribute.KeyValue{
		attribute.String("hw.id", d.uuid), attribute.String("hw.name", d.name),
		attribute.String("hw.vendor", "NVIDIA"), attribute.String("hw.type", "gpu"),
	}
	d.point = metric.WithAttributeSet(attribute.NewSet(set...))
	d.general = metric.WithAttributeSet(attribute.NewSet(append(set, attribute.String("hw.gpu.task", "general"))...))
	return d
}

// valid keeps an exporter from refusing a whole batch.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func (d *device) figures() Figures {
	f := Figures{UUID: d.uuid, Name: d.name}
	memory, ret := d.handle.GetMemoryInfo()
	f.MemoryUsed, f.MemoryTotal = figure(memory.Used, 1, ret), figure(memory.Total, 1, ret)
	rates, ret := d.handle.GetUtilizationRates()
	f.Utilization = figure(rates.Gpu, 100, ret)
	celsius, ret := d.handle.GetTemperature(nvml.TEMPERATURE_GPU)
	f.Temperature = figure(celsius, 1, ret)
	milliwatts, ret := d.handle.GetPowerUsage()
	f.Power = figure(milliwatts, 1e3, ret)
	millijoules, ret := d.handle.GetTotalEnergyConsumption()
	f.Energy = figure(millijoules, 1e3, ret)
	return f
}
