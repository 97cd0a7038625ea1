// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

const (
	kernels  = "service_name, ringkernel_kernel_id"
	byKernel = "{{service_name}} {{ringkernel_kernel_id}}"
)

var (
	messageTime = histogram{name: "ringkernel_message_duration_seconds"}
	packetTime  = histogram{name: "splitinfer_packet_duration_seconds"}
)

// programs returns the dashboard of programs that report through the bridge: ring-kernel runtimes, and
// split-inference sessions.
func programs() Dashboard {
	const byDevice = "{{splitinfer_device_name}}"
	messages := lines("Messages", "Messages that each kernel received, processed and sent.", Messages,
		`sum by (`+kernels+`) (rate(ringkernel_messages_received_total{@}[@]))`, byKernel+" received").many()
	for _, what := range []string{"processed", "sent"} {
		messages.Queries = append(messages.Queries, Query{
			Expr: `sum by (` + kernels + `) (rate(ringkernel_messages_` + what + `_total{@}[@]))`, Legend: byKernel + " " + what,
		})
	}
	return Dashboard{
		UID: "nixl-programs", Title: "NIXL / Ring kernels and split inference",
		Description: "Persistent kernels that exchange messages, and inference whose layers run as work packets on several devices.",
		Variables:   []Variable{{Name: "service", Label: "Service", Key: "service_name", Metric: `{__name__=~"ringkernel_uptime_seconds|splitinfer_tokens_total"}`}},
		Rows: []Row{
			{Title: "Ring kernels", Panels: []Panel{
				messages,
				lines("Processing time, 99th percentile", "Time that each kernel took to process a message.", Seconds, messageTime.quantile("0.99", kernels), byKernel),
				lines("Queue fill", "Messages in each queue, as a share of its capacity.", Share,
					`sum by (`+kernels+`, ringkernel_queue_name) (ringkernel_queue_size{@}) / `+
						`sum by (`+kernels+`, ringkernel_queue_name) (ringkernel_queue_capacity{@})`, byKernel+" {{ringkernel_queue_name}}").upTo(1),
				lines("Dropped", "Messages that were dropped, by the queue that was full.", Messages,
					`sum by (`+kernels+`, ringkernel_queue_name) (rate(ringkernel_messages_dropped_total{@}[@]))`, byKernel+" {{ringkernel_queue_name}}"),
				lines("Errors", "By kernel and type.", PerSecond,
					`sum by (`+kernels+`, error_type) (rate(ringkernel_errors_total{@}[@]))`, byKernel+" "+byError).ifEmpty(noErrors),
				{
					Title: "Kernels by state", Description: "Number of kernels in each state.", Unit: Count, Stacked: true,
					Queries: []Query{{Expr: `sum by (ringkernel_kernel_state) (ringkernel_kernel_status{@}) > 0`, Legend: "{{ringkernel_kernel_state}}"}},
				},
				lines("Time since the newest message", "Time since each kernel last received a message.", Seconds,
					`time() - max by (`+kernels+`) (ringkernel_last_message_time_seconds{@})`, byKernel),
			}},
			{Title: "Split inference", Panels: []Panel{
				lines("Tokens", "Prompt tokens and generated tokens.", PerSecond,
					`sum by (splitinfer_token_type) (rate(splitinfer_tokens_total{@}[@]))`, "{{splitinfer_token_type}}"),
				lines("Packets", "Completed work packets by device, including failed ones.", PerSecond,
					`sum by (splitinfer_device_name) (rate(splitinfer_packets_total{@}[@]))`, byDevice),
				lines("Packet time, 99th percentile", "By operation.", Seconds, packetTime.quantile("0.99", "splitinfer_operation"), "{{splitinfer_operation}}"),
				lines("Failed packets", "By device and type of error.", PerSecond,
					`sum by (splitinfer_device_name, error_type) (rate(splitinfer_packets_total{@,error_type!=""}[@]))`, byDevice+" "+byError).ifEmpty("No failures"),
				lines("Fallbacks", "Work packets that ran on a device other than the requested one.", PerSecond,
					`sum by (splitinfer_device_requested_name, splitinfer_device_name) (rate(splitinfer_packet_fallbacks_total{@}[@]))`,
					"{{splitinfer_device_requested_name}} → "+byDevice).ifEmpty("No fallbacks"),
				lines("Expert selections", "Work packets with a known expert, to compare the load of the experts.", PerSecond,
					`sum by (splitinfer_expert) (rate(splitinfer_expert_selections_total{@,splitinfer_expert!=""}[@]))`,
					"expert {{splitinfer_expert}}").many(),
			}},
		},
	}
}
