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

// magic is at the start of each file. Its last byte is the version of the format.
const magic = "NIXLREC\x01"

// A frame consists of the length of its compressed data and their CRC-32C, both in four
// bytes, little endian, and the data.
const frameHeader = 8

// Limits of a reader. A writer stays far below them.
const (
	maxFrame  = 4 << 20 // bytes, compressed or not
	maxRings  = 1 << 13
	maxString = 1 << 12
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Errors of reading a recording.
var (
	// ErrFormat means that a file isn't a recording.
	ErrFormat = errors.New("not a recording")
	// ErrVersion means that a recording has an unknown version.
	ErrVersion = errors.New("recording of an unknown version")
	// ErrTruncated means that a recording has no end: the recording program crashed, or
	// is still running. The records before are valid.
	ErrTruncated = errors.New("truncated recording")
	// ErrDamaged means that the content of a recording is invalid.
	ErrDamaged = errors.New("damaged recording")
)

// Op is the operation of a [Record].
type Op uint8

// The operations. The values are those in the file.
const (
	OpBegin  Op = iota // the recording began
	OpOpen             // a ring was opened, or opened again after a restart of its agent
	OpEvents           // events were seen
	OpMissed           // events may have been missed
	OpEnded            // a ring was closed
	OpEnd              // the recording ended
)

// Record is a record of a recording.
type Record struct {
	Op Op
	At time.Duration // since the recording began

	// For OpBegin.
	Start     time.Time
	Directory string

	// For all operations on a ring.
	Ring int    // number of the ring, in the order of discovery
	Name string // path within the directory: the agent's name

	// For OpOpen.
	Layout   ringbuf.Layout
	Capacity int // slots

	Events []ringbuf.Event // for OpEvents; valid until the next record is read
	Why    string          // for OpMissed and OpEnded
}

// kind identifies events that only differ in value and time.
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
