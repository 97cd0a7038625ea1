// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import "fmt"

// Layout is the format of a ring's header and slots. The header contains a version
// number, but the number alone doesn't identify the layout: [V2] and [V2Named]
// share one, and some NIXL releases have a lower number than the one before.
type Layout uint8

// The layouts that agents write. The sizes and offsets come from compiling the
// source of each release.
const (
	V1      Layout = iota + 1 // NIXL 0.5.1 to v1.0.1: 56 bytes, time, category and name
	V2                        // v1.1.0 and v1.2.0: 16 bytes, category and type
	V2Named                   // main, 15 to 21 April 2026: 48 bytes, category and name
	V3                        // v1.3.0 and v1.3.2: 16 bytes, type
	V4                        // v1.3.1, v1.4.0 and main: as V3, with TypeEventsDropped
	V5                        // ai-dynamo/nixl#2018: slots as V4, header of 512 bytes
)

const newest = V5

// Layouts lists all layouts, oldest first.
func Layouts() []Layout { return []Layout{V1, V2, V2Named, V3, V4, V5} }

// geometry holds the offsets of a header's fields, in bytes.
type geometry struct {
	size            int // of the header; slots follow
	readPos         int
	capacity, mask  int
	expectedVersion int // 0 if there is none
}

// These two fields have the same offset in all headers.
const (
	offWritePos = 0
	offVersion  = 16
)

var (
	// struct bufferHeader of NIXL's src/utils/common/cyclic_buffer.h, the same
	// from 0.5.1 to v1.4.0.
	compact = geometry{size: 40, readPos: 8, expectedVersion: 20, capacity: 24, mask: 32}
	// The same struct in ai-dynamo/nixl#2018: each position has its own cache lines.
	padded = geometry{size: 512, capacity: 8, mask: 24, readPos: 256}
)

const maxHeaderSize = 512

type layoutInfo struct {
	name      string
	version   int32 // value of the header's version field
	eventSize int   // sizeof(nixlTelemetryEvent) of that release
	header    *geometry
}

var layouts = [...]layoutInfo{
	V1:      {"v1", 1, 56, &compact},
	V2:      {"v2", 2, 16, &compact},
	V2Named: {"v2-named", 2, 48, &compact},
	V3:      {"v3", 3, 16, &compact},
	V4:      {"v4", 4, 16, &compact},
	V5:      {"v5", 5, 16, &padded},
}

// String returns the layout's name: v1, v2, v2-named, v3, v4 or v5.
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
	return 0, fmt.Errorf("unknown layout %q: use v1, v2, v2-named, v3, v4 or v5", s)
}

// Version returns the version number in the ring's header.
func (l Layout) Version() int32 { return layouts[l].version }

// EventSize returns the size of a slot in bytes.
func (l Layout) EventSize() int { return layouts[l].eventSize }

// HeaderSize returns the size of the header in bytes. Slots follow it.
func (l Layout) HeaderSize() int { return layouts[l].header.size }

// FileSize returns the exact size in bytes of a ring of capacity slots.
func (l Layout) FileSize(capacity uint64) int64 {
	return int64(l.HeaderSize()) + int64(capacity)*int64(l.EventSize())
}

// Named reports whether the slots carry names instead of types.
func (l Layout) Named() bool { return l == V1 || l == V2Named }

func (l Layout) known() bool { return l >= V1 && l <= newest }

// Knows reports whether agents of this layout write type t. Other types may be
// newer than this package: count them separately and don't interpret them.
func (l Layout) Knows(t Type) bool {
	switch l {
	case V2, V3:
		return t <= TypeErrNoTelemetry
	case V4, V5:
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
