package agent

import (
	"fmt"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Direction is the way that a transfer moved data, seen from the agent.
type Direction uint8

// The directions. NIXL calls a transfer that transmits a write, and one that
// receives a read.
const (
	Transmit Direction = iota
	Receive

	directions = iota
)

var directionNames = [directions]string{semconv.Transmit, semconv.Receive}

// String is the direction, as the attribute nixl.transfer.direction has it.
func (d Direction) String() string {
	if d >= directions {
		return fmt.Sprintf("Direction(%d)", uint8(d))
	}
	return directionNames[d]
}

// Status is an error status of NIXL (nixl_status_t, NIXL_ERR_…).
type Status uint8

// The statuses, in the order of NIXL's telemetry events.
const (
	StatusNotPosted Status = iota
	StatusInvalidParam
	StatusBackend
	StatusNotFound
	StatusMismatch
	StatusNotAllowed
	StatusRepostActive
	StatusUnknown
	StatusNotSupported
	StatusRemoteDisconnect
	StatusCanceled
	StatusNoTelemetry

	statuses = iota
)

var statusNames = [statuses]string{
	semconv.ErrorNotPosted, semconv.ErrorInvalidParam, semconv.ErrorBackend, semconv.ErrorNotFound,
	semconv.ErrorMismatch, semconv.ErrorNotAllowed, semconv.ErrorRepostActive, semconv.ErrorUnknown,
	semconv.ErrorNotSupported, semconv.ErrorRemoteDisconnect, semconv.ErrorCanceled, semconv.ErrorNoTelemetry,
}

// String is the status, as the attribute error.type has it.
func (s Status) String() string {
	if s >= statuses {
		return fmt.Sprintf("Status(%d)", uint8(s))
	}
	return statusNames[s]
}

// EventCategory is what an [Agent.Event] belongs to: one of the categories that
// NIXL leaves to backends and applications.
type EventCategory uint8

// The categories.
const (
	EventCustom EventCategory = iota
	EventConnection
	EventBackend
	EventSystem

	eventCategories = iota
)

var eventCategoryTable = [eventCategories]struct {
	name string
	ring ringbuf.Category
}{
	EventCustom:     {semconv.CategoryCustom, ringbuf.CategoryCustom},
	EventConnection: {semconv.CategoryConnection, ringbuf.CategoryConnection},
	EventBackend:    {semconv.CategoryBackend, ringbuf.CategoryBackend},
	EventSystem:     {semconv.CategorySystem, ringbuf.CategorySystem},
}

// String is the category, as the attribute nixl.event.category has it.
func (c EventCategory) String() string {
	if c >= eventCategories {
		return fmt.Sprintf("EventCategory(%d)", uint8(c))
	}
	return eventCategoryTable[c].name
}

// category is the ring's. What is none of the constants is custom.
func (c EventCategory) category() ringbuf.Category {
	if c >= eventCategories {
		c = EventCustom
	}
	return eventCategoryTable[c].ring
}

// memoryOperation counts up from register as the ring's types do.
type memoryOperation uint8

const (
	register memoryOperation = iota
	deregister

	memoryOperations = iota
)

var operationNames = [memoryOperations]string{semconv.Register, semconv.Deregister}
