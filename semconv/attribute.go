// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv

// Keys of the resource of a NIXL agent. Each agent is one resource.
const (
	ServiceName       = "service.name"
	ServiceInstanceID = "service.instance.id"
	HostName          = "host.name"
	AgentName         = "nixl.agent.name"
	LocalRank         = "nixl.local_rank"
	TelemetryLayout   = "nixl.telemetry.layout"
	TelemetryPath     = "nixl.telemetry.path"
)

// Keys of the resource of an agent that was discovered in a container.
const (
	K8SPodUID             = "k8s.pod.uid"
	K8SContainerName      = "k8s.container.name"
	ContainerID           = "container.id"
	ProcessPID            = "process.pid"
	ProcessExecutableName = "process.executable.name"
)

// LayoutStore is the value of [TelemetryLayout] for agents with stores of NIXL's
// prometheus_mp exporter.
const LayoutStore = "prometheus_mp_v1"

// ServiceNameNIXL is the default of [ServiceName].
const ServiceNameNIXL = "nixl"

// Keys of data points. [NIXLAttributes], [RingKernelAttributes],
// [SplitInferenceAttributes] and [SharedAttributes] describe them.
const (
	Direction       = "nixl.transfer.direction"
	MemoryOperation = "nixl.memory.operation"
	ErrorType       = "error.type"
	EventCategory   = "nixl.event.category"
	EventName       = "nixl.event.name"
	MetricOverflow  = "otel.metric.overflow"

	KernelID    = "ringkernel.kernel.id"
	KernelState = "ringkernel.kernel.state"
	QueueName   = "ringkernel.queue.name"

	DeviceName          = "splitinfer.device.name"
	DeviceRequestedName = "splitinfer.device.requested_name"
	Worker              = "splitinfer.worker"
	Operation           = "splitinfer.operation"
	Layer               = "splitinfer.layer"
	Expert              = "splitinfer.expert"
	TokenType           = "splitinfer.token.type"
)

// Values of [Direction].
const (
	Transmit = "transmit"
	Receive  = "receive"
)

// Values of [MemoryOperation].
const (
	Register   = "register"
	Deregister = "deregister"
)

// Values of [EventCategory].
const (
	CategoryMemory      = "memory"
	CategoryTransfer    = "transfer"
	CategoryConnection  = "connection"
	CategoryBackend     = "backend"
	CategoryError       = "error"
	CategoryPerformance = "performance"
	CategorySystem      = "system"
	CategoryCustom      = "custom"
	CategoryTelemetry   = "telemetry"
	CategoryUnknown     = "unknown"
)

// Values of [ErrorType] for NIXL agents: NIXL's statuses, and [ErrorOther] for a
// status that NIXL has no name for.
const (
	ErrorNotPosted        = "not_posted"
	ErrorInvalidParam     = "invalid_param"
	ErrorBackend          = "backend"
	ErrorNotFound         = "not_found"
	ErrorMismatch         = "mismatch"
	ErrorNotAllowed       = "not_allowed"
	ErrorRepostActive     = "repost_active"
	ErrorUnknown          = "unknown"
	ErrorNotSupported     = "not_supported"
	ErrorRemoteDisconnect = "remote_disconnect"
	ErrorCanceled         = "canceled"
	ErrorNoTelemetry      = "no_telemetry"
	ErrorOther            = "_OTHER"
)

// Values of [QueueName].
const (
	QueueInput  = "input"
	QueueOutput = "output"
)

// Values of [TokenType].
const (
	TokenPrompt    = "prompt"
	TokenGenerated = "generated"
)
