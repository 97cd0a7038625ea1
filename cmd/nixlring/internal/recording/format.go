// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// magic begins a file. Its last byte is the version of the format.
const magic = "NIXLREC\x01"

// A frame is the length of its compressed data, their CRC-32C, both in four
// bytes, little endian, and the data.
const frameHeader = 8

// Bounds on what a reader takes. A writer stays far below them.
const (
	maxFrame  = 4 << 20 // bytes, compressed or not
	maxRings  = 1 << 13
	maxString = 1 << 12
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Why a recording can't be read, or not to its end.
var (
	// ErrFormat is a file that isn't a recording.
	ErrFormat = errors.New("not a recording")
	// ErrVersion is a recording of a format that this package doesn't know.
	ErrVersion = errors.New("recording of an unknown version")
	// ErrCut is a recording that ends in the middle: its program died, or runs
	// on. What came before is whole.
	ErrCut = errors.New("recording has no end")
	// ErrDamaged is a recording whose bytes aren't those that were written.
	ErrDamaged = errors.New("damaged recording")
)

// Op is what a [Record] says.
type Op uint8

// The operations, as they stand in the file.
const (
	OpBegin  Op = iota // the recording begins
	OpOpen             // a ring was opened: a life of its agent
	OpEvents           // events were seen
	OpMissed           // events may have been missed
	OpEnded            // a ring was closed
	OpEnd              // the recording ends
)

// Record is one thing that happened.
type Record struct {
	Op Op
	At time.Duration // since the recording began

	// Of OpBegin.
	Start     time.Time
	Directory string

	// Of all that is about a ring.
	Ring int    // its number, in the order in which rings were found
	Name string // its path within the directory: the agent's name

	// Of OpOpen.
	Layout   ringbuf.Layout
	Capacity int // slots

	Events []ringbuf.Event // of OpEvents; valid until the next record is read
	Why    string          // of OpMissed and OpEnded
}

// kind is what events have in common but for their value and time.
type kind struct {
	category ringbuf.Category
	named    bool
	typ      ringbuf.Type
	name     ringbuf.Name
}

func kindOf(e *ringbuf.Event) kind {
	return kind{category: e.Category, named: e.Named, typ: e.Type, name: e.Name}
}

func (k *kind) event() ringbuf.Event {
	return ringbuf.Event{Category: k.category, Named: k.named, Type: k.typ, Name: k.name}
}

func appendString(b []byte, s string) []byte {
	if len(s) > maxString {
		s = s[:maxString]
	}
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
