// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import "github.com/nixl-otel/nixl-otel/semconv"

// Direction is the direction of a transfer, from the agent's perspective.
type Direction uint8

// The directions. NIXL calls them write (transmit) and read (receive).
const (
	Transmit Direction = iota
	Receive

	directions = iota
)

var directionNames = [directions]string{semconv.Transmit, semconv.Receive}

// statuses is the number of NIXL's error statuses (nixl_status_t, NIXL_ERR_…).
const statuses = 12

// errorNames are the values of error.type, in the order of NIXL's telemetry events.
var errorNames = [statuses]string{
	semconv.ErrorNotPosted, semconv.ErrorInvalidParam, semconv.ErrorBackend, semconv.ErrorNotFound,
	semconv.ErrorMismatch, semconv.ErrorNotAllowed, semconv.ErrorRepostActive, semconv.ErrorUnknown,
	semconv.ErrorNotSupported, semconv.ErrorRemoteDisconnect, semconv.ErrorCanceled, semconv.ErrorNoTelemetry,
}

// memoryOperation is ordered as the ring's event types are.
type memoryOperation uint8

const (
	register memoryOperation = iota
	deregister

	memoryOperations = iota
)

var operationNames = [memoryOperations]string{semconv.Register, semconv.Deregister}
