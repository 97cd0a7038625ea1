// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// MaxCapacity is the largest number of slots that a ring may have. It limits
// what is mapped, and so the memory that a ring can cost: 4 million events are
// a thousand times what an agent stages by default, and 235 MB at the largest
// slot. On a tmpfs, reading a hole of a file allocates it.
const MaxCapacity = 1 << 22

// Header is a copy of a ring's header at the time it was read.
type Header struct {
	WritePos, ReadPos        uint64 // slots
	Version, ExpectedVersion int32  // ExpectedVersion is 0 in layout V5
	Capacity, Mask           uint64 // slots; Capacity-1
}

// decodeHeader reads the header at the start of b, which must have at least 40
// bytes. The version, which has the same place in every layout, selects the
// places of the other fields. What b is too short for stays 0.
func decodeHeader(b []byte) Header {
	g := &compact
	if int32(binary.LittleEndian.Uint32(b[offVersion:])) == V5.Version() {
		g = &padded
	}
	return g.decode(b)
}

func (g *geometry) decode(b []byte) (h Header) {
	le := binary.LittleEndian
	h.WritePos = le.Uint64(b[offWritePos:])
	h.Version = int32(le.Uint32(b[offVersion:]))
	h.Capacity, h.Mask = le.Uint64(b[g.capacity:]), le.Uint64(b[g.mask:])
	if g.expectedVersion > 0 {
		h.ExpectedVersion = int32(le.Uint32(b[g.expectedVersion:]))
	}
	if len(b) >= g.readPos+8 {
		h.ReadPos = le.Uint64(b[g.readPos:])
	}
	return h
}

// identify tells which layout the first bytes of a file and its size belong to,
// or why they belong to none. The order matters: a ring in the making has any
// geometry, and a version is called unknown only if the rest shows that the
// file is a ring.
func identify(b []byte, fileSize int64) (Header, Layout, error) {
	h := decodeHeader(b)
	if h.Version == 0 {
		return h, 0, notReady(b)
	}
	if err := h.checkGeometry(fileSize); err != nil {
		return h, 0, err
	}
	for _, l := range Layouts() {
		if l.Version() == h.Version && l.FileSize(h.Capacity) == fileSize {
			return h, l, h.checkPositions()
		}
	}
	if h.Version < 1 || h.Version > newest.Version() {
		return h, 0, &UnknownVersionError{Version: h.Version}
	}
	return h, 0, fmt.Errorf("%w: version %d and %d slots don't make a file of %d bytes; was it truncated?",
		ErrInvalid, h.Version, h.Capacity, fileSize)
}

// notReady explains version 0: an agent hasn't finished, or never will.
func notReady(b []byte) error {
	for _, g := range []*geometry{&compact, &padded} {
		h := g.decode(b)
		if h.Capacity > 1 && h.Mask == h.Capacity-1 && bits.OnesCount64(h.Capacity) != 1 {
			return fmt.Errorf("%w: its agent failed to start, as %d slots are not a power of two; "+
				"set NIXL_TELEMETRY_BUFFER_SIZE to one", ErrNotReady, h.Capacity)
		}
	}
	return fmt.Errorf("%w: its version is still 0; the agent is starting, or failed to", ErrNotReady)
}

// checkGeometry reports what is wrong with a header, whatever its layout. Only
// the version shows that a file which makes no sense is a ring at all.
func (h *Header) checkGeometry(fileSize int64) error {
	if h.plausible(fileSize) {
		return nil
	}
	if h.Version < 1 || h.Version > maxPlausibleVersion {
		return fmt.Errorf("%w: its header makes no sense", ErrNotRing)
	}
	if h.Version > newest.Version() {
		return &UnknownVersionError{Version: h.Version}
	}
	switch {
	case h.Capacity == 0, h.Capacity == 1:
		return fmt.Errorf("%w: a capacity of %d holds no event; set NIXL_TELEMETRY_BUFFER_SIZE to 2 or more",
			ErrInvalid, h.Capacity)
	case bits.OnesCount64(h.Capacity) != 1:
		return fmt.Errorf("%w: capacity %d is not a power of two", ErrInvalid, h.Capacity)
	case h.Capacity > MaxCapacity:
		return fmt.Errorf("%w: capacity %d is above the limit of %d", ErrInvalid, h.Capacity, MaxCapacity)
	case h.Mask != h.Capacity-1:
		return fmt.Errorf("%w: mask %#x doesn't match capacity %d", ErrInvalid, h.Mask, h.Capacity)
	default:
		return fmt.Errorf("%w: %d slots don't make a file of %d bytes; was it truncated?", ErrInvalid, h.Capacity, fileSize)
	}
}

// plausible reports whether the geometry fits a ring of any event size.
func (h *Header) plausible(fileSize int64) bool {
	size := int64(compact.size)
	if h.Version == V5.Version() {
		size = int64(padded.size)
	}
	return h.Capacity >= 2 && h.Capacity <= MaxCapacity && bits.OnesCount64(h.Capacity) == 1 &&
		h.Mask == h.Capacity-1 && fileSize > size && uint64(fileSize-size)%h.Capacity == 0
}

// maxPlausibleVersion is the largest version that a future layout may have. A
// text file has four letters in its place.
const maxPlausibleVersion = 255

func (h *Header) checkPositions() error {
	if h.WritePos > h.Mask || h.ReadPos > h.Mask {
		return fmt.Errorf("%w: write position %d or read position %d is beyond the last slot %d",
			ErrInvalid, h.WritePos, h.ReadPos, h.Mask)
	}
	return nil
}
