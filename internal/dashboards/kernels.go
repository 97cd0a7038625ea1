package dashboards

const (
	byKernel = "{{service_name}} {{ringkernel_kernel_id}}"
	kernels  = "service_name, ringkernel_kernel_id"
)

// service chooses programs, of which each may run on several hosts.
func service(metric string) Variable {
	return Variable{Name: "service", Label: "Service", Key: "service_name", Metric: metric}
}

// ringKernels shows ring-kernel runtimes.
func ringKernels() Dashboard {
	perKernel := func(title, description, metric string) Panel {
		return lines(title, description, Messages, `sum by (`+kernels+`) (rate(`+metric+`{@}[@]))`, byKernel)
	}
	const metric = "ringkernel_uptime_seconds"
	return Dashboard{
		UID: "nixl-ringkernels", Title: "NIXL / Ring kernels",
		Description: "Persistent kernels that take messages from one queue and put them on another.",
		Variables: []Variable{
			service(metric),
			{Name: "kernel", Label: "Kernel", Key: "ringkernel_kernel_id", Metric: metric, Within: `service_name=~"$service"`},
		},
		Rows: []Row{
			{"Messages", []Panel{
				perKernel("Received", "Messages that each input queue received.", "ringkernel_messages_received_total"),
				perKernel("Processed", "Messages that each kernel processed.", "ringkernel_messages_processed_total"),
				perKernel("Sent", "Messages that each kernel put on its output queue.", "ringkernel_messages_sent_total"),
			}},
			{"Latency", []Panel{
				lines("Time of a message, 99th percentile", "That each kernel took to process it.", Microseconds,
					`histogram_quantile(0.99, sum by (le, `+kernels+`) (rate(ringkernel_message_duration_seconds_bucket{@}[@])))`, byKernel).wide(12),
				quantiles("Time of a message, all kernels", "That a kernel took to process it.", Microseconds, "ringkernel_message_duration_seconds").wide(12),
			}},
			{"Queues", []Panel{
				lines("Queue fill", "Messages in each queue by what it holds at most.", Share,
					`sum by (`+kernels+`, ringkernel_queue_name) (ringkernel_queue_size{@}) / `+
						`sum by (`+kernels+`, ringkernel_queue_name) (ringkernel_queue_capacity{@})`, byKernel+" {{ringkernel_queue_name}}"),
				lines("Dropped", "Messages that were dropped, by the queue that was full.", Messages,
					`sum by (`+kernels+`, ringkernel_queue_name) (rate(ringkernel_messages_dropped_total{@}[@]))`, byKernel+" {{ringkernel_queue_name}}"),
				lines("Errors", "By kernel and type.", PerSecond,
					`sum by (`+kernels+`, error_type) (rate(ringkernel_errors_total{@}[@]))`, byKernel+" "+byError),
			}},
			{"State", []Panel{
				lines("Kernels by state", "How many are in it.", Count,
					`sum by (ringkernel_kernel_state) (ringkernel_kernel_status{@}) > 0`, "{{ringkernel_kernel_state}}").stacked(),
				lines("Time since the newest message", "Received by each kernel.", Seconds,
					`time() - max by (`+kernels+`) (ringkernel_last_message_time_seconds{@})`, byKernel),
				lines("Uptime", "Since each kernel was registered or last reset, until it terminated.", Seconds,
					`max by (`+kernels+`) (ringkernel_uptime_seconds{@})`, byKernel),
			}},
		},
	}
}

func (p Panel) stacked() Panel {
	p.Stacked = true
	return p
}
