package ringbuf

import (
	"fmt"
	"math/bits"
)

// Layout is the shape of a ring's slots. NIXL numbers its layouts in the
// header, but the number alone doesn't tell them apart: [V2] and [V2Named]
// share one, and it went backwards between releases.
type Layout uint8

// The layouts that agents were seen to write. Sizes and offsets were printed
// by the compiler of each release.
const (
	V1      Layout = iota + 1 // NIXL 0.5.1 to v1.0.1: 56 bytes, time, category and name
	V2                        // v1.1.0 and v1.2.0: 16 bytes, category and type
	V2Named                   // main, 15 to 21 April 2026: 48 bytes, category and name
	V3                        // v1.3.0 and v1.3.2: 16 bytes, type
	V4                        // v1.3.1, v1.4.0 and main: as V3, with TypeEventsDropped
)

// Layouts lists all layouts, oldest first.
func Layouts() []Layout { return []Layout{V1, V2, V2Named, V3, V4} }

type layoutFacts struct {
	name      string
	version   int32 // what the header's version field holds
	eventSize int   // sizeof(nixlTelemetryEvent) of that release
}

var layouts = [...]layoutFacts{
	V1:      {"v1", 1, 56},
	V2:      {"v2", 2, 16},
	V2Named: {"v2-named", 2, 48},
	V3:      {"v3", 3, 16},
	V4:      {"v4", 4, 16},
}

// maxEventSize is the size of the largest slot.
const maxEventSize = 56

// String is the layout's name: v1, v2, v2-named, v3 or v4.
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
	return 0, fmt.Errorf("unknown layout %q: it is one of v1, v2, v2-named, v3, v4", s)
}

// Version is the number that the header of such a ring carries.
func (l Layout) Version() int32 { return layouts[l].version }

// EventSize is the size of a slot in bytes.
func (l Layout) EventSize() int { return layouts[l].eventSize }

// Named says whether the slots carry names rather than types.
func (l Layout) Named() bool { return l == V1 || l == V2Named }

func (l Layout) known() bool { return l >= V1 && l <= V4 }

// Knows says whether t is a type that agents of this layout write. Another
// type may be newer than this package: it is kept apart, never guessed at.
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

// TypeName is the name of a type in a ring of this layout. A type that agents
// of this layout don't write prints as unknown_event_N, though a later layout
// may have a name for its number.
func (l Layout) TypeName(t Type) string {
	if !l.Knows(t) {
		return t.number()
	}
	return t.String()
}

// fileSize is the exact size of a ring's file.
func (l Layout) fileSize(capacity uint64) int64 {
	return headerSize + int64(capacity)*int64(l.EventSize())
}

// smaller is the size of the next smaller ring that there can be, of any
// layout, given the size of one.
func smaller(fileSize int64) (size int64) {
	for _, l := range Layouts() {
		slots := uint64(fileSize-headerSize-1) / uint64(l.EventSize())
		if capacity := uint64(1) << bits.Len64(slots) / 2; slots > 0 {
			size = max(size, l.fileSize(capacity))
		}
	}
	return size
}
