// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Direction is the direction of a transfer, from the agent's perspective.
type Direction uint8

// The directions. NIXL calls them write (transmit) and read (receive).
const (
	Transmit Direction = iota
	Receive

	directions = iota
)

var directionNames = [directions]string{semconv.Transmit, semconv.Receive}

// String returns the value of the attribute nixl.transfer.direction.
func (d Direction) String() string {
	if d >= directions {
		return fmt.Sprintf("Direction(%d)", uint8(d))
	}
	return directionNames[d]
}

// Status is a NIXL error status (nixl_status_t, NIXL_ERR_…).
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

// String returns the value of the attribute error.type.
func (s Status) String() string {
	if s >= statuses {
		return fmt.Sprintf("Status(%d)", uint8(s))
	}
	return statusNames[s]
}

// EventCategory is the category of an [Agent.Event]: one of the categories that
// NIXL reserves for backends and applications.
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

// String returns the value of the attribute nixl.event.category.
func (c EventCategory) String() string {
	if c >= eventCategories {
		return fmt.Sprintf("EventCategory(%d)", uint8(c))
	}
	return eventCategoryTable[c].name
}

// category returns the ring's category. Unknown values are custom.
func (c EventCategory) category() ringbuf.Category {
	if c >= eventCategories {
		c = EventCustom
	}
	return eventCategoryTable[c].ring
}

// memoryOperation is ordered as the ring's event types are.
type memoryOperation uint8

const (
	register memoryOperation = iota
	deregister

	memoryOperations = iota
)

var operationNames = [memoryOperations]string{semconv.Register, semconv.Deregister}
