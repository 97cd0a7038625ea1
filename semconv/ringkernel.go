// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv

// What a ring kernel does: a persistent kernel that takes messages from an
// input queue and puts messages on an output queue.
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
		Description: "Messages that were dropped, by the queue that they didn't get into or out of.",
		Attributes:  []string{KernelID, QueueName},
	}
	KernelMessageDuration = Metric{
		Name: "ringkernel.message.duration", Kind: Histogram, Number: Float64, Unit: "s",
		Description: "Time that the kernel took to process each message.",
		Attributes:  []string{KernelID},
	}
	KernelErrors = Metric{
		Name: "ringkernel.errors", Kind: Counter, Number: Int64, Unit: "{error}",
		Description: "Errors of the kernel, by their type.",
		Attributes:  []string{KernelID, ErrorType},
		Conditional: []string{MetricOverflow},
	}
	KernelQueueSize = Metric{
		Name: "ringkernel.queue.size", Kind: UpDownCounter, Number: Int64, Unit: "{message}",
		Description: "Messages in the queue at present.",
		Attributes:  []string{KernelID, QueueName},
	}
	KernelQueueCapacity = Metric{
		Name: "ringkernel.queue.capacity", Kind: UpDownCounter, Number: Int64, Unit: "{message}",
		Description: "Messages that the queue can hold.",
		Attributes:  []string{KernelID, QueueName},
	}
	KernelStatus = Metric{
		Name: "ringkernel.kernel.status", Kind: UpDownCounter, Number: Int64, Unit: "1",
		Description: "1 for the state that the kernel is in, 0 for the others.",
		Attributes:  []string{KernelID, KernelState},
	}
	KernelUptime = Metric{
		Name: "ringkernel.uptime", Kind: Gauge, Number: Float64, Unit: "s",
		Description: "Time from when the kernel was registered or last reset until now, or until it terminated.",
		Attributes:  []string{KernelID},
	}
	KernelLastMessageTime = Metric{
		Name: "ringkernel.last_message.time", Kind: Gauge, Number: Float64, Unit: "s",
		Description: "When the kernel's newest message was received, in seconds since the epoch.",
		Attributes:  []string{KernelID},
	}
	KernelThroughput = Metric{
		Name: "ringkernel.throughput", Kind: Gauge, Number: Float64, Unit: "{message}/s",
		Description: "Messages processed per second of uptime.",
		Attributes:  []string{KernelID},
		Derived:     true,
	}
	KernelErrorRate = Metric{
		Name: "ringkernel.error_rate", Kind: Gauge, Number: Float64, Unit: "1",
		Description: "Errors per processed message.",
		Attributes:  []string{KernelID},
		Derived:     true,
	}
)

// RingKernel is the catalog of ring kernels, in the order of its documentation.
func RingKernel() []Metric {
	return []Metric{
		KernelMessagesReceived, KernelMessagesSent, KernelMessagesProcessed, KernelMessagesDropped,
		KernelMessageDuration, KernelErrors, KernelQueueSize, KernelQueueCapacity, KernelStatus,
		KernelUptime, KernelLastMessageTime, KernelThroughput, KernelErrorRate,
	}
}
