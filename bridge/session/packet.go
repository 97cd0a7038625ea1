// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strings"
	"time"
)

// The devices that a [Summary] reports separately. A packet can name any device.
const (
	CPU  = "cpu"
	IGPU = "igpu"
)

// auto is the device that a pipeline requests to let its scheduler choose one. A
// packet that requested it is never a fallback.
const auto = "auto"

// Packet is a completed work packet. Only Operation and Device are required.
type Packet struct {
	// ID is the pipeline's number for the packet.
	ID int64
	// Layer is the index of the model's layer, or -1 for work before the first
	// layer.
	Layer int
	// Operation is the kind of work, such as attention_qkv_proj.
	Operation string
	// Device is the device that ran the packet.
	Device string
	// DeviceTarget is the device that the pipeline requested. The packet counts as
	// a fallback unless DeviceTarget is empty, "auto", or equal to Device.
	DeviceTarget string
	// Worker is the worker instance that ran the packet. If empty, it is derived
	// from Operation and Device.
	Worker string
	// Expert is the ID of the expert that the packet ran or selected, such as "17".
	// It is empty if there is none or if it is unknown.
	Expert string
	// Duration is the duration of the packet. Negative values count as 0, and so do
	// values of more than a day, which come from a start time that was never set.
	Duration time.Duration
	// Memory is the memory that the packet used, in bytes. If it is 0, it is
	// unknown: the CSV has 0.00, and the memory histogram doesn't count the packet.
	Memory int64
	// End is when the packet ended. The zero time means now.
	End time.Time
	// Err is the error of a failed packet, or nil if it succeeded. Its error.type is the
	// result of its method ErrorType() string, or of an error that it wraps, or else its
	// Go type.
	Err error
}

// worker derives worker_instance, the stage of the pipeline, from the operation and
// the device. The order of the cases is that of the Python program. It matters
// because names of operations overlap: expert_selection belongs to the router
// although it contains "expert", and attention_layernorm belongs to attention.
func worker(operation, device string, layer int) string {
	switch {
	case operation == "embedding":
		return device + "_embedding"
	case strings.Contains(operation, "router"), strings.Contains(operation, "expert_selection"):
		return "cpu_router" // on any device
	case strings.Contains(operation, "expert_ffn"):
		if device == IGPU {
			return atLayer("igpu_expert_ffn", layer)
		}
		return atLayer("cpu_expert_ffn", layer) // on any other device, too
	case strings.Contains(operation, "attention"):
		return atLayer(device+"_attention", layer)
	case strings.Contains(operation, "norm"):
		return atLayer(device+"_layernorm", layer)
	case strings.Contains(operation, "lm_head"):
		return device + "_lm_head"
	default:
		return device + "_" + operation
	}
}

// selection names what a packet counts as in the distribution of experts, or returns "" if it
// neither selects nor runs one.
func selection(operation, expert string, layer int) string {
	switch {
	case expert != "":
		return "expert_" + expert
	case strings.Contains(operation, "expert"):
		return atLayer(operation, layer) // as in the Python program, which doesn't know the expert
	default:
		return ""
	}
}
