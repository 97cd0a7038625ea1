// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv

// AgentUp is the kernel's view of the agent, not the agent's own.
var AgentUp = Metric{
	Name: "nixl.agent.up", Kind: UpDownCounter, Number: Int64, Unit: "1",
	Description: "1 while a process other than the reader has the agent's ring or store open, 0 once none has; absent if the kernel can't tell.",
}

// What a NIXL agent does, by events of its telemetry.
var (
	TransferIO = Metric{
		Name: "nixl.transfer.io", Kind: Counter, Number: Int64, Unit: "By",
		Description: "Bytes moved by completed transfers that the agent initiated.",
		Attributes:  []string{Direction},
	}
	TransferRequests = Metric{
		Name: "nixl.transfer.requests", Kind: Counter, Number: Int64, Unit: "{request}",
		Description: "Completed transfers that the agent initiated.",
		Attributes:  []string{Direction},
	}
	TransferSize = Metric{
		Name: "nixl.transfer.size", Kind: Histogram, Number: Float64, Unit: "By",
		Description: "Bytes of each completed transfer.",
		Attributes:  []string{Direction},
	}
	TransferDuration = Metric{
		Name: "nixl.transfer.duration", Kind: Histogram, Number: Float64, Unit: "s",
		Description: "Time of each transfer from its start until the application saw it complete; includes the post time.",
		Conditional: []string{TransferSizeClass},
	}
	TransferPostDuration = Metric{
		Name: "nixl.transfer.post.duration", Kind: Histogram, Number: Float64, Unit: "s",
		Description: "Time of each transfer from its start until it was posted to the backend.",
		Conditional: []string{TransferSizeClass},
	}
	TransferThroughput = Metric{
		Name: "nixl.transfer.throughput", Kind: Histogram, Number: Float64, Unit: "By/s",
		Description: "Bytes of each completed transfer divided by its time, for transfers whose events were all read.",
		Attributes:  []string{Direction},
	}
	TransferLastSize = Metric{
		Name: "nixl.transfer.last.size", Kind: Gauge, Number: Int64, Unit: "By",
		Description: "Bytes of the newest completed transfer.",
		Attributes:  []string{Direction},
	}
	TransferLastDuration = Metric{
		Name: "nixl.transfer.last.duration", Kind: Gauge, Number: Float64, Unit: "s",
		Description: "Time of the newest transfer from its start until the application saw it complete.",
	}
	TransferLastPostDuration = Metric{
		Name: "nixl.transfer.last.post_duration", Kind: Gauge, Number: Float64, Unit: "s",
		Description: "Time of the newest transfer from its start until it was posted to the backend.",
	}
	MemoryRegistered = Metric{
		Name: "nixl.memory.registered", Kind: Counter, Number: Int64, Unit: "By",
		Description: "Bytes of memory that were registered with the agent.",
	}
	MemoryDeregistered = Metric{
		Name: "nixl.memory.deregistered", Kind: Counter, Number: Int64, Unit: "By",
		Description: "Bytes of memory that were deregistered from the agent.",
	}
	MemoryUsage = Metric{
		Name: "nixl.memory.usage", Kind: UpDownCounter, Number: Int64, Unit: "By",
		Description: "Bytes of memory registered with the agent now: registered minus deregistered since the agent started; " +
			"absent if some of these events were missed.",
	}
	MemoryLastSize = Metric{
		Name: "nixl.memory.last.size", Kind: Gauge, Number: Int64, Unit: "By",
		Description: "Bytes of the newest memory registration or deregistration.",
		Attributes:  []string{MemoryOperation},
	}
	Errors = Metric{
		Name: "nixl.errors", Kind: Counter, Number: Int64, Unit: "{error}",
		Description: "Operations that ended in an error, by NIXL's status.",
		Attributes:  []string{ErrorType},
	}
	Events = Metric{
		Name: "nixl.events", Kind: Counter, Number: Int64, Unit: "{event}",
		Description: "Telemetry events of the agent, of every kind; those past the limit on names count together under otel.metric.overflow.",
		Attributes:  []string{EventCategory, EventName},
		Conditional: []string{MetricOverflow},
	}
	EventValue = Metric{
		Name: "nixl.event.value", Kind: Counter, Number: Int64, Unit: "1",
		Description: "Sum of the values of connection, backend, system and custom events.",
		Attributes:  []string{EventCategory, EventName},
		Conditional: []string{MetricOverflow},
	}
	EventLastValue = Metric{
		Name: "nixl.event.last_value", Kind: Gauge, Number: Int64, Unit: "1",
		Description: "Value of the newest connection, backend, system or custom event.",
		Attributes:  []string{EventCategory, EventName},
	}
)

// How the agent's telemetry itself fares. Only a reader of rings can tell the
// nixl.telemetry.ring part.
var (
	TelemetryEventsDropped = Metric{
		Name: "nixl.telemetry.events.dropped", Kind: Counter, Number: Int64, Unit: "{event}",
		Description: "Events that the agent dropped before they reached its ring, as the agent reports it.",
	}
	RingCapacity = Metric{
		Name: "nixl.telemetry.ring.capacity", Kind: UpDownCounter, Number: Int64, Unit: "{event}",
		Description: "Slots of the agent's ring; it holds at most one event less.",
	}
	RingUtilization = Metric{
		Name: "nixl.telemetry.ring.utilization", Kind: Gauge, Number: Float64, Unit: "1",
		Description: "Highest fill of the ring that any drain of the collection interval found; 1 is full.",
	}
	RingSaturations = Metric{
		Name: "nixl.telemetry.ring.saturations", Kind: Counter, Number: Int64, Unit: "{drain}",
		Description: "Drains that found the ring full: the agent has most likely lost events.",
	}
	RingRestarts = Metric{
		Name: "nixl.telemetry.ring.restarts", Kind: Counter, Number: Int64, Unit: "{restart}",
		Description: "Agent restarts on this ring.",
	}
	RingLossyRestarts = Metric{
		Name: "nixl.telemetry.ring.lossy_restarts", Kind: Counter, Number: Int64, Unit: "{restart}",
		Description: "Agent restarts that may have discarded unread events.",
	}
	RingForeignReads = Metric{
		Name: "nixl.telemetry.ring.foreign_reads", Kind: Counter, Number: Int64, Unit: "{read}",
		Description: "Times that another reader took events from this ring.",
	}
	RingTornGroups = Metric{
		Name: "nixl.telemetry.ring.torn_groups", Kind: Counter, Number: Int64, Unit: "{group}",
		Description: "Transfers of which some events are missing (layouts v4 and v5): the ring has lost events.",
	}
)

// NIXL is the catalog of NIXL agents, in the order of its documentation.
func NIXL() []Metric {
	return []Metric{
		TransferIO, TransferRequests, TransferSize, TransferDuration, TransferPostDuration, TransferThroughput,
		TransferLastSize, TransferLastDuration, TransferLastPostDuration,
		MemoryRegistered, MemoryDeregistered, MemoryUsage, MemoryLastSize,
		Errors, Events, EventValue, EventLastValue, TelemetryEventsDropped,
		AgentUp, RingCapacity, RingUtilization, RingSaturations, RingRestarts, RingLossyRestarts, RingForeignReads, RingTornGroups,
	}
}
