// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv

// Event names of log records.
const (
	EventTransferSlow = "nixl.transfer.slow" // a slow transfer, with severity WARN
	EventError        = "nixl.error"         // an operation that ended in an error, with severity ERROR
)

// Attributes of log records. [EventTransferSlow] has [Direction] too, and
// [EventError] has [ErrorType].
const (
	TransferSizeBytes      = "nixl.transfer.size"          // bytes
	TransferSeconds        = "nixl.transfer.duration"      // seconds
	TransferPostSeconds    = "nixl.transfer.post.duration" // seconds
	TransferBytesPerSecond = "nixl.transfer.throughput"    // bytes per second, rounded down
	// EventTimeSource is [TimeSourceDrain] if the time of the record is when its
	// event was read. Without it, the agent recorded the time.
	EventTimeSource = "nixl.event.time_source"
)

// TimeSourceDrain is the value of [EventTimeSource].
const TimeSourceDrain = "drain"
