// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv

// AgentUp reports whether an agent runs.
var AgentUp = Metric{
	Name: "nixl.agent.up", Kind: UpDownCounter, Number: Int64, Unit: "1",
	Description: "Whether a process other than the reader has the agent's ring or store open: 1 if so, 0 if not.",
	Note: "Absent without permission (the owner of the file, or `CAP_LEASE`), or on overlayfs without `discovery::processes`. " +
		"A Go agent that reports through a MeterProvider is 1 until it is closed.",
}

// Metrics of the events of a NIXL agent.
var (
	TransferIO = Metric{
		Name: "nixl.transfer.io", Kind: Counter, Number: Int64, Unit: "By",
		Description: "Bytes moved by completed transfers that the agent initiated.",
		Note:        "The other side of a transfer writes no events, so adding up all agents counts each transfer once.",
		Attributes:  []string{Direction},
	}
	TransferRequests = Metric{
		Name: "nixl.transfer.requests", Kind: Counter, Number: Int64, Unit: "{request}",
		Description: "Completed transfers that the agent initiated.",
		Attributes:  []string{Direction},
	}
	TransferSize = Metric{
		Name: "nixl.transfer.size", Kind: Histogram, Number: Float64, Unit: "By", Bounds: sizes,
		Description: "Size of each completed transfer.",
		Note:        "Absent for stores.",
		Attributes:  []string{Direction},
	}
	TransferDuration = Metric{
		Name: "nixl.transfer.duration", Kind: Histogram, Number: Float64, Unit: "s", Bounds: durations,
		Description: "Time from the start of each transfer until the application saw it complete.",
		Note:        "Includes the post duration. NIXL measures whole microseconds; the value can be 0.",
	}
	TransferPostDuration = Metric{
		Name: "nixl.transfer.post.duration", Kind: Histogram, Number: Float64, Unit: "s", Bounds: durations,
		Description: "Time from the start of each transfer until it was posted to the backend.",
		Note:        "NIXL measures whole microseconds; the value can be 0.",
	}
	TransferThroughput = Metric{
		Name: "nixl.transfer.throughput", Kind: Histogram, Number: Float64, Unit: "By/s", Bounds: throughputs,
		Description: "Size of each completed transfer divided by its duration.",
		Note:        "Only transfers whose four events were read in order. 0 µs counts as 1 µs. Absent for stores.",
		Attributes:  []string{Direction},
	}
	TransferLastSize = Metric{
		Name: "nixl.transfer.last.size", Kind: Gauge, Number: Int64, Unit: "By",
		Description: "Size of the newest completed transfer.",
		Attributes:  []string{Direction},
		OptIn:       true,
	}
	TransferLastDuration = Metric{
		Name: "nixl.transfer.last.duration", Kind: Gauge, Number: Float64, Unit: "s",
		Description: "Time from the start of the newest transfer until the application saw it complete.",
		OptIn:       true,
	}
	TransferLastPostDuration = Metric{
		Name: "nixl.transfer.last.post_duration", Kind: Gauge, Number: Float64, Unit: "s",
		Description: "Time from the start of the newest transfer until it was posted to the backend.",
		OptIn:       true,
	}
	MemoryRegistered = Metric{
		Name: "nixl.memory.registered", Kind: Counter, Number: Int64, Unit: "By",
		Description: "Bytes of memory that the agent registered.",
	}
	MemoryDeregistered = Metric{
		Name: "nixl.memory.deregistered", Kind: Counter, Number: Int64, Unit: "By",
		Description: "Bytes of memory that the agent deregistered.",
	}
	MemoryUsage = Metric{
		Name: "nixl.memory.usage", Kind: UpDownCounter, Number: Int64, Unit: "By",
		Description: "Bytes of memory that are registered with the agent.",
		Note:        "Never negative. Absent if some events since the agent's start were missed.",
	}
	MemoryLastSize = Metric{
		Name: "nixl.memory.last.size", Kind: Gauge, Number: Int64, Unit: "By",
		Description: "Size of the newest registration or deregistration of memory.",
		Attributes:  []string{MemoryOperation},
		OptIn:       true,
	}
	Errors = Metric{
		Name: "nixl.errors", Kind: Counter, Number: Int64, Unit: "{error}",
		Description: "Operations that ended with an error.",
		Note:        "Every status of NIXL is reported from 0 on.",
		Attributes:  []string{ErrorType},
	}
	Events = Metric{
		Name: "nixl.events", Kind: Counter, Number: Int64, Unit: "{event}",
		Description: "Telemetry events of the agent.",
		Note: "Includes events of every kind. Events beyond the limit on names count together, with `otel.metric.overflow`. " +
			"Absent for stores.",
		Attributes:  []string{EventCategory, EventName},
		Conditional: []string{MetricOverflow},
		OptIn:       true,
	}
	EventValue = Metric{
		Name: "nixl.event.value", Kind: Counter, Number: Int64, Unit: "{value}",
		Description: "Sum of the values of connection, backend, system and custom events.",
		Note:        "Only the layouts v1 and v2 have such events, and Go agents. What a value means depends on the event. For stores, events of unknown types.",
		Attributes:  []string{EventCategory, EventName},
		Conditional: []string{MetricOverflow},
	}
	EventLastValue = Metric{
		Name: "nixl.event.last_value", Kind: Gauge, Number: Int64, Unit: "{value}",
		Description: "Value of the newest connection, backend, system or custom event.",
		Note:        "Only the layouts v1 and v2 have such events, and Go agents.",
		Attributes:  []string{EventCategory, EventName},
	}
)

