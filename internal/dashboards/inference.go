// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

var (
	packetTime   = histogram{name: "splitinfer_packet_duration_seconds"}
	packetMemory = histogram{name: "splitinfer_packet_memory_bytes", equal: true}
)

// splitInference returns the dashboard of split-inference sessions.
func splitInference() Dashboard {
	const (
		device, operation = "splitinfer_device_name", "splitinfer_operation"
		byDevice          = "{{" + device + "}}"
		byOperation       = "{{" + operation + "}}"
	)
	return Dashboard{
		UID: "nixl-splitinfer", Title: "NIXL / Split inference",
		Description: "Inference whose layers run as work packets on several devices.",
		Variables:   []Variable{service("splitinfer_tokens_total")},
		Rows: []Row{
			{Title: "Tokens and packets", Panels: []Panel{
				lines("Tokens", "Prompt tokens and generated tokens.", PerSecond,
					`sum by (splitinfer_token_type) (rate(splitinfer_tokens_total{@}[@]))`, "{{splitinfer_token_type}}").wide(12),
				lines("Packets", "Completed work packets by device, including failed ones.", PerSecond,
					`sum by (splitinfer_device_name) (rate(splitinfer_packets_total{@}[@]))`, byDevice).wide(12),
				lines("Packets by worker", "Completed work packets, including failed ones.", PerSecond,
					`sum by (splitinfer_worker) (rate(splitinfer_packets_total{@}[@]))`, "{{splitinfer_worker}}").wide(24).many(),
			}},
			{Title: "Time", Panels: []Panel{
				lines("Packet time, mean", "By operation.", Microseconds, packetTime.mean(operation), byOperation),
				lines("Packet time, 99th percentile", "By operation.", Microseconds, packetTime.quantile("0.99", operation), byOperation),
				lines("Packet time, median", "By device.", Microseconds, packetTime.quantile("0.5", device), byDevice),
			}},
			{Title: "Failures, experts and memory", Panels: []Panel{
				lines("Failed packets", "By device and type of error.", PerSecond,
					`sum by (splitinfer_device_name, error_type) (rate(splitinfer_packets_total{@,error_type!=""}[@]))`, byDevice+" "+byError).ifEmpty("No failures"),
				lines("Fallbacks", "Work packets that ran on a device other than the requested one.", PerSecond,
					`sum by (splitinfer_device_requested_name, splitinfer_device_name) (rate(splitinfer_packet_fallbacks_total{@}[@]))`,
					"{{splitinfer_device_requested_name}} → "+byDevice).ifEmpty("No fallbacks"),
				lines("Packet memory, median", "By device.", Bytes, packetMemory.quantile("0.5", device), byDevice),
				lines("Expert selections by expert", "Work packets with a known expert, to compare the load of the experts.", PerSecond,
					`sum by (splitinfer_expert) (rate(splitinfer_expert_selections_total{@,splitinfer_expert!=""}[@]))`,
					"expert {{splitinfer_expert}}").wide(12).many(),
				lines("Expert selections by layer", "All operations.", PerSecond,
					`sum by (splitinfer_layer) (rate(splitinfer_expert_selections_total{@}[@]))`, "layer {{splitinfer_layer}}").wide(12).many(),
			}},
		},
	}
}
