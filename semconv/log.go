// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv

// Event describes one kind of log record of the catalog.
type Event struct {
	Name        string
	Severity    string
	Description string
	Note        string // what Description leaves out, as Markdown
	// Attributes are the keys of every record. Conditional are the keys that a
	// record may have; see [Attribute].
	Attributes  []string
	Conditional []string
}

// Names of log records.
const (
	EventTransferSlow = "nixl.transfer.slow"
	EventError        = "nixl.error"
)

// NIXLEvents returns the log records of NIXL agents.
func NIXLEvents() []Event {
	return []Event{
		{
			Name: EventTransferSlow, Severity: "WARN",
			Description: "A transfer that was slow.",
			Note:        "`logs::slow_transfer` of the receiver is the limit.",
			Attributes:  []string{Direction, TransferSizeBytes, TransferSeconds, TransferPostSeconds, TransferBytesPerSecond},
		},
		{
			Name: EventError, Severity: "ERROR",
			Description: "An operation that ended with an error.",
			Note:        "The body names the error. The events don't contain which operation it was.",
			Attributes:  []string{ErrorType},
		},
	}
}

// Attributes of log records, beyond those of data points.
const (
	TransferSizeBytes      = "nixl.transfer.size"
	TransferSeconds        = "nixl.transfer.duration"
	TransferPostSeconds    = "nixl.transfer.post.duration"
	TransferBytesPerSecond = "nixl.transfer.throughput"
)
