// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv

// Attributes of a resource. One NIXL agent is one resource.
const (
	ServiceName       = "service.name"
	ServiceInstanceID = "service.instance.id"
	HostName          = "host.name"
	AgentName         = "nixl.agent.name"
	LocalRank         = "nixl.local_rank"       // of the agent's process on its host
	TelemetryLayout   = "nixl.telemetry.layout" // v1, v2, v2-named, v3, v4, v5, or LayoutStore
	TelemetryPath     = "nixl.telemetry.path"
)

// Attributes of the resource of an agent that was discovered in a container.
const (
	K8SPodUID             = "k8s.pod.uid"
	ContainerID           = "container.id"
	ProcessPID            = "process.pid"
	ProcessExecutableName = "process.executable.name"
)

// LayoutStore is the value of [TelemetryLayout] for agents that NIXL's
// prometheus_mp exporter reports.
const LayoutStore = "prometheus_mp_v1"

// ServiceNameNIXL is the default of [ServiceName].
const ServiceNameNIXL = "nixl"

// Attributes of data points.
const (
	Direction = "nixl.transfer.direction"
	// TransferSizeClass is on the histograms of durations if that is configured.
	// It is one of [SizeClasses].
	TransferSizeClass = "nixl.transfer.size_class"
	MemoryOperation   = "nixl.memory.operation"
	ErrorType         = "error.type"
	EventCategory     = "nixl.event.category"
	EventName         = "nixl.event.name"
	// PeerAgentName is the name of the agent on the other side of a transfer:
	// its [AgentName]. The name follows OpenTelemetry's service.peer.name. The
	// address of a peer is OpenTelemetry's network.peer.address.
	PeerAgentName = "nixl.agent.peer.name"
	// BackendName is the NIXL backend that ran a transfer, as NIXL spells it:
	// UCX, GDS, POSIX, … OpenTelemetry has no attribute for it.
	BackendName = "nixl.backend.name"
	// MetricOverflow is true on the one point that stands for all the series
	// past a limit on their number.
	MetricOverflow = "otel.metric.overflow"

	KernelID    = "ringkernel.kernel.id"
	KernelState = "ringkernel.kernel.state"
	QueueName   = "ringkernel.queue.name"

	Device     = "splitinfer.device"
	DeviceUsed = "splitinfer.device.used"
	Worker     = "splitinfer.worker"
	Operation  = "splitinfer.operation"
	Layer      = "splitinfer.layer"
	Expert     = "splitinfer.expert"
	TokenType  = "splitinfer.token.type"
)

// Values of [Direction].
const (
	Transmit = "transmit"
	Receive  = "receive"
)

// Values of [TransferSizeClass].
const (
	SizeClassTo64KiB   = "le_64KiB"
	SizeClassTo1MiB    = "le_1MiB"
	SizeClassTo16MiB   = "le_16MiB"
	SizeClassOver16MiB = "gt_16MiB"
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
	CategoryTelemetry   = "telemetry" // the events that speak of telemetry itself
	CategoryUnknown     = "unknown"   // what the catalog doesn't know
)

// Values of [ErrorType] for NIXL agents: NIXL's status codes, and
// [ErrorOther] for a status that NIXL itself has no name for.
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