// Metrics about the telemetry of a NIXL agent. Only a reader of rings reports the
// metrics that begin with nixl.telemetry.ring.
var (
	TelemetryEventsDropped = Metric{
		Name: "nixl.telemetry.events.dropped", Kind: Counter, Number: Int64, Unit: "{event}",
		Description: "Events that the agent dropped before they reached its ring.",
		Note:        "From layout v4 on, the agent reports the number in an event, which can itself be lost.",
	}
	TelemetryEventsUnknown = Metric{
		Name: "nixl.telemetry.events.unknown", Kind: Counter, Number: Int64, Unit: "{event}",
		Description: "Events of types that this version doesn't know.",
		Note: "A newer NIXL has more types, such as new errors: upgrade nixl-otel. No other metric includes these events, except " +
			"`nixl.events`. Events beyond the limit on names count together, with `otel.metric.overflow`. Stores have them in `nixl.event.value`.",
		Attributes:  []string{EventName},
		Conditional: []string{MetricOverflow},
	}
	RingCapacity = Metric{
		Name: "nixl.telemetry.ring.capacity", Kind: UpDownCounter, Number: Int64, Unit: "{event}",
		Description: "Number of slots in the agent's ring.",
		Note:        "A ring holds one event fewer.",
	}
	RingUtilization = Metric{
		Name: "nixl.telemetry.ring.utilization", Kind: Gauge, Number: Float64, Unit: "1",
		Description: "Highest fill level of the ring that a drain found since the last export.",
		Note:        "1 is full. Keep it below 0.5.",
	}
	RingSaturations = Metric{
		Name: "nixl.telemetry.ring.saturations", Kind: Counter, Number: Int64, Unit: "{drain}",
		Description: "Drains that found the ring full.",
		Note:        "The agent has most likely lost events.",
	}
	RingRestarts = Metric{
		Name: "nixl.telemetry.ring.restarts", Kind: Counter, Number: Int64, Unit: "{restart}",
		Description: "Agent restarts on this ring.",
	}
	RingForeignReads = Metric{
		Name: "nixl.telemetry.ring.foreign_reads", Kind: Counter, Number: Int64, Unit: "{read}",
		Description: "Number of times that another reader took events from this ring.",
		Note:        "The events that it took aren't counted.",
	}
	RingTornGroups = Metric{
		Name: "nixl.telemetry.ring.torn_groups", Kind: Counter, Number: Int64, Unit: "{group}",
		Description: "Transfers with missing events.",
		Note:        "Reported for layout v4. A type of event that the agent never sends isn't missing.",
	}
)

// NIXL returns the metrics of NIXL agents, in the order of docs/metrics.md.
func NIXL() []Metric {
	return []Metric{
		TransferIO, TransferRequests, TransferSize, TransferDuration, TransferPostDuration, TransferThroughput,
		TransferLastSize, TransferLastDuration, TransferLastPostDuration,
		MemoryRegistered, MemoryDeregistered, MemoryUsage, MemoryLastSize,
		Errors, Events, EventValue, EventLastValue, TelemetryEventsDropped, TelemetryEventsUnknown,
		AgentUp, RingCapacity, RingUtilization, RingSaturations, RingRestarts, RingForeignReads, RingTornGroups,
	}
}
