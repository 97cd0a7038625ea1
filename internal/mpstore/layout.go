// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package mpstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// The layout of a store is storeLayout in NIXL's mp_store_layout.h. Numbers are
// little endian, and there is no padding.
const (
	magic         = 0x3153504d4c58494e // "NIXLMPS1"; MP_STORE_MAGIC
	schemaVersion = 1                  // MP_STORE_SCHEMA_VERSION
	maxBounds     = 32                 // MP_STORE_MAX_BUCKETS

	atMagic      = 0
	atVersion    = 8
	atSlots      = 12
	atPID        = 16
	atUpdated    = 24
	atInstance   = 32
	atBoundCount = 40
	atAgent      = 48  // char[256]
	atHost       = 304 // char[128]
	atRank       = 432 // char[64]
	atBounds     = 496 // double[32]
	headerSize   = 752

	// After the header, there is a slot for each event type in each of four arrays:
	// counters, gauges, histogram buckets and histogram sums.
	bucketsPerType = maxBounds + 1 // the last has no bound
	slotSize       = 8 + 8 + 8*bucketsPerType + 8
	// maxSlots limits the number of slots, which the header states. NIXL has 21
	// (MP_STORE_SLOT_COUNT), and more with each new event type.
	maxSlots = 64
)

// sizeOf returns the size of a store.
func sizeOf(slots int) int { return headerSize + slots*slotSize }

// usedSize returns the size of the part of a store that is used. It excludes the buckets of the
// types after the post time, which are empty, and the sums of the histograms, which equal
// the counters of their types.
func usedSize(slots int) int {
	return headerSize + 2*8*slots + 8*bucketsPerType*min(int(ringbuf.TypeXferPostTime)+1, slots)
}

// Reasons why a file can't be read as a store.
var (
	ErrInvalid = errors.New("invalid store")
	ErrVersion = errors.New("unknown store version")
	errShrunk  = fmt.Errorf("%w: file was truncated", ErrInvalid)
)

// Header describes the process of a store.
type Header struct {
	Agent     string
	PID       int64  // in the process's own PID namespace
	Instance  uint64 // distinguishes the agents of the process
	Host      string // host name or container name of the process
	LocalRank string // empty if the process doesn't set it
	Start     time.Time
	Bounds    []float64 // of the histograms, in microseconds

	slots int
}

// parseHeader checks the header of a store, and adds it to what its name states. b must have headerSize
// bytes. size is the size of the file.
func parseHeader(b []byte, size int64, h Header) (Header, error) {
	le := binary.LittleEndian
	version, slots := le.Uint32(b[atVersion:]), le.Uint32(b[atSlots:])
	switch {
	case le.Uint64(b[atMagic:]) != magic:
		return h, fmt.Errorf("%w: file doesn't begin with NIXLMPS1", ErrInvalid)
	case version != schemaVersion:
		return h, fmt.Errorf("%w %d: this release reads version %d; update the reader", ErrVersion, version, schemaVersion)
	case slots == 0 || slots > maxSlots:
		return h, fmt.Errorf("%w: %d event types, but this release reads at most %d; update the reader", ErrVersion, slots, maxSlots)
	case size != int64(sizeOf(int(slots))):
		return h, fmt.Errorf("%w: file has %d bytes, but %d event types take %d", ErrInvalid, size, slots, sizeOf(int(slots)))
	}
	h.slots = int(slots)
	if pid, instance := int64(le.Uint64(b[atPID:])), le.Uint64(b[atInstance:]); h.PID != pid || h.Instance != instance {
		return h, fmt.Errorf("%w: header is for process %d, instance %d, unlike the file name", ErrInvalid, pid, instance)
	}
	var errs [3]error
	h.Agent, errs[0] = parseText(b[atAgent:atHost], "agent name")
	h.Host, errs[1] = parseText(b[atHost:atRank], "host name")
	h.LocalRank, errs[2] = parseText(b[atRank:atBounds], "local rank")
	if err := errors.Join(errs[:]...); err != nil {
		return h, err
	}
	if h.Agent == "" {
		return h, fmt.Errorf("%w: agent name is empty", ErrInvalid)
	}
	n := le.Uint64(b[atBoundCount:])
	if n > maxBounds {
		return h, fmt.Errorf("%w: %d bucket bounds exceed the maximum of %d", ErrInvalid, n, maxBounds)
	}
	h.Bounds = make([]float64, n)
	for i := range h.Bounds {
		h.Bounds[i] = math.Float64frombits(le.Uint64(b[atBounds+8*i:]))
	}
	return h, nil
}

func parseText(b []byte, what string) (string, error) {
	text, _, ok := bytes.Cut(b, []byte{0})
	if !ok {
		return "", fmt.Errorf("%w: %s isn't terminated", ErrInvalid, what)
	}
	return string(text), nil
}

// maxCount limits the count of a bucket, so that sums of counts can't overflow. A
// process never counts as many events.
const maxCount = 1 << 48

// decode returns the values in b, the used part of a store, by event type. The process may update
// the store while it is read, so the values may be from different times. No single value is
// torn, because the kernel copies aligned words.
func (h *Header) decode(b []byte) []tally.Value {
	values := make([]tally.Value, h.slots)
	counters := b[headerSize:]
	gauges, buckets := counters[8*h.slots:], counters[2*8*h.slots:]
	for i := range values {
		v := &values[i]
		v.Sum, v.Last = word(counters, i), word(gauges, i)
		if kind := ringbuf.Type(i); kind == ringbuf.TypeXferTime || kind == ringbuf.TypeXferPostTime {
			v.Counts = make([]uint64, len(h.Bounds)+1)
			for j := range v.Counts {
				v.Counts[j] = min(word(buckets, bucketsPerType*i+j), maxCount)
			}
		}
	}
	return values
}

func word(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
