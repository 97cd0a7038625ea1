// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package gpu

// Source provides the values of GPUs.
type Source interface {
	// Samples returns the current values of all GPUs, always in the same order. The
	// Monitor doesn't call it concurrently, and not after Close.
	Samples() []Sample
	// Close releases the source.
	Close() error
}

// Sample holds the current values of one GPU. Values that the source doesn't provide are
// unknown.
type Sample struct {
	UUID string // identifies the GPU
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
