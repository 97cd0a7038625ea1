// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

const (
	kernels  = "service_name, ringkernel_kernel_id"
	byKernel = "{{service_name}} {{ringkernel_kernel_id}}"
)

var messageTime = histogram{name: "ringkernel_message_duration_seconds"}

// ringKernels returns the dashboard of ring-kernel runtimes.
func ringKernels() Dashboard {
	perKernel := func(title, description, metric string) Panel {
		return lines(title, description, Messages, `sum by (`+kernels+`) (rate(`+metric+`{@}[@]))`, byKernel)
	}
	const metric = "ringkernel_uptime_seconds"
	return Dashboard{
		UID: "nixl-ringkernels", Title: "NIXL / Ring kernels",
		Description: "Persistent kernels that receive messages from one queue and send messages to another.",
		Variables: []Variable{
			service(metric),
			{Name: "kernel", Label: "Kernel", Key: "ringkernel_kernel_id", Metric: metric, Within: `service_name=~"$service"`},
		},
		Rows: []Row{
			{Title: "Messages", Panels: []Panel{
				perKernel("Received", "Messages that each input queue received.", "ringkernel_messages_received_total"),
				perKernel("Processed", "Messages that each kernel processed.", "ringkernel_messages_processed_total"),
				perKernel("Sent", "Messages that each kernel sent to its output queue.", "ringkernel_messages_sent_total"),
			}},
			{Title: "Latency", Panels: []Panel{
				lines("Processing time, 99th percentile", "Time that each kernel took to process a message.", Microseconds,
					messageTime.quantile("0.99", kernels), byKernel).wide(12),
				quantiles("Processing time, all kernels", "Time that a kernel took to process a message.", Microseconds, messageTime).wide(12),
			}},
			{Title: "Queues", Panels: []Panel{
				lines("Queue fill", "Messages in each queue, as a share of its capacity.", Share,
					`sum by (`+kernels+`, ringkernel_queue_name) (ringkernel_queue_size{@}) / `+
						`sum by (`+kernels+`, ringkernel_queue_name) (ringkernel_queue_capacity{@})`, byKernel+" {{ringkernel_queue_name}}").upTo(1),
				lines("Dropped", "Messages that were dropped, by the queue that was full.", Messages,
					`sum by (`+kernels+`, ringkernel_queue_name) (rate(ringkernel_messages_dropped_total{@}[@]))`, byKernel+" {{ringkernel_queue_name}}"),
				lines("Errors", "By kernel and type.", PerSecond,
					`sum by (`+kernels+`, error_type) (rate(ringkernel_errors_total{@}[@]))`, byKernel+" "+byError).ifEmpty(noErrors),
			}},
			{Title: "State", Panels: []Panel{
				lines("Kernels by state", "Number of kernels in each state.", Count,
					`sum by (ringkernel_kernel_state) (ringkernel_kernel_status{@}) > 0`, "{{ringkernel_kernel_state}}").stacked(),
				lines("Time since the newest message", "Time since each kernel last received a message.", Seconds,
					`time() - max by (`+kernels+`) (ringkernel_last_message_time_seconds{@})`, byKernel),
				lines("Uptime", "Time since each kernel was registered or last reset, until it terminated.", Seconds,
					`max by (`+kernels+`) (ringkernel_uptime_seconds{@})`, byKernel),
			}},
		},
	}
}
