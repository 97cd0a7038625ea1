// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv

// Metrics of a split-inference session: work packets of a model's layers, each
// run on one of several devices.
var (
	PacketDuration = Metric{
		Name: "splitinfer.packet.duration", Kind: Histogram, Number: Float64, Unit: "s", Bounds: packetDurations(),
		Description: "Time that each work packet took.",
		Attributes:  []string{DeviceName, Operation},
		Conditional: []string{ErrorType, MetricOverflow},
	}
	Packets = Metric{
		Name: "splitinfer.packets", Kind: Counter, Number: Int64, Unit: "{packet}",
		Description: "Work packets that ended, including failed ones.",
		Attributes:  []string{DeviceName, Worker},
		Conditional: []string{ErrorType, MetricOverflow},
	}
	PacketMemory = Metric{
		Name: "splitinfer.packet.memory", Kind: Histogram, Number: Float64, Unit: "By", Bounds: sizes,
		Description: "Memory that each work packet used.",
		Note:        "Packets that don't report their memory aren't included.",
		Attributes:  []string{DeviceName},
		Conditional: []string{MetricOverflow},
	}
	PacketFallbacks = Metric{
		Name: "splitinfer.packet.fallbacks", Kind: Counter, Number: Int64, Unit: "{packet}",
		Description: "Work packets that ran on another device than the requested one.",
		Attributes:  []string{DeviceName, DeviceRequestedName},
		Conditional: []string{MetricOverflow},
	}
	ExpertSelections = Metric{
		Name: "splitinfer.expert.selections", Kind: Counter, Number: Int64, Unit: "{selection}",
		Description: "Work packets that selected or ran an expert, including failed ones.",
		Note:        "Includes packets that name an expert, and packets whose operation contains \"expert\".",
		Attributes:  []string{Operation, Layer},
		Conditional: []string{Expert, MetricOverflow},
	}
	Tokens = Metric{
		Name: "splitinfer.tokens", Kind: Counter, Number: Int64, Unit: "{token}",
		Description: "Tokens read as prompt, and tokens generated.",
		Attributes:  []string{TokenType},
	}
)

// SplitInference returns the metrics of split-inference sessions, in the order of
// bridge/README.md.
func SplitInference() []Metric {
	return []Metric{
		PacketDuration, Packets, PacketMemory, PacketFallbacks, ExpertSelections, Tokens,
	}
}
