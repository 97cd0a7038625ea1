package session

import (
	"strconv"
	"strings"
)

// worker is the worker_instance of an operation on a device: the stage of the
// pipeline that did it. The first case that matches decides, in the order in
// which the Python program asks, since names of operations overlap:
// expert_selection is the router's though it contains expert, and
// attention_layernorm is attention's.
func worker(operation, device string, layer int) string {
	atLayer := func(stage string) string {
		return stage + "_layer_" + strconv.Itoa(layer)
	}
	switch {
	case operation == "embedding":
		return device + "_embedding"
	case strings.Contains(operation, "router"), strings.Contains(operation, "expert_selection"):
		return "cpu_router" // wherever it ran
	case strings.Contains(operation, "expert_ffn"):
		if device == IGPU {
			return atLayer("igpu_expert_ffn")
		}
		return atLayer("cpu_expert_ffn") // any other device is the CPU's
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
