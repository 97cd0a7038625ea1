// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import "fmt"

// Layout is the format of a ring's slots. The header contains its number. Some NIXL
// releases have a lower number than the one before.
type Layout uint8

// The layouts that agents write. The sizes and offsets come from compiling the
// source of each release.
const (
	V1 Layout = iota + 1 // NIXL 0.5.1 to v1.0.1: 56 bytes, time, category and name
	V2                   // v1.1.0 and v1.2.0: 16 bytes, category and type
	V3                   // v1.3.0 and v1.3.2: 16 bytes, type
	V4                   // v1.3.1, v1.4.0 and main: as V3, with TypeEventsDropped
)

const newest = V4

// Layouts lists all layouts, oldest first.
func Layouts() []Layout { return []Layout{V1, V2, V3, V4} }

// HeaderSize is the size of the header in bytes. Slots follow it.
const HeaderSize = 40

// The offsets of the fields of NIXL's struct bufferHeader (src/utils/common/cyclic_buffer.h,
// the same from 0.5.1 to v1.4.0).
const (
	offWritePos        = 0
	offReadPos         = 8
	offVersion         = 16
	offExpectedVersion = 20
	offCapacity        = 24
	offMask            = 32
)

var layouts = [...]struct {
	name      string
	eventSize int // sizeof(nixlTelemetryEvent) of that release
}{
	V1: {"v1", 56},
	V2: {"v2", 16},
	V3: {"v3", 16},
	V4: {"v4", 16},
}

// String returns the layout's name: v1, v2, v3 or v4.
func (l Layout) String() string {
	if !l.known() {
		return fmt.Sprintf("layout(%d)", uint8(l))
	}
	return layouts[l].name
}

// ParseLayout is the reverse of [Layout.String].
func ParseLayout(s string) (Layout, error) {
	for _, l := range Layouts() {
		if layouts[l].name == s {
			return l, nil
		}
	}
	return 0, fmt.Errorf("unknown layout %q: use v1, v2, v3 or v4", s)
}

// Version returns the version number in the ring's header.
func (l Layout) Version() int32 { return int32(l) }

// EventSize returns the size of a slot in bytes.
func (l Layout) EventSize() int { return layouts[l].eventSize }

// FileSize returns the exact size in bytes of a ring of capacity slots.
func (l Layout) FileSize(capacity uint64) int64 {
	return HeaderSize + int64(capacity)*int64(l.EventSize())
}

// Named reports whether the slots carry names instead of types.
func (l Layout) Named() bool { return l == V1 }

func (l Layout) known() bool { return l >= V1 && l <= newest }

// Knows reports whether agents of this layout write type t. Other types may be
// newer than this package: count them separately and don't interpret them.
func (l Layout) Knows(t Type) bool {
	switch l {
	case V2, V3:
		return t <= TypeErrNoTelemetry
	case V4:
		return t <= TypeEventsDropped
	default:
		return false
	}
}

// TypeName returns the name of a type in a ring of this layout. For a type that
// this layout doesn't know, it returns unknown_event_N, even if a later layout
// defines it.
func (l Layout) TypeName(t Type) string {
	if !l.Knows(t) {
		return t.number()
	}
	return t.String()
}
