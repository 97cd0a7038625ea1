// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strconv"
	"strings"
)

// worker derives worker_instance, the stage of the pipeline, from the operation and
// the device. The order of the cases is that of the Python program. It matters
// because names of operations overlap: expert_selection belongs to the router
// although it contains "expert", and attention_layernorm belongs to attention.
func worker(operation, device string, layer int) string {
	atLayer := func(stage string) string {
		return stage + "_layer_" + strconv.Itoa(layer)
	}
	switch {
	case operation == "embedding":
		return device + "_embedding"
	case strings.Contains(operation, "router"), strings.Contains(operation, "expert_selection"):
		return "cpu_router" // on any device
	case strings.Contains(operation, "expert_ffn"):
		if device == IGPU {
			return atLayer("igpu_expert_ffn")
		}
		return atLayer("cpu_expert_ffn") // on any other device, too
	case strings.Contains(operation, "attention"):
		return atLayer(device + "_attention")
	case strings.Contains(operation, "norm"):
		return atLayer(device + "_layernorm")
	case strings.Contains(operation, "lm_head"):
		return device + "_lm_head"
	default:
		return device + "_" + operation
	}
}

// isExpert reports whether an operation selects or runs an expert.
func isExpert(operation string) bool {
	return strings.Contains(operation, "expert")
}
