// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"bytes"
	"strconv"
)

// Category is NIXL's nixl_telemetry_category_t. Rings of layout [V1] and
// [V2] carry it. In later layouts, the type determines it.
type Category int32

// The categories. NIXL's core uses memory, transfer, error and performance. In
// layout V1, a backend may use the others for any purpose.
const (
	CategoryMemory Category = iota
	CategoryTransfer
	CategoryConnection
	CategoryBackend
	CategoryError
	CategoryPerformance
	CategorySystem
	CategoryCustom
)

// Categories is the number of categories.
const Categories = 8

var categoryNames = [Categories]string{
	"MEMORY", "TRANSFER", "CONNECTION", "BACKEND", "ERROR", "PERFORMANCE", "SYSTEM", "CUSTOM",
}

// String returns the category as NIXL's readers print it, or UNKNOWN.
func (c Category) String() string {
	if c < 0 || c >= Categories {
		return "UNKNOWN"
	}
	return categoryNames[c]
}

// Type is NIXL's nixl_telemetry_event_type_t, of layout [V2] and later.
type Type uint32

// The types. Their values are the IDs in the ring.
const (
	TypeTxBytes Type = iota
	TypeRxBytes
	TypeTxRequests
	TypeRxRequests
	TypeMemoryRegistered
	TypeMemoryDeregistered
	TypeXferTime // microseconds until the application saw that the transfer was complete
	TypeXferPostTime
	TypeErrNotPosted
	TypeErrInvalidParam
	TypeErrBackend
	TypeErrNotFound
	TypeErrMismatch
	TypeErrNotAllowed
	TypeErrRepostActive
	TypeErrUnknown
	TypeErrNotSupported
	TypeErrRemoteDisconnect
	TypeErrCanceled
	TypeErrNoTelemetry
	TypeEventsDropped // layout V4 only
)

// Types is the number of types that the newest layout knows.
const Types = int(TypeEventsDropped) + 1

var typeTable = [Types]struct {
	name     string   // nixlEnumStrings::telemetryEventTypeStr
	legacy   string   // name in layout V1; empty if it is the same
	category Category // category in layout V2
}{
	TypeTxBytes:             {"agent_tx_bytes", "", CategoryTransfer},
	TypeRxBytes:             {"agent_rx_bytes", "", CategoryTransfer},
	TypeTxRequests:          {"agent_tx_requests_num", "", CategoryTransfer},
	TypeRxRequests:          {"agent_rx_requests_num", "", CategoryTransfer},
	TypeMemoryRegistered:    {"agent_memory_registered", "", CategoryMemory},
	TypeMemoryDeregistered:  {"agent_memory_deregistered", "", CategoryMemory},
	TypeXferTime:            {"agent_xfer_time", "", CategoryPerformance},
	TypeXferPostTime:        {"agent_xfer_post_time", "", CategoryPerformance},
	TypeErrNotPosted:        {"agent_err_not_posted", "NIXL_ERR_NOT_POSTED", CategoryError},
	TypeErrInvalidParam:     {"agent_err_invalid_param", "NIXL_ERR_INVALID_PARAM", CategoryError},
	TypeErrBackend:          {"agent_err_backend", "NIXL_ERR_BACKEND", CategoryError},
	TypeErrNotFound:         {"agent_err_not_found", "NIXL_ERR_NOT_FOUND", CategoryError},
	TypeErrMismatch:         {"agent_err_mismatch", "NIXL_ERR_MISMATCH", CategoryError},
	TypeErrNotAllowed:       {"agent_err_not_allowed", "NIXL_ERR_NOT_ALLOWED", CategoryError},
	TypeErrRepostActive:     {"agent_err_repost_active", "NIXL_ERR_REPOST_ACTIVE", CategoryError},
	TypeErrUnknown:          {"agent_err_unknown", "NIXL_ERR_UNKNOWN", CategoryError},
	TypeErrNotSupported:     {"agent_err_not_supported", "NIXL_ERR_NOT_SUPPORTED", CategoryError},
	TypeErrRemoteDisconnect: {"agent_err_remote_disconnect", "NIXL_ERR_REMOTE_DISCONNECT", CategoryError},
	TypeErrCanceled:         {"agent_err_canceled", "NIXL_ERR_CANCELED", CategoryError},
	TypeErrNoTelemetry:      {"agent_err_no_telemetry", "NIXL_ERR_NO_TELEMETRY", CategoryError},
	// NIXL assigns it no category. Transfer categories don't fit.
	TypeEventsDropped: {"agent_telemetry_events_dropped", "", CategorySystem},
}

