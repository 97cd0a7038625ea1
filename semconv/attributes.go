// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv

// Attribute describes one attribute of the catalog.
type Attribute struct {
	Key         string
	Type        string // string, int, double or boolean
	Description string
	Note        string // what Description leaves out, as Markdown
	Examples    []string
	// Values are the only values of the attribute; nil if others are possible.
	Values []Value
	// Condition states when a resource has the attribute, or a metric or event
	// that lists it in Conditional: "if …".
	Condition string
	// OptIn reports whether the attribute is off by default there instead.
	OptIn bool
	// OpenTelemetry reports whether the OpenTelemetry registry defines the
	// attribute. Description and Note then state what it means here.
	OpenTelemetry bool
}

// Value is one of the values of an [Attribute].
type Value struct{ Value, Description string }

// ResourceAttributes returns the attributes of the resource of a NIXL agent.
func ResourceAttributes() []Attribute {
	return append([]Attribute{
		{
			Key: ServiceName, Type: "string", OpenTelemetry: true,
			Description: "Name of the service that the agent belongs to.",
			Note:        "From `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` of a discovered process. Otherwise `service.name` of the receiver's `resource`.",
			Examples:    []string{ServiceNameNIXL, "inference"},
		},
		{
			Key: ServiceInstanceID, Type: "string", OpenTelemetry: true,
			Description: "UUID that identifies the agent.",
			Note:        "Derived from the host name and from what identifies the agent on its host. It stays the same when the agent restarts. With stores of `prometheus_mp`, it identifies one process.",
			Examples:    []string{"3b0aaebc-76a3-5e4c-9bd8-4d3c9cf8b6a1"},
		},
		{
			Key: HostName, Type: "string", OpenTelemetry: true,
			Description: "Name of the host that the agent runs on.",
			Examples:    []string{"gpu-node-17"},
		},
		{
			Key: AgentName, Type: "string",
			Description: "Name of the agent, as its application chose it.",
			Note:        "For a ring, its path within the telemetry directory. Go programs with several agents set it on data points instead.",
			Examples:    []string{"decode-0", "prefill/worker-3"},
		},
		{
			Key: LocalRank, Type: "string",
			Condition:   "if the environment or the title of the discovered process, or the store, has the rank",
			Description: "Rank of the agent's process on its host.",
			Note:        "From the environment variable `LOCAL_RANK` or a configured one, from the title of a process of vLLM or SGLang, from the local rank of MPI or Slurm, or from the agent's store.",
			Examples:    []string{"0", "7"},
		},
		{
			Key: TelemetryLayout, Type: "string",
			OptIn:       true,
			Description: "Layout of the agent's ring or store.",
			Values: []Value{
				{"v1", "NIXL 0.5.1 to 1.0.1."},
				{"v2", "NIXL 1.1.0 and 1.2.0."},
				{"v3", "NIXL 1.3.0 and 1.3.2."},
				{"v4", "NIXL 1.3.1, 1.4.0, 1.4.1 and the main branch."},
				{LayoutStore, "Stores of NIXL's `prometheus_mp` exporter."},
			},
		},
		{
			Key: TelemetryPath, Type: "string",
			OptIn:       true,
			Description: "Path of the agent's ring, or of the store of its process.",
			Examples:    []string{"/run/nixl/decode-0"},
		},
	}, discoveredAttributes()...)
}

// discoveredAttributes returns the attributes of agents that were discovered.
func discoveredAttributes() []Attribute {
	return []Attribute{
		{
			Key: K8SPodUID, Type: "string", OpenTelemetry: true,
			Condition:   "if the agent was discovered in a pod",
			Description: "UID of the pod that the agent runs in.",
			Examples:    []string{"275ecb36-5aa8-4c2a-9c47-d8bb681b9aff"},
		},
		{
			Key: K8SContainerName, Type: "string", OpenTelemetry: true,
			Condition:   "if the agent was discovered in a container of a pod",
			Description: "Name of the agent's container in its pod.",
			Examples:    []string{"worker"},
		},
		{
			Key: ContainerID, Type: "string", OpenTelemetry: true,
			OptIn:       true,
			Description: "ID of the container that the agent runs in.",
			Note:        "On log records, and on metrics if it identifies the agent.",
			Examples:    []string{"a3bf90e006b2"},
		},
		{
			Key: ProcessPID, Type: "int", OpenTelemetry: true,
			OptIn:       true,
			Description: "PID of the agent's process in the Collector's PID namespace.",
			Note:        "On log records. With stores of `prometheus_mp`, that in the process's own namespace unless the process was discovered.",
			Examples:    []string{"4711"},
		},
		{
			Key: ProcessExecutableName, Type: "string", OpenTelemetry: true,
			OptIn:       true,
			Description: "Name of the executable of the agent's process.",
			Note:        "On log records.",
			Examples:    []string{"python3.12"},
		},
	}
}

// NIXLAttributes returns the attributes of the data points and log records of a
// NIXL agent.
func NIXLAttributes() []Attribute {
	return append(nixlPointAttributes(), nixlRecordAttributes()...)
}

