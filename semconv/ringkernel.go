// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv

// Metrics of a ring kernel: a persistent kernel that takes messages from an input
// queue and puts messages on an output queue.
var (
	KernelMessagesReceived = Metric{
		Name: "ringkernel.messages.received", Kind: Counter, Number: Int64, Unit: "{message}",
		Description: "Messages that the kernel's input queue received.",
		Attributes:  []string{KernelID},
	}
	KernelMessagesSent = Metric{
		Name: "ringkernel.messages.sent", Kind: Counter, Number: Int64, Unit: "{message}",
		Description: "Messages that the kernel put on its output queue.",
		Attributes:  []string{KernelID},
	}
	KernelMessagesProcessed = Metric{
		Name: "ringkernel.messages.processed", Kind: Counter, Number: Int64, Unit: "{message}",
		Description: "Messages that the kernel processed.",
		Attributes:  []string{KernelID},
	}
	KernelMessagesDropped = Metric{
		Name: "ringkernel.messages.dropped", Kind: Counter, Number: Int64, Unit: "{message}",
		Description: "Messages that were dropped instead of being added to a queue or taken from it.",
		Attributes:  []string{KernelID, QueueName},
	}
	KernelMessageDuration = Metric{
		Name: "ringkernel.message.duration", Kind: Histogram, Number: Float64, Unit: "s", Bounds: kernelDurations,
		Description: "Time that the kernel took to process each message.",
		Attributes:  []string{KernelID},
	}
	KernelErrors = Metric{
		Name: "ringkernel.errors", Kind: Counter, Number: Int64, Unit: "{error}",
		Description: "Errors of the kernel.",
		Attributes:  []string{KernelID, ErrorType},
		Conditional: []string{MetricOverflow},
	}
	KernelQueueSize = Metric{
		Name: "ringkernel.queue.size", Kind: UpDownCounter, Number: Int64, Unit: "{message}",
		Description: "Messages that are in the queue.",
		Attributes:  []string{KernelID, QueueName},
	}
	KernelQueueCapacity = Metric{
		Name: "ringkernel.queue.capacity", Kind: UpDownCounter, Number: Int64, Unit: "{message}",
		Description: "Messages that the queue can hold.",
		Attributes:  []string{KernelID, QueueName},
	}
	KernelStatus = Metric{
		Name: "ringkernel.kernel.status", Kind: UpDownCounter, Number: Int64, Unit: "1",
		Description: "1 for the current state of the kernel, 0 for the other states.",
		Attributes:  []string{KernelID, KernelState},
	}
	KernelUptime = Metric{
		Name: "ringkernel.uptime", Kind: Gauge, Number: Float64, Unit: "s",
		Description: "Time since the kernel was registered or last reset.",
		Note:        "It stops when the kernel terminates.",
		Attributes:  []string{KernelID},
	}
	KernelLastMessageTime = Metric{
		Name: "ringkernel.last_message.time", Kind: Gauge, Number: Float64, Unit: "s",
		Description: "Time when the kernel received its newest message, as a Unix timestamp.",
		Note:        "Absent until the first message.",
		Attributes:  []string{KernelID},
	}
	KernelThroughput = Metric{
		Name: "ringkernel.throughput", Kind: Gauge, Number: Float64, Unit: "{message}/s",
		Description: "Messages that the kernel processed per second of its uptime.",
		Attributes:  []string{KernelID},
	}
	KernelErrorRate = Metric{
		Name: "ringkernel.error_rate", Kind: Gauge, Number: Float64, Unit: "1",
		Description: "Errors of the kernel per processed message, since it was registered or last reset.",
		Attributes:  []string{KernelID},
	}
)

// RingKernel returns the metrics of ring kernels, in the order of bridge/README.md.
func RingKernel() []Metric {
	return []Metric{
		KernelMessagesReceived, KernelMessagesSent, KernelMessagesProcessed, KernelMessagesDropped,
		KernelMessageDuration, KernelErrors, KernelQueueSize, KernelQueueCapacity, KernelStatus,
		KernelUptime, KernelLastMessageTime, KernelThroughput, KernelErrorRate,
	}
}
