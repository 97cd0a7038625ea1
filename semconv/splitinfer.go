// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv

// Metrics of a split-inference session: work packets of a model's layers, each
// run on one of several devices.
var (
	PacketDuration = Metric{
		Name: "splitinfer.packet.duration", Kind: Histogram, Number: Float64, Unit: "s",
		Description: "Time that each work packet took.",
		Attributes:  []string{Device, Operation},
		Conditional: []string{ErrorType, Layer},
	}
	Packets = Metric{
		Name: "splitinfer.packets", Kind: Counter, Number: Int64, Unit: "{packet}",
		Description: "Work packets that ended, failed ones included.",
		Attributes:  []string{Device, Worker},
		Conditional: []string{ErrorType},
	}
	PacketMemory = Metric{
		Name: "splitinfer.packet.memory", Kind: Histogram, Number: Float64, Unit: "By",
		Description: "Memory that each work packet used.",
		Attributes:  []string{Device},
	}
	PacketFallbacks = Metric{
		Name: "splitinfer.packet.fallbacks", Kind: Counter, Number: Int64, Unit: "{packet}",
		Description: "Work packets that ran on another device than the one asked for.",
		Attributes:  []string{Device, DeviceUsed},
	}
	ExpertSelections = Metric{
		Name: "splitinfer.expert.selections", Kind: Counter, Number: Int64, Unit: "{selection}",
		Description: "Work packets of experts, by operation, layer and expert; failed ones included.",
		Attributes:  []string{Operation, Layer},
		Conditional: []string{Expert},
	}
	Tokens = Metric{
		Name: "splitinfer.tokens", Kind: Counter, Number: Int64, Unit: "{token}",
		Description: "Tokens read as prompt and tokens generated.",
		Attributes:  []string{TokenType},
	}
)

// SplitInference is the catalog of split-inference sessions, in the order of
// its documentation.
func SplitInference() []Metric {
	return []Metric{
		PacketDuration, Packets, PacketMemory, PacketFallbacks, ExpertSelections, Tokens,
	}
}