func nixlPointAttributes() []Attribute {
	return []Attribute{
		{
			Key: Direction, Type: "string",
			Description: "Direction of the transfer, as seen from the agent.",
			Values: []Value{
				{Transmit, "The agent wrote data to the other side."},
				{Receive, "The agent read data from the other side."},
			},
		},
		{
			Key: MemoryOperation, Type: "string",
			Description: "Operation on the memory.",
			Values: []Value{
				{Register, "The agent registered memory."},
				{Deregister, "The agent deregistered memory."},
			},
		},
		{
			Key: EventCategory, Type: "string",
			Description: "Category of the event, as NIXL defines it.",
			Values: []Value{
				{CategoryMemory, "Registrations and deregistrations of memory."},
				{CategoryTransfer, "Bytes and requests of transfers."},
				{CategoryConnection, "Connections between agents."},
				{CategoryBackend, "Events of a NIXL backend."},
				{CategoryError, "Operations that failed."},
				{CategoryPerformance, "Durations of transfers."},
				{CategorySystem, "Events of the system."},
				{CategoryCustom, "Events of the application."},
				{CategoryTelemetry, "Events about the telemetry itself."},
				{CategoryUnknown, "Events whose type or category isn't in this list."},
			},
		},
		{
			Key: EventName, Type: "string",
			Description: "Name of the event, or `unknown_event_N` for an unknown type N.",
			Note: "The same event has the same name in every layout. In layout v1, the agent chooses the names: they " +
				"end at the first NUL, and are converted to valid UTF-8.",
			Examples: []string{"agent_tx_bytes", "agent_err_backend", "unknown_event_21"},
		},
	}
}

func nixlRecordAttributes() []Attribute {
	return []Attribute{
		{
			Key: TransferSizeBytes, Type: "int",
			Description: "Size of the transfer in bytes.",
			Examples:    []string{"67108864"},
		},
		{
			Key: TransferSeconds, Type: "double",
			Description: "Time from the start of the transfer until the application saw it complete, in seconds.",
			Examples:    []string{"2.1"},
		},
		{
			Key: TransferPostSeconds, Type: "double",
			Description: "Time from the start of the transfer until it was posted to the backend, in seconds.",
			Examples:    []string{"0.00007"},
		},
		{
			Key: TransferBytesPerSecond, Type: "int",
			Description: "Throughput of the transfer in bytes per second, rounded down.",
			Examples:    []string{"31956601"},
		},
	}
}

// RingKernelAttributes returns the attributes of the data points of a ring kernel.
func RingKernelAttributes() []Attribute {
	return []Attribute{
		{
			Key: KernelID, Type: "string",
			Description: "ID of the kernel, as the program chose it.",
			Examples:    []string{"attention-0"},
		},
		{
			Key: KernelState, Type: "string",
			Description: "State of the kernel.",
			Values: []Value{
				{"created", "The kernel is registered."},
				{"launched", "The kernel is on its device."},
				{"active", "The kernel processes messages."},
				{"deactivated", "The kernel is paused."},
				{"terminating", "The kernel finishes its work."},
				{"terminated", "The kernel has ended."},
			},
		},
		{
			Key: QueueName, Type: "string",
			Description: "Queue of the kernel.",
			Values: []Value{
				{QueueInput, "Messages to the kernel."},
				{QueueOutput, "Messages from the kernel."},
			},
		},
	}
}

// SplitInferenceAttributes returns the attributes of the data points of a
// split-inference session.
func SplitInferenceAttributes() []Attribute {
	return []Attribute{
		{
			Key: DeviceName, Type: "string",
			Description: "Name of the device that ran the packet.",
			Examples:    []string{"cpu", "igpu"},
		},
		{
			Key: DeviceRequestedName, Type: "string",
			Description: "Name of the device that the pipeline requested, if another one ran the packet.",
			Examples:    []string{"igpu"},
		},
		{
			Key: Worker, Type: "string",
			Description: "Worker instance that ran the packet.",
			Note:        "The stage of the pipeline if the program doesn't name a worker.",
			Examples:    []string{"igpu_expert_ffn_layer_3"},
		},
		{
			Key: Operation, Type: "string",
			Description: "Kind of work that the packet did.",
			Examples:    []string{"attention_qkv_proj", "expert_ffn"},
		},
		{
			Key: Layer, Type: "int",
			Description: "Index of the model's layer, or -1 for what comes before the first layer.",
			Examples:    []string{"-1", "0", "31"},
		},
		{
			Key: Expert, Type: "string",
			Description: "ID of the expert that the packet ran or selected.",
			Condition:   "if the packet names its expert",
			Examples:    []string{"17"},
		},
		{
			Key: TokenType, Type: "string",
			Description: "Type of the tokens.",
			Values: []Value{
				{TokenPrompt, "Tokens read as prompt."},
				{TokenGenerated, "Tokens that the model generated."},
			},
		},
	}
}

// SharedAttributes returns the attributes that metrics and events of several parts
// of the catalog have.
func SharedAttributes() []Attribute {
	return []Attribute{
		{
			Key: ErrorType, Type: "string", OpenTelemetry: true,
			Description: "Error that the operation ended with.",
			Note: "For NIXL agents, NIXL's status: `not_posted`, `invalid_param`, `backend`, `not_found`, `mismatch`, `not_allowed`, " +
				"`repost_active`, `unknown`, `not_supported`, `remote_disconnect`, `canceled`, `no_telemetry`, or `_OTHER` for a status " +
				"that NIXL has no name for. For ring kernels and split inference, the Go type of the error or the name that the program " +
				"supplies.",
			Condition: "if the operation failed",
			Examples:  []string{ErrorBackend, ErrorRemoteDisconnect, ErrorOther},
		},
		{
			Key: MetricOverflow, Type: "boolean",
			Description: "True on the one series that counts everything beyond the limit on the number of series.",
			Note:        "That series has none of the attributes that the limit applies to.",
			Condition:   "on that series",
			Examples:    []string{"true"},
		},
	}
}
