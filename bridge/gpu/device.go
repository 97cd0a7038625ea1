// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Sample holds the current values of one GPU. Values that NVML doesn't provide are
// unknown.
type Sample struct {
	UUID string
	Name string // of the model, such as NVIDIA H200

	MemoryUsed  Value // bytes
	MemoryTotal Value // bytes
	Utilization Value // 0 to 1
	Temperature Value // °C
	Power       Value // W
	Energy      Value // J, since the driver was loaded
}

// Value is a number that may be unknown. The zero Value is unknown.
type Value struct {
	value float64
	known bool
}

// NewValue returns a known Value.
func NewValue(v float64) Value { return Value{v, true} }

// Get returns the number, and whether it is known.
func (v Value) Get() (value float64, ok bool) { return v.value, v.known }

// convert returns v in another unit, or an unknown Value if NVML returned an error.
func convert[N uint32 | uint64](v N, perUnit float64, ret nvml.Return) Value {
	if ret != nvml.SUCCESS {
		return Value{}
	}
	return NewValue(float64(v) / perUnit)
}

// device is one GPU and the attributes of its data points.
type device struct {
	handle     nvml.Device
	uuid, name string
	point      metric.ObserveOption
	general    metric.ObserveOption // with hw.gpu.task
}

// newDevice returns nil for a GPU without a UUID, because its data points couldn't be
// distinguished from those of other GPUs.
func newDevice(handle nvml.Device) *device {
	uuid, ret := handle.GetUUID()
	if ret != nvml.SUCCESS {
		return nil
	}
	name, _ := handle.GetName() // empty if unknown
	d := &device{handle: handle, uuid: valid(uuid), name: valid(name)}
	set := []attribute.KeyValue{
		attribute.String("hw.id", d.uuid), attribute.String("hw.name", d.name),
		attribute.String("hw.vendor", "NVIDIA"), attribute.String("hw.type", "gpu"),
	}
	d.point = metric.WithAttributeSet(attribute.NewSet(set...))
	d.general = metric.WithAttributeSet(attribute.NewSet(append(set, attribute.String("hw.gpu.task", "general"))...))
	return d
}

// valid makes s valid UTF-8. Exporters reject the whole batch if one string isn't.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

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
