// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"bytes"
	"strconv"
	"strings"
)

// Category is NIXL's nixl_telemetry_category_t. Rings of layout [V1], [V2] and
// [V2Named] carry it; later ones leave it to be derived from the type.
type Category int32

// The categories. The core writes memory, transfer, error and performance; in
// layout V1 a backend writes what it likes under the others.
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

// String is the category as NIXL's readers print it, or UNKNOWN.
func (c Category) String() string {
	if c < 0 || c >= Categories {
		return "UNKNOWN"
	}
	return categoryNames[c]
}

// Type is NIXL's nixl_telemetry_event_type_t, of layout [V2] and later.
type Type uint32

// The types, by their ids on the ring.
const (
	TypeTxBytes Type = iota
	TypeRxBytes
	TypeTxRequests
	TypeRxRequests
	TypeMemoryRegistered
	TypeMemoryDeregistered
	TypeXferTime // microseconds, until the application saw the transfer complete
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

type typeFacts struct {
	name     string   // nixlEnumStrings::telemetryEventTypeStr
	named    string   // what layout V1 calls it; empty where it is the same
	category Category // what layout V2 writes beside it
}

var typeTable = [Types]typeFacts{
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
	// NIXL has no category for it; the ones that exist describe transfers.
	TypeEventsDropped: {"agent_telemetry_events_dropped", "", CategorySystem},
}

// String is the type's name as NIXL's readers print it. A type that isn't
// known prints as unknown_event_N.
func (t Type) String() string {
	if int(t) < Types {
		return typeTable[t].name
	}
	return t.number()
}

// number is what a type prints as that has no name.
func (t Type) number() string { return unknownEvent + strconv.FormatUint(uint64(t), 10) }

const unknownEvent = "unknown_event_"

// ParseTypeName is the reverse of [Layout.TypeName], for all layouts.
func ParseTypeName(name string) (Type, bool) {
	for t := range typeTable {
		if typeTable[t].name == name {
			return Type(t), true
		}
	}
	number, ok := strings.CutPrefix(name, unknownEvent)
	t, err := strconv.ParseUint(number, 10, 32)
	return Type(t), ok && err == nil && Type(t).number() == name
}

// Category is the category that layout [V2] writes beside a known type.
func (t Type) Category() Category {
	if int(t) < Types {
		return typeTable[t].category
	}
	return -1
}

// IsError says whether the type reports a NIXL error status.
func (t Type) IsError() bool { return t >= TypeErrNotPosted && t <= TypeErrNoTelemetry }

// LegacyName is the type's name in rings whose slots carry names: errors are
// named by their status there.
func (t Type) LegacyName() string {
	if int(t) < Types && typeTable[t].named != "" {
		return typeTable[t].named
	}
	return t.String()
}

// Name is an event's name as it stands in a slot: bytes of another process,
// which ought to end with a NUL and to be UTF-8, and need be neither.
type Name [32]byte

// MakeName is s as an agent stores it: cut to 31 bytes, so that a NUL follows.
func MakeName(s string) (n Name) {
	copy(n[:len(n)-1], s)
	return n
}

// Bytes is the name up to its first NUL, in place.
func (n *Name) Bytes() []byte {
	if i := bytes.IndexByte(n[:], 0); i >= 0 {
		return n[:i]
	}
	return n[:]
}

// String is the name up to its first NUL, byte for byte.
func (n *Name) String() string { return string(n.Bytes()) }

// TypedEvent is a slot of layout [V3] or [V4], the C++ struct
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

// NamedEvent is a slot of layout [V2Named] (NIXL main, April 2026).
type NamedEvent struct {
	Category Category
	Name     Name
	_        uint32
	Value    uint64
}

// TimedEvent is a slot of layout [V1] (NIXL 0.5.1 to v1.0.1).
type TimedEvent struct {
	TimestampMicros uint64 // since the epoch, when the event was recorded
	Category        Category
	Name            Name
	_               uint32
	Value           uint64
}

// Event is a copy of a slot of any layout.
type Event struct {
	TimestampMicros uint64   // since the epoch; 0 unless the layout is V1
	Category        Category // derived from Type where the layout has none; -1 if unknown
	Named           bool     // whether the event is known by Name or by Type
	Type            Type     // 0 if Named
	Name            Name     // empty unless Named
	Value           uint64
}

// NewEvent is an event of a known type.
func NewEvent(t Type, value uint64) Event {
	return Event{Category: t.Category(), Type: t, Value: value}
}

// NewNamedEvent is an event that only layouts with names can carry.
func NewNamedEvent(c Category, name string, value uint64) Event {
	return Event{Category: c, Named: true, Name: MakeName(name), Value: value}
}

// EventName is the event's name, whether the ring spells it or numbers it. A
// number is taken for that of the newest layout; [Layout.TypeName] is for those
// of older ones.
func (e *Event) EventName() string {
	if e.Named {
		return e.Name.String()
	}
	return e.Type.String()
}