// String returns the type's name as NIXL's readers print it, or unknown_event_N
// for an unknown type.
func (t Type) String() string {
	if int(t) < Types {
		return typeTable[t].name
	}
	return t.number()
}

// number formats a type that has no name.
func (t Type) number() string { return "unknown_event_" + strconv.FormatUint(uint64(t), 10) }

// Category returns the category that layout [V2] stores with a known type, or -1.
func (t Type) Category() Category {
	if int(t) < Types {
		return typeTable[t].category
	}
	return -1
}

// IsError reports whether the type stands for a NIXL error status.
func (t Type) IsError() bool { return t >= TypeErrNotPosted && t <= TypeErrNoTelemetry }

// LegacyName returns the type's name in rings whose slots carry names. There,
// errors are named after their status.
func (t Type) LegacyName() string {
	if int(t) < Types && typeTable[t].legacy != "" {
		return typeTable[t].legacy
	}
	return t.String()
}

// Name is an event's name as stored in a slot. Another process wrote it: it
// should be NUL-terminated UTF-8, but may be any bytes.
type Name [32]byte

// MakeName returns s as an agent stores it: truncated to 31 bytes, with a NUL at
// the end.
func MakeName(s string) (n Name) {
	copy(n[:len(n)-1], s)
	return n
}

// Bytes returns the name up to its first NUL, in place.
func (n *Name) Bytes() []byte {
	if i := bytes.IndexByte(n[:], 0); i >= 0 {
		return n[:i]
	}
	return n[:]
}

// String returns the name up to its first NUL, with invalid UTF-8 unchanged.
func (n *Name) String() string { return string(n.Bytes()) }

// TypedEvent is a slot of layout [V3] or [V4]: the C++ struct
// nixlTelemetryEvent of NIXL v1.3.0 and later.
type TypedEvent struct {
	Type  Type
	_     uint32
	Value uint64
}

// CategorizedEvent is a slot of layout [V2] (NIXL v1.1.0).
type CategorizedEvent struct {
	Category Category
	Type     Type
	Value    uint64
}

// TimedEvent is a slot of layout [V1] (NIXL 0.5.1 to v1.0.1).
type TimedEvent struct {
	TimestampMicros uint64 // time of recording, since the epoch
	Category        Category
	Name            Name
	_               uint32
	Value           uint64
}

// Event is a copy of a slot of any layout.
type Event struct {
	TimestampMicros uint64   // since the epoch; 0 unless the layout is V1
	Category        Category // derived from Type where the layout has none; -1 if unknown
	Named           bool     // whether Name identifies the event, rather than Type
	Type            Type     // 0 if Named
	Name            Name     // empty unless Named
	Value           uint64
}

// NewEvent returns an event of a known type.
func NewEvent(t Type, value uint64) Event {
	return Event{Category: t.Category(), Type: t, Value: value}
}

// NewNamedEvent returns an event that only layouts with names can carry.
func NewNamedEvent(c Category, name string, value uint64) Event {
	return Event{Category: c, Named: true, Name: MakeName(name), Value: value}
}

// EventName returns the event's name, or the name of its type in the newest
// layout. For types of older layouts, use [Layout.TypeName].
func (e *Event) EventName() string {
	if e.Named {
		return e.Name.String()
	}
	return e.Type.String()
}
